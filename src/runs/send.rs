//! Sending a run: claim, engine, what is asked before and after, end.

use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::freeze::thaw;
use super::launch::{RunToSend, Session};
use super::{Connection, EndedRun, Error, Event, Outcome, caps};
use crate::audience::RecordRef;
use crate::check::online::Prices;
use crate::check::{CompiledCampaign, Recipe};
use crate::delivery::{self, Conditions, Edges, Ending, Limits, Observer, Snapshot, Stop, feed, send};
use crate::domain::Budget;
use crate::failpoint;
use crate::gateway::{Gateway, RunHook};
use crate::ledger::{Allowance, Bounds, Claim, Lease, ListReader, OPTED_OUT, Run, State, StateCounts, StopKind};
use crate::manifest::{Delivery, Destination, Profile, Rate};

/// How long an asynchronous start asks about its first messages.
const CANARY: Duration = Duration::from_secs(10);

impl Session {
    /// Sends the run and tells how it ended.
    pub(super) async fn send(&self, selection: RunToSend) -> Result<Outcome, Error> {
        let began = Instant::now();
        let (ledger, inputs, request) = (self.adapters.ledger.as_ref(), self.inputs(), &self.launch.request);
        let RunToSend { suppressed, run, snapshot, hold, limit, retry, earlier_edition, before } = selection;
        let Claim { lease, doubtful: requests } = ledger.claim(&hold, run.key).await?;
        failpoint::pass("run.claimed");
        if requests > 0 {
            (self.adapters.observer)(Event::DoubtFromBefore { requests });
        }
        let (frozen, prepared) = thaw(ledger, &run).await?;
        let (key, scenario) = (self.launch.key.clone(), request.scenario.clone().unwrap_or_default());
        let receipts = self.rehearsed_receipts()?;
        let receiver = receipts.as_ref().map(|receipts| receipts.receiver.clone());
        let connection = Connection::open(&inputs.destination, key, scenario, receiver).await?;
        let gateway =
            connection.client(self.adapters.connect, frozen.brief.endpoint, inputs.campaign.delivery.timeout)?;
        let snapshot = match snapshot {
            // Read while it was held; what the claim made doubt was read as doubt.
            Some(snapshot) => snapshot,
            None => Snapshot::read(ledger, &run, false).await?,
        };
        let snapshot = match self.reconcile_first(&run, lease, gateway.as_ref(), &snapshot).await? {
            true => Snapshot::read(ledger, &run, false).await?,
            false => snapshot,
        };
        let left_out = match suppressed.is_empty() {
            true => 0,
            false => {
                let is_on_a_list = move |recipe: &Recipe, record: &RecordRef<'_>| {
                    recipe.phone(*record).is_some_and(|phone| suppressed.contains(phone.get()))
                };
                self.leave_out((&run, lease), &snapshot, (OPTED_OUT, is_on_a_list)).await?
            }
        };
        let snapshot = if left_out > 0 { Snapshot::read(ledger, &run, false).await? } else { snapshot };
        let hook = self.launch.hook.as_ref().or(receipts.as_ref().map(|receipts| &receipts.hook));
        let hook = hook.map(|hook| hook.for_run(run.name()));
        let mut ending =
            self.engine((&run, lease), Arc::clone(&gateway), (prepared, hook), (&snapshot, limit, retry)).await?;
        self.expire((&run, lease), &mut ending).await?;
        tracing::info!(run = run.name(), stopped = ending.stopped.is_some(), "sent");
        if asks_at_end(&ending) {
            self.reconcile_last(&run, lease, gateway.as_ref(), &mut ending).await?;
        }
        let played = match connection.into_sandbox() {
            Some(sandbox) => self.play_out((&run, sandbox), gateway.as_ref(), receipts, &mut ending).await?,
            None => None,
        };
        let ended = self.end((run, lease), ending, (snapshot.parts, began), played).await?;
        Ok(Outcome::Ended(Box::new(EndedRun { before, earlier_edition, ..ended })))
    }

    /// The engine, which the observer hears.
    async fn engine(
        &self,
        (run, lease): (&Run, Lease),
        gateway: Arc<dyn Gateway>,
        (prepared, hook): (CompiledCampaign<BufReader<ListReader>>, Option<RunHook>),
        (snapshot, limit, retry): (&Snapshot, Option<u64>, bool),
    ) -> Result<Ending, Error> {
        let request = &self.launch.request;
        let told = Arc::clone(&self.adapters.observer);
        told(Event::SendingBegins { run: run.name(), recipients: run.recipients });
        let observer: Observer = Arc::new(move |event| told(Event::Sending(event)));
        let mut selection = delivery::Selection {
            settled: snapshot.settled.clone(),
            rows: request.rows.clone(),
            limit,
            digests: snapshot.digests.clone(),
            renumbered: snapshot.renumbered.clone(),
            hook,
            prices: self.prices(),
            hours: None,
        };
        let passes = self.passes(run, &prepared, &selection)?;
        selection.hours = passes.as_ref().map(|passes| Arc::clone(&passes.hours));
        let feed = feed(prepared, run.ids, selection);
        let conditions =
            Conditions { proven: retry || has_taken(&snapshot.counts), ..self.conditions(run, lease, snapshot) };
        let (ledger, interrupt) = (Arc::clone(&self.adapters.ledger), self.interrupt.clone());
        let edges = Edges { ledger, gateway, observer, interrupt, passes: passes.map(Arc::new) };
        let mut ending = send(conditions, edges, feed, snapshot.counts.clone()).await;
        (self.adapters.observer)(Event::SendingEnded);
        // Too many rejections stop what would follow; after the last row nothing does.
        let stopped = ending.stopped.as_ref().map(|stop| stop.kind);
        let left = [State::Planned, State::Sending].into_iter().any(|state| ending.counts.get(state) > 0);
        if stopped == Some(StopKind::Breaker) && !left {
            ending.stopped = None;
        }
        let asked_for_some = request.limit.is_some() || request.rows.is_some();
        if ending.stopped.is_none() && asked_for_some && ending.counts.get(State::Planned) > 0 {
            ending.stopped = Some(Stop::new(StopKind::Limit, "the rows that were asked for are through"));
        }
        Ok(ending)
    }

    /// What its messages cost, where the profile has prices for all of them.
    fn prices(&self) -> Option<Prices> {
        let inputs = self.inputs();
        Prices::of(inputs.destination.profile()?, &inputs.campaign.brief).ok()
    }

    /// What it has to keep within; a rehearsal costs nothing.
    fn bounds(&self) -> Option<Bounds> {
        let inputs = self.inputs();
        let Budget { cost, recipients } = inputs.campaign.limits;
        let budget = Budget { cost: cost.filter(|_| inputs.destination.is_live()), recipients };
        // Nobody gets a message by a rehearsal.
        let caps = if inputs.destination.is_live() { caps(inputs) } else { Vec::new() };
        // A rehearsal that keeps no pace waits for no other day.
        let waits = inputs.destination.is_live() || self.launch.request.real_time;
        let per_day = inputs.campaign.per_day.clone().filter(|_| waits);
        let bounds = Bounds { budget, caps, per_day };
        (bounds != Bounds::default()).then_some(bounds)
    }

    fn conditions(&self, run: &Run, lease: Lease, snapshot: &Snapshot) -> Conditions {
        let (destination, request) = (&self.inputs().destination, &self.launch.request);
        let delivery = destination.within(self.inputs().campaign.delivery);
        let waits = destination.is_live() || request.real_time;
        Conditions {
            lease,
            endpoint: run.endpoint,
            repeated: snapshot.repeated.clone(),
            rate: delivery.rate.filter(|_| waits).and_then(Rate::per_second),
            account: Allowance::new(destination.account(), destination.rate().per_second()),
            bounds: self.bounds().map(Arc::new),
            waits: !request.no_wait,
            batch: delivery.batch.get() as usize,
            in_flight: delivery.in_flight.get() as usize,
            timeout: delivery.timeout,
            limits: limits(&delivery, destination, request.keep_going),
            proven: false,
            first_messages: if destination.is_live() { CANARY } else { Duration::ZERO },
            attended: false,
        }
    }
}

/// Whether the gateway has taken a message of these rows.
fn has_taken(counts: &StateCounts) -> bool {
    [State::Accepted, State::Queued, State::Delivered, State::Read].into_iter().any(|state| counts.get(state) > 0)
}

/// Whether there is somebody to ask about rows in doubt, and time for it.
fn asks_at_end(ending: &Ending) -> bool {
    let doubt = ending.counts.get(State::InDoubt) > 0;
    let kind = ending.stopped.as_ref().map(|stop| stop.kind);
    let gone =
        |kind| matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::NotOwner | StopKind::KeyRefused);
    doubt && !kind.is_some_and(gone)
}

fn limits(delivery: &Delivery, destination: &Destination, keep_going: bool) -> Limits {
    let stop_after = &delivery.stop_after;
    Limits {
        doubtful_envelopes: stop_after.doubtful_envelopes.get(),
        same_error_in_a_row: stop_after.same_error_in_a_row.get(),
        rejected: stop_after.rejected.fraction(),
        unreachable: stop_after.unreachable(destination.profile().is_none_or(Profile::is_loopback)),
        keep_going,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::manifest::{Day, GatewaySearch, load_campaign, load_gateways};

    const GATEWAYS: &str = "\
far:
  base_url: https://g.example
  api_key: { env: KEY }
  rate: 100/s
near:
  base_url: http://127.0.0.1:9
  api_key: { env: KEY }
  rate: unlimited
mixed:
  base_url: http://127.0.0.1:9
  async_url: https://g.example
  api_key: { env: KEY }
  rate: 100/s
";

    /// How many seconds a gateway that cannot be reached is tried.
    fn patience(folder: &TempDir, gateway: &str, stop_after: &str) -> u64 {
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, GATEWAYS).unwrap();
        fs::write(&file, format!("delivery: {{ {stop_after} }}\nrecipients: {{ file: a.csv }}\nchannels: [hlr]\n"))
            .unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        let destination = match gateway {
            "" => Destination::Rehearsal,
            name => Destination::Live(Box::new(gateways.profile(name).unwrap().clone())),
        };
        limits(&load_campaign(&file, Day::Of(jiff::Timestamp::now())).value.unwrap().delivery, &destination, false)
            .unreachable
            .as_secs()
    }

    #[test]
    fn a_gateway_on_this_machine_is_given_up_after_ten_seconds_and_another_after_half_an_hour() {
        let folder = TempDir::new().unwrap();
        let by_default = ["", "near", "far", "mixed"].map(|gateway| patience(&folder, gateway, ""));
        assert_eq!(by_default, [10, 10, 1800, 1800]);
        let given = ["", "near", "far"].map(|gateway| patience(&folder, gateway, "stop_after: { unreachable: 2m }"));
        assert_eq!(given, [120; 3]);
    }
}
