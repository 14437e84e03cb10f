//! Sending a run: claim, engine, what is asked before and after, end.

use std::io::BufReader;
use std::sync::Arc;
use std::time::Instant;

use super::find::found;
use super::freeze::thaw;
use super::launch::{RunToSend, Session};
use super::resume::open_rows;
use super::sender::{Sender, Start};
use super::{Connection, EndedRun, Error, Event, Inputs, Outcome};
use crate::audience::RecordRef;
use crate::check::{CompiledCampaign, Recipe};
use crate::delivery::{Ending, Snapshot, Stop};
use crate::failpoint;
use crate::gateway::{Gateway, RunHook};
use crate::ledger::{Claim, Lease, ListReader, OPTED_OUT, Run, State, StopKind};
use crate::manifest::{Rate, SendingTerms};
use crate::report::{RunFigures, Terms};

impl Session {
    /// Sends the run and tells how it ended.
    pub(super) async fn send(&self, selection: RunToSend) -> Result<Outcome, Error> {
        let began = Instant::now();
        let (ledger, inputs, request) = (self.adapters.ledger.as_ref(), self.inputs(), &self.launch.request);
        let RunToSend { suppressed, run, snapshot, hold, limit, retry, unconfirmed, .. } = selection;
        let RunToSend { earlier_edition, before, cancelled_in, .. } = selection;
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
        RunFigures::keep_terms(ledger, run.key, self.kept_terms()).await;
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
        let sharing = found(ledger, run.key).await?.sharing;
        let run = Run { sharing, ..run };
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
        Ok(Outcome::Ended(Box::new(EndedRun { before, cancelled_in, earlier_edition, unconfirmed, ..ended })))
    }

    /// Sends what the start selects, alone or with others, which the observer hears.
    async fn engine(
        &self,
        (run, lease): (&Run, Lease),
        gateway: Arc<dyn Gateway>,
        (prepared, hook): (CompiledCampaign<BufReader<ListReader>>, Option<RunHook>),
        (snapshot, limit, retry): (&Snapshot, Option<u64>, bool),
    ) -> Result<Ending, Error> {
        let (request, observer) = (&self.launch.request, &self.adapters.observer);
        let terms = self.terms();
        let later = self.planned_for_later(run, snapshot, limit);
        observer(Event::SendingBegins { run: run.name(), recipients: run.recipients, later });
        let ended = if request.shared || run.sharing.is_some() {
            self.send_together((run, lease), gateway, hook, (&terms, retry)).await
        } else {
            let start = Start { run, lease, snapshot, rows: request.rows.clone(), limit, retry, hook, shares: None };
            self.sender(&terms).engine(start, gateway, prepared).await
        };
        observer(Event::SendingEnded);
        let mut ending = ended?;
        // Too many rejections stop what would follow; after the last row nothing does.
        let stopped = ending.stopped.as_ref().map(|stop| stop.kind);
        let left = [State::Planned, State::Sending].into_iter().any(|state| ending.counts.get(state) > 0);
        if stopped == Some(StopKind::Breaker) && !left {
            ending.stopped = None;
        }
        let asked_for_some = request.limit.is_some() || request.rows.is_some();
        if ending.stopped.is_none() && asked_for_some && ending.counts.get(State::Planned) > 0 {
            ending.stopped = Some(Stop::new(StopKind::Limit, "all requested rows were processed"));
        }
        Ok(ending)
    }

    /// How many planned rows this call does not send to.
    fn planned_for_later(&self, run: &Run, snapshot: &Snapshot, limit: Option<u64>) -> u64 {
        let (request, planned) = (&self.launch.request, snapshot.counts.get(State::Planned));
        let chosen = match &request.rows {
            None => planned,
            Some(_) => request.chosen(&open_rows(run, snapshot), run.last_row()).map_or(planned, |rows| rows.len()),
        };
        planned.saturating_sub(chosen.min(limit.unwrap_or(u64::MAX)))
    }

    /// How the campaign is sent by this call.
    pub(super) fn terms(&self) -> SendingTerms {
        let request = &self.launch.request;
        SendingTerms::of(&self.inputs().campaign, request.keep_going, !request.no_wait)
    }

    /// What is kept of them for who looks at the run.
    pub(super) fn kept_terms(&self) -> Terms {
        let (terms, destination) = (self.terms(), &self.inputs().destination);
        let keeps_time = destination.is_live() || self.launch.request.real_time;
        let rate = destination.within(terms.delivery).rate.filter(|_| keeps_time).and_then(Rate::per_second);
        let currency = destination.profile().and_then(|profile| profile.currency.clone());
        Terms { rate, budget: terms.limits, currency }
    }

    /// What it is sent with.
    pub(super) fn sender<'s>(&'s self, terms: &'s SendingTerms) -> Sender<'s> {
        let Inputs { campaign, destination, .. } = self.inputs().as_ref();
        let keeps_time = destination.is_live() || self.launch.request.real_time;
        Sender {
            adapters: &self.adapters,
            interrupt: &self.interrupt,
            brief: &campaign.brief,
            terms,
            destination,
            keeps_time,
        }
    }
}

/// Whether there is somebody to ask about rows in doubt, and time for it.
fn asks_at_end(ending: &Ending) -> bool {
    let doubt = ending.counts.get(State::InDoubt) > 0;
    let kind = ending.stopped.as_ref().map(|stop| stop.kind);
    let gone =
        |kind| matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::NotOwner | StopKind::KeyRefused);
    doubt && !kind.is_some_and(gone)
}
