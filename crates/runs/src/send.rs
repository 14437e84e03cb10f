//! Sending a run: claim, terms, engine, sending hours, and the end.

use std::io::{BufReader, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use super::find::reload_run;
use super::guard::combine_caps;
use super::launch::{RunToSend, Session};
use super::resume::{list_open_rows, open_copies};
use super::{Adapters, Connection, EndedRun, Error, Inputs, RunEvent, RunOutcome};
use campaign_content::audience::{ListHeader, RecordRef};
use campaign_core::domain::{Budget, RowSet};
use campaign_core::failpoint;
use campaign_core::finding::Finding;
use campaign_engine::check::online::MessagePrices;
use campaign_engine::check::{
    CompiledCampaign, Recipe, RunStart, Survey, check_timing, check_until_over, missing_zone_column,
};
use campaign_engine::delivery::{
    self, BreakerLimits, DeliveryObserver, Feed, Interrupt, SendConditions, SendContext, SendEnding, SendingHours,
    SendingPasses, SendingRules, ShardSource, SharedPace, Snapshot, Stop, ZoneSource, send_operations, shard_size,
    start_feed, start_shard_feed,
};
use campaign_engine::report::{RunFigures, RunTerms};
use campaign_gateway::{Gateway, RunWebhookUrls};
use campaign_ledger::{
    Allowance, Bounds, Claim, EXPIRED, Lease, Ledger, ListReader, OPTED_OUT, RowState, Run, StopKind,
};
use campaign_manifest::{
    CampaignBrief, DeliverySettings, Destination, Profile, Rate, SendingTerms, SendingWindow, WindowZone,
};

impl Session {
    /// Sends the run and returns how it ended.
    pub(super) async fn send_run(&self, selection: RunToSend) -> Result<RunOutcome, Error> {
        let began = Instant::now();
        let (ledger, inputs, request) = (self.adapters.ledger.as_ref(), self.inputs(), &self.launch.request);
        let RunToSend { suppressed, run, snapshot, hold, limit, retry, unconfirmed, .. } = selection;
        let RunToSend { earlier_edition, before, cancelled_in, .. } = selection;
        let Claim { lease, in_doubt: requests } = ledger.claim_run(&hold, run.key).await?;
        failpoint::pass("run.claimed");
        if requests > 0 {
            (self.adapters.observer)(RunEvent::DoubtFromBefore { requests });
        }
        let (frozen, prepared) = open_copies(ledger, &run).await?;
        let (key, scenario) = (self.launch.key.clone(), request.scenario.clone().unwrap_or_default());
        let receipts = self.start_rehearsed_receipts()?;
        let receiver = receipts.as_ref().map(|receipts| receipts.receiver.clone());
        let connection = Connection::open(&inputs.destination, key, scenario, receiver).await?;
        let gateway =
            connection.create_client(self.adapters.connect, frozen.brief.endpoint, inputs.campaign.delivery.timeout)?;
        RunFigures::store_terms(ledger, run.key, self.stored_terms()).await;
        let snapshot = match snapshot {
            // It was read under the hold, so rows that the claim made doubtful are in doubt in it.
            Some(snapshot) => snapshot,
            None => Snapshot::load(ledger, &run, false).await?,
        };
        let snapshot = match self.reconcile_first(&run, lease, gateway.as_ref(), &snapshot).await? {
            true => Snapshot::load(ledger, &run, false).await?,
            false => snapshot,
        };
        let left_out = match suppressed.is_empty() {
            true => 0,
            false => {
                let is_on_a_list = move |recipe: &Recipe, record: &RecordRef<'_>| {
                    recipe.parse_phone(*record).is_some_and(|phone| suppressed.contains(phone.to_u64()))
                };
                self.skip_rows(&run, lease, &snapshot, OPTED_OUT, is_on_a_list).await?
            }
        };
        let snapshot = if left_out > 0 { Snapshot::load(ledger, &run, false).await? } else { snapshot };
        let hook = self.launch.hook.as_ref().or(receipts.as_ref().map(|receipts| &receipts.hook));
        let hook = hook.map(|hook| hook.for_run(run.name()));
        let rows = request.rows.clone();
        let job = SendJob { run: &run, lease, snapshot: &snapshot, rows, limit, retry, hook, shares: None };
        let mut ending = self.run_engine(job, Arc::clone(&gateway), prepared).await?;
        let sharing = reload_run(ledger, run.key).await?.sharding;
        let run = Run { sharding: sharing, ..run };
        self.expire_run(&run, lease, &mut ending).await?;
        tracing::info!(run = run.name(), stopped = ending.stopped.is_some(), "sent");
        if can_reconcile_at_end(&ending) {
            self.reconcile_last(&run, lease, gateway.as_ref(), &mut ending).await?;
        }
        let played = match connection.into_sandbox() {
            Some(sandbox) => self.play_scenario(&run, sandbox, gateway.as_ref(), receipts, &mut ending).await?,
            None => None,
        };
        let ended = self.end_run(run, lease, ending, snapshot.parts, began, played).await?;
        Ok(RunOutcome::Ended(Box::new(EndedRun { before, cancelled_in, earlier_edition, unconfirmed, ..ended })))
    }

    /// Sends the selected rows, alone or with workers, and reports events.
    async fn run_engine(
        &self,
        job: SendJob<'_>,
        gateway: Arc<dyn Gateway>,
        prepared: CompiledCampaign<BufReader<ListReader>>,
    ) -> Result<SendEnding, Error> {
        let (run, request, observer) = (job.run, &self.launch.request, &self.adapters.observer);
        let terms = self.sending_terms();
        let later = self.count_planned_for_later(run, job.snapshot, job.limit);
        observer(RunEvent::SendingBegins { run: run.name(), recipients: run.recipients, later });
        let ended = if request.shared || run.sharding.is_some() {
            self.send_shared_run(run, job.lease, gateway, job.hook, &terms, job.retry).await
        } else {
            self.build_sender(&terms).run_engine(job, gateway, prepared).await
        };
        observer(RunEvent::SendingEnded);
        let mut ending = ended?;
        // Too many rejections stop what follows. After the last row nothing follows.
        let stopped = ending.stopped.as_ref().map(|stop| stop.kind);
        let left = [RowState::Planned, RowState::Sending].into_iter().any(|state| ending.counts.get(state) > 0);
        if stopped == Some(StopKind::Breaker) && !left {
            ending.stopped = None;
        }
        let asked_for_some = request.limit.is_some() || request.rows.is_some();
        if ending.stopped.is_none() && asked_for_some && ending.counts.get(RowState::Planned) > 0 {
            ending.stopped = Some(Stop::new(StopKind::Limit, "all requested rows were processed"));
        }
        Ok(ending)
    }

    /// The number of planned rows that this call does not send.
    fn count_planned_for_later(&self, run: &Run, snapshot: &Snapshot, limit: Option<u64>) -> u64 {
        let (request, planned) = (&self.launch.request, snapshot.counts.get(RowState::Planned));
        let chosen = match &request.rows {
            None => planned,
            Some(_) => {
                request.choose_rows(&list_open_rows(run, snapshot), run.last_row()).map_or(planned, |rows| rows.len())
            }
        };
        planned.saturating_sub(chosen.min(limit.unwrap_or(u64::MAX)))
    }

    /// The terms of sending by this call.
    pub(super) fn sending_terms(&self) -> SendingTerms {
        let request = &self.launch.request;
        SendingTerms::from_campaign(&self.inputs().campaign, request.keep_going, !request.no_wait)
    }

    /// The terms to store for reports.
    pub(super) fn stored_terms(&self) -> RunTerms {
        let (terms, destination) = (self.sending_terms(), &self.inputs().destination);
        let keeps_time = destination.is_live() || self.launch.request.real_time;
        let rate = destination.limit_delivery(terms.delivery).rate.filter(|_| keeps_time).and_then(Rate::per_second);
        let currency = destination.profile().and_then(|profile| profile.currency.clone());
        RunTerms { rate, budget: terms.limits, currency }
    }

    /// The sender with the adapters and terms of this call.
    pub(super) fn build_sender<'s>(&'s self, terms: &'s SendingTerms) -> RunSender<'s> {
        let Inputs { campaign, destination, .. } = self.inputs().as_ref();
        let keeps_time = destination.is_live() || self.launch.request.real_time;
        RunSender {
            adapters: &self.adapters,
            interrupt: &self.interrupt,
            brief: &campaign.brief,
            terms,
            destination,
            keeps_time,
        }
    }
}

/// Whether rows in doubt can be reconciled now.
fn can_reconcile_at_end(ending: &SendEnding) -> bool {
    let doubt = ending.counts.get(RowState::InDoubt) > 0;
    let kind = ending.stopped.as_ref().map(|stop| stop.kind);
    let gone =
        |kind| matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::LeaseLost | StopKind::KeyRefused);
    doubt && !kind.is_some_and(gone)
}

/// The time for polling the first messages of an asynchronous run.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// The adapters and terms for sending runs of a campaign.
#[derive(Clone, Copy)]
pub(super) struct RunSender<'s> {
    pub(super) adapters: &'s Adapters,
    pub(super) interrupt: &'s watch::Receiver<Interrupt>,
    pub(super) brief: &'s CampaignBrief,
    pub(super) terms: &'s SendingTerms,
    pub(super) destination: &'s Destination,
    /// Whether rate and hours are observed: always, except in a rehearsal.
    pub(super) keeps_time: bool,
}

/// A start of a run.
pub(super) struct SendJob<'r> {
    pub(super) run: &'r Run,
    /// The lease.
    pub(super) lease: Lease,
    /// The state of the selected rows.
    pub(super) snapshot: &'r Snapshot,
    /// The requested rows. `None` for all.
    pub(super) rows: Option<RowSet>,
    /// The most messages.
    pub(super) limit: Option<u64>,
    /// Whether a first rejection does not predict others.
    pub(super) retry: bool,
    /// The webhook of its messages.
    pub(super) hook: Option<RunWebhookUrls>,
    /// The draw of shares, if workers send the run too.
    pub(super) shares: Option<ShardSource>,
}

impl RunSender<'_> {
    /// Sends the selected rows of a list with the engine.
    pub(super) async fn run_engine<R: Read + Send + 'static>(
        &self,
        start: SendJob<'_>,
        gateway: Arc<dyn Gateway>,
        prepared: CompiledCampaign<R>,
    ) -> Result<SendEnding, Error> {
        let SendJob { run, snapshot, shares, .. } = &start;
        let run_observer = Arc::clone(&self.adapters.observer);
        let observer: DeliveryObserver = Arc::new(move |event| run_observer(RunEvent::Sending(event)));
        let mut selection = delivery::SendSelection {
            settled: snapshot.settled.clone(),
            rows: start.rows.clone(),
            limit: start.limit,
            digests: snapshot.digests.clone(),
            renumbered: snapshot.renumbered.clone(),
            hook: start.hook.clone(),
            prices: self.prices(),
            hours: None,
        };
        let passes = self.plan_passes(run, &prepared, &selection, shares.as_ref())?;
        selection.hours = passes.as_ref().map(|passes| Arc::clone(&passes.hours));
        let feed = match shares {
            None => start_feed(prepared, run.ids, selection),
            Some(shares) => start_shard_feed(prepared, run.ids, selection, shares.clone()),
        };
        let (ledger, interrupt) = (Arc::clone(&self.adapters.ledger), self.interrupt.clone());
        let edges = SendContext { ledger, gateway, observer, interrupt, passes: passes.map(Arc::new) };
        Ok(send_operations(self.build_conditions(&start), edges, feed, snapshot.counts.clone()).await)
    }

    /// The prices of its messages, if the profile has all of them.
    fn prices(&self) -> Option<MessagePrices> {
        MessagePrices::for_campaign(self.destination.profile()?, self.brief).ok()
    }

    /// The budget, caps and daily limits. `None` without any. A rehearsal costs nothing.
    fn build_bounds(&self) -> Option<Bounds> {
        let Budget { cost, recipients } = self.terms.limits;
        let budget = Budget { cost: cost.filter(|_| self.destination.is_live()), recipients };
        // A rehearsal reaches no recipients.
        let caps = match self.destination.is_live() {
            true => {
                let own = [self.terms.delivery.cap, self.terms.policy.cap];
                combine_caps(self.brief.purpose, own.into_iter().flatten(), self.destination)
            }
            false => Vec::new(),
        };
        // A rehearsal without a rate waits for no other day.
        let per_day = self.terms.per_day.clone().filter(|_| self.keeps_time);
        let bounds = Bounds { budget, caps, per_day };
        (bounds != Bounds::default()).then_some(bounds)
    }

    fn build_conditions(&self, job: &SendJob<'_>) -> SendConditions {
        let (destination, SendJob { run, lease, snapshot, .. }) = (self.destination, job);
        let delivery = destination.limit_delivery(self.terms.delivery);
        let rate = delivery.rate.filter(|_| self.keeps_time).and_then(Rate::per_second);
        let proven = run.sharding.as_ref().is_some_and(|sharing| sharing.proven);
        SendConditions {
            lease: *lease,
            endpoint: run.endpoint,
            repeated: snapshot.repeated.clone(),
            rate,
            account: Allowance::of_account(
                destination.account_name(),
                destination.is_loopback(),
                destination.account_rate().per_second(),
            ),
            bounds: self.build_bounds().map(Arc::new),
            waits_at_bounds: self.terms.waits,
            batch: delivery.batch.get() as usize,
            in_flight: delivery.in_flight.get() as usize,
            timeout: delivery.timeout,
            limits: breaker_limits(&delivery, destination, self.terms.keep_going),
            proven: proven || job.retry || snapshot.has_accepted(),
            first_messages: if destination.is_live() { WARM_UP_TIMEOUT } else { Duration::ZERO },
            sharing: job.shares.as_ref().map(|_| self.shared_conditions(run, rate)),
            is_attended: false,
        }
    }

    /// The number of rows in a draw.
    pub(super) fn shard_size(&self) -> u32 {
        let delivery = self.destination.limit_delivery(self.terms.delivery);
        shard_size(delivery.rate.and_then(Rate::per_second), delivery.batch.get() as usize)
    }

    /// What processes that share a run observe together: the campaign's own rate, if it is below that of the account.
    fn shared_conditions(&self, run: &Run, rate: Option<f64>) -> SharedPace {
        let of_account = self.destination.account_rate().per_second();
        let own = rate.filter(|rate| of_account.is_none_or(|account| *rate < account));
        SharedPace { pace: own.map(|rate| Allowance::new(format!("{} of {}", run.name(), run.account), Some(rate))) }
    }
}

fn breaker_limits(delivery: &DeliverySettings, destination: &Destination, keep_going: bool) -> BreakerLimits {
    let stop_after = &delivery.stop_after;
    BreakerLimits {
        doubtful_envelopes: stop_after.doubtful_envelopes.get(),
        same_error_in_a_row: stop_after.same_error_in_a_row.get(),
        rejected: stop_after.rejected.to_fraction(),
        unreachable: stop_after.unreachable(destination.profile().is_none_or(Profile::is_loopback)),
        keep_going,
    }
}

impl RunSender<'_> {
    /// The further passes over the rows. `None` if the sending hours are unlimited. A rehearsal waits for no window,
    /// except in real time.
    ///
    /// # Errors
    /// If the zones of recipients are in a column that the list of the run does not have.
    pub(super) fn plan_passes<R: Read>(
        &self,
        run: &Run,
        prepared: &CompiledCampaign<R>,
        selection: &delivery::SendSelection,
        shares: Option<&ShardSource>,
    ) -> Result<Option<SendingPasses>, Error> {
        if !self.keeps_time {
            return Ok(None);
        }
        let Some(keeping) = self.sending_hours(run, prepared.reader.header())? else { return Ok(None) };
        let hours = Arc::new(SendingHours::new(keeping, Arc::new(self.adapters.clock)));
        let anew = FeedSource {
            ledger: Arc::clone(&self.adapters.ledger),
            run: run.clone(),
            selection: delivery::SendSelection { hours: Some(Arc::clone(&hours)), ..selection.clone() },
            shares: shares.cloned(),
        };
        let anew = move |begun: u64| -> delivery::FeedFuture { Box::pin(anew.clone().open_feed(begun)) };
        Ok(Some(SendingPasses { hours, restart_feed: Box::new(anew), waits: self.terms.waits, limit: selection.limit }))
    }

    /// The sending hours of the rows. `None` if they are unlimited.
    fn sending_hours(&self, run: &Run, header: &ListHeader) -> Result<Option<SendingRules>, Error> {
        let windows: Vec<_> = self
            .terms
            .effective_windows(self.destination.profile())
            .map(|SendingWindow { window, zone }| Ok((window.clone(), resolve_zone(zone, header)?)))
            .collect::<Result<_, Error>>()?;
        let home = self.brief.home_zone();
        let until = self.terms.end_time(&home, run.began_at);
        let keeps = !windows.is_empty() || until.is_some();
        Ok(keeps.then_some(SendingRules { windows, home, until }))
    }
}

impl Session {
    /// Skips the remaining rows of an expired run and ends it.
    pub(super) async fn expire_run(&self, run: &Run, lease: Lease, ending: &mut SendEnding) -> Result<(), Error> {
        let (ledger, request) = (self.adapters.ledger.as_ref(), &self.launch.request);
        let Some(until) = self.sending_terms().end_time(&self.inputs().campaign.home_zone(), run.began_at) else {
            return Ok(());
        };
        let everybody = request.limit.is_none() && request.rows.is_none();
        let is_through = ending.stopped.as_ref().is_none_or(|stop| stop.kind == StopKind::Limit);
        if ending.expired && is_through && (everybody || (self.adapters.clock)() >= until) {
            let snapshot = Snapshot::load(ledger, run, true).await?;
            let all = |_: &Recipe, _: &RecordRef<'_>| true;
            let count = self.skip_rows(run, lease, &snapshot, EXPIRED, all).await?;
            failpoint::pass("expired.kept");
            ending.counts.shift(RowState::Planned, RowState::Skipped, count);
            ending.stopped = None;
        }
        let is_over = ending.stopped.is_none() && ending.counts.get(RowState::Planned) == 0;
        // The process that skipped them might have died before it recorded the end.
        if is_over && ledger.load_excluded_rows(run.key).await?.sets().any(|(.., reason, _)| reason == EXPIRED) {
            ending.stopped = Some(Stop::new(
                StopKind::DeadlineReached,
                "the time in `delivery.until` has passed, so the remaining recipients were skipped",
            ));
        }
        Ok(())
    }
}

/// Refuses to begin a run that would skip all recipients.
pub(super) fn refuse_expired(inputs: &Inputs, now: Timestamp) -> Result<(), Error> {
    check_until_over(&inputs.campaign, now).map_or(Ok(()), |finding| Err(Error::Findings(vec![finding])))
}

/// Refuses a run that can never send to these recipients: it would only skip all of them.
pub(super) fn refuse_unsendable_run(inputs: &Inputs, survey: &Survey, start: RunStart) -> Result<(), Error> {
    if survey.count_planned() == 0 {
        return Ok(());
    }
    let mut findings =
        check_timing(&inputs.campaign, inputs.destination.profile(), Some((survey, survey.count_planned())), start);
    findings.retain(Finding::is_error);
    if findings.is_empty() { Ok(()) } else { Err(Error::Findings(findings)) }
}

/// The source of further passes over a run's list.
#[derive(Clone)]
struct FeedSource {
    ledger: Arc<dyn Ledger>,
    run: Run,
    selection: delivery::SendSelection,
    shares: Option<ShardSource>,
}

impl FeedSource {
    /// The rows that are still planned after this many were begun.
    async fn open_feed(self, begun: u64) -> Result<Feed, Stop> {
        let Self { ledger, run, selection, shares } = self;
        let failed = |error: String| Stop::new(StopKind::Ledger, error);
        let snapshot = Snapshot::load(ledger.as_ref(), &run, true).await.map_err(|error| failed(error.to_string()))?;
        let thawed = open_copies(ledger.as_ref(), &run).await;
        let (_, prepared) = thawed.map_err(|_| failed("the stored inputs of the run cannot be read".to_owned()))?;
        let limit = selection.limit.map(|limit| limit.saturating_sub(begun));
        let Snapshot { settled, digests, renumbered, .. } = snapshot;
        let selection = delivery::SendSelection { settled, digests, renumbered, limit, ..selection };
        Ok(match shares {
            None => start_feed(prepared, run.ids, selection),
            Some(shares) => start_shard_feed(prepared, run.ids, selection, shares.repeat()),
        })
    }
}

fn resolve_zone(zone: &WindowZone, header: &ListHeader) -> Result<ZoneSource, Error> {
    Ok(match zone {
        WindowZone::Campaign => ZoneSource::Campaign,
        WindowZone::Recipient => ZoneSource::Country,
        WindowZone::Column(name) => match header.find_column(name) {
            Some(column) => ZoneSource::Column(column),
            None => return Err(Error::Findings(vec![missing_zone_column(name, header)])),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use campaign_manifest::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

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

    /// The seconds for which an unreachable gateway is tried.
    fn unreachable_seconds(folder: &TempDir, gateway: &str, stop_after: &str) -> u64 {
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, GATEWAYS).unwrap();
        fs::write(&file, format!("delivery: {{ {stop_after} }}\nrecipients: {{ file: a.csv }}\nchannels: [hlr]\n"))
            .unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        let destination = match gateway {
            "" => Destination::Rehearsal,
            name => Destination::Live(Box::new(gateways.find_profile(name).unwrap().clone())),
        };
        breaker_limits(
            &load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now())).value.unwrap().delivery,
            &destination,
            false,
        )
        .unreachable
        .as_secs()
    }

    #[test]
    fn unreachable_gateway_is_given_up_later_if_remote() {
        let folder = TempDir::new().unwrap();
        let by_default = ["", "near", "far", "mixed"].map(|gateway| unreachable_seconds(&folder, gateway, ""));
        assert_eq!(by_default, [10, 10, 1800, 1800]);
        let given =
            ["", "near", "far"].map(|gateway| unreachable_seconds(&folder, gateway, "stop_after: { unreachable: 2m }"));
        assert_eq!(given, [120; 3]);
    }
}
