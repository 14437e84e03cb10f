//! Sending a run: claiming it, storing its terms, running the engine within the sending hours, and ending it.

use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use super::find::reload_run;
use super::guard::combine_caps;
use super::launch::{RowExclusion, RunToSend, Session};
use super::number_files::SuppressionWatch;
use super::policy::refuse_ignored_opt_outs;
use super::recipient_consent::RowsToJudge;
use super::results::SentRun;
use super::resume::list_open_rows;
use super::{Adapters, Connection, Error, Inputs, ListSurvey, RunEvent, RunOutcome, run_blocking};
use campaign_content::audience::{Chunk, ListHeader, RecordRef};
use campaign_core::domain::{Budget, Row, RowSet};
use campaign_core::failpoint;
use campaign_core::finding::Finding;
use campaign_engine::check::online::MessagePrices;
use campaign_engine::check::{
    CompiledCampaign, Recipe, RunStart, Survey, check_immediate_run, check_timing, check_until_passed,
    missing_zone_column_finding,
};
use campaign_engine::delivery::{
    BreakerLimits, Feed, FeedFuture, FrozenRun, Interrupt, LateOptOuts, RunOptOuts, SendContext, SendEnding,
    SendOptions, SendSelection, SendingHours, SendingPasses, SendingRules, ShardSource, SharedPace, Snapshot, Stop,
    ZoneSource, send_operations, shard_size, start_feed, start_shard_feed,
};
use campaign_engine::report::{RunFigures, RunTerms};
use campaign_gateway::{Gateway, RunWebhookUrls};
use campaign_ledger::{
    Allowance, Bounds, Claim, EXPIRED, Lease, Ledger, ListReader, OPTED_OUT, OptOutReach, OptOutScope, Ownership,
    RowState, RowUpdate, Run, StopKind,
};
use campaign_manifest::{
    CampaignBrief, DeliverySettings, Destination, Percentage, Profile, Rate, SendingTerms, SendingWindow, WindowZone,
};

impl Session {
    /// Sends the run and returns how it ended.
    pub(super) async fn send_run(&self, selected: RunToSend) -> Result<RunOutcome, Error> {
        let began = Instant::now();
        let (ledger, inputs, request) = (self.adapters.ledger.as_ref(), self.inputs(), &self.launch.request);
        let RunToSend { run, lock, snapshot, suppressed, consents, exclusions, limit, is_retry, notes } = selected;
        let Claim { lease, in_doubt: requests } = ledger.claim_run(&lock, run.key).await?;
        failpoint::pass("run.claimed");
        if requests > 0 {
            (self.adapters.observer)(RunEvent::DoubtFromBefore { requests });
        }
        let frozen = self.load_frozen(&run).await?;
        let compiled = open_frozen_list(&frozen).await?;
        let (key, scenario) = (self.launch.key.clone(), request.scenario.clone().unwrap_or_default());
        let receipts = self.start_rehearsed_receipts()?;
        let receiver = receipts.as_ref().map(|receipts| receipts.receiver.clone());
        let connection = Connection::open(&inputs.destination, key, scenario, receiver).await?;
        let gateway = connection.create_client(
            self.adapters.connect,
            frozen.inputs.brief.endpoint,
            inputs.campaign.delivery.timeout,
        )?;
        RunFigures::store_terms(ledger, run.key, self.stored_terms()).await;
        let snapshot = match snapshot {
            // This snapshot was read while the campaign was locked, so it already contains the rows that the claim put
            // in doubt.
            Some(snapshot) => snapshot,
            None => Snapshot::load(ledger, &run, false).await?,
        };
        let snapshot = match self.reconcile_at_start(&run, lease, gateway.as_ref(), &snapshot).await? {
            true => Snapshot::load(ledger, &run, false).await?,
            false => snapshot,
        };
        let resends = snapshot.list_planned_resends();
        let skipped = match suppressed.is_empty() {
            true => 0,
            false => {
                let is_suppressed = move |recipe: &Recipe, record: &RecordRef<'_>| {
                    recipe.parse_phone(*record).is_some_and(|phone| suppressed.contains(phone.to_u64()))
                };
                self.skip_rows(&run, lease, &snapshot, OPTED_OUT, is_suppressed).await?
            }
        };
        let snapshot = if skipped > 0 { Snapshot::load(ledger, &run, false).await? } else { snapshot };
        let skipped = self.skip_excluded_rows(&run, lease, &snapshot, exclusions).await?;
        let snapshot = if skipped > 0 { Snapshot::load(ledger, &run, false).await? } else { snapshot };
        let rows_to_check = RowsToJudge { run: &run, lease, snapshot: &snapshot, header: compiled.reader.header() };
        let skipped = self.skip_rows_without_consent(rows_to_check, consents.as_ref()).await?;
        let snapshot = if skipped > 0 { Snapshot::load(ledger, &run, false).await? } else { snapshot };
        let hook = self.launch.hook.as_ref().or(receipts.as_ref().map(|receipts| &receipts.hook));
        let hook = hook.map(|hook| hook.for_run(run.name()));
        let terms = self.sending_terms();
        let sender = RunSender {
            adapters: &self.adapters,
            interrupt: &self.interrupt,
            terms: &terms,
            destination: &inputs.destination,
            is_paced: self.applies_rate_and_hours(),
            gateway: Arc::clone(&gateway),
            hook,
            late_opt_outs: SuppressionWatch::start(inputs),
            is_retry,
        };
        let rows = request.rows.clone();
        let job = SendJob { run: &run, lease, frozen, snapshot: &snapshot, rows, limit, shards: None };
        let mut ending = self.send_rows(sender, job, compiled).await?;
        let sharding = reload_run(ledger, run.key).await?.sharding;
        let run = Run { sharding, ..run };
        self.expire_run(&run, lease, &mut ending).await?;
        tracing::info!(run = run.name(), stopped = ending.stopped.is_some(), "sending ended");
        if can_reconcile_at_end(&ending) {
            self.reconcile_at_end(&run, lease, gateway.as_ref(), &mut ending).await?;
        }
        let played = match connection.into_sandbox() {
            Some(sandbox) => self.play_scenario(&run, sandbox, gateway.as_ref(), receipts, &mut ending).await?,
            None => None,
        };
        let has_resends = !run.orders.is_empty() || !resends.is_empty();
        let ended =
            SentRun { run, lease, ending, has_resends, resends, notes, parts_before: snapshot.parts, began, played };
        Ok(RunOutcome::Ended(Box::new(self.end_run(ended).await?)))
    }

    /// Sends the selected rows, alone or with workers, and reports events.
    async fn send_rows(
        &self,
        sender: RunSender<'_>,
        job: SendJob<'_>,
        compiled: CompiledCampaign<BufReader<ListReader>>,
    ) -> Result<SendEnding, Error> {
        let (run, request, observer) = (job.run, &self.launch.request, &self.adapters.observer);
        let later = self.count_planned_for_later(run, job.snapshot, job.limit);
        let counts = job.snapshot.counts.clone();
        observer(RunEvent::SendingBegins { run: run.name(), recipients: run.recipients, later, counts });
        let ended = if request.shared || run.sharding.is_some() {
            self.send_shared_run(sender, run, job.lease).await
        } else {
            sender.run_engine(job, compiled).await
        };
        observer(RunEvent::SendingEnded);
        let mut ending = ended?;
        // The circuit breaker protects the remaining rows. If no rows remain, the run has ended normally.
        let stopped = ending.stopped.as_ref().map(|stop| stop.kind);
        let has_rows_left =
            [RowState::Planned, RowState::Sending].into_iter().any(|state| ending.counts.get(state) > 0);
        if stopped == Some(StopKind::Breaker) && !has_rows_left {
            ending.stopped = None;
        }
        if ending.stopped.is_none() && request.is_partial() && ending.counts.get(RowState::Planned) > 0 {
            ending.stopped = Some(Stop::new(StopKind::Limit, "all requested rows were processed"));
        }
        Ok(ending)
    }

    /// Counts the planned rows that this invocation does not send.
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

    /// The terms under which this invocation sends.
    pub(super) fn sending_terms(&self) -> SendingTerms {
        let (request, inputs) = (&self.launch.request, self.inputs());
        let profile = inputs.destination.profile();
        SendingTerms::from_campaign(&inputs.campaign, profile, request.keep_going, !request.no_wait)
    }

    /// The terms to store for reports.
    pub(super) fn stored_terms(&self) -> RunTerms {
        let (terms, destination) = (self.sending_terms(), &self.inputs().destination);
        let rate = destination
            .limit_delivery(terms.delivery)
            .rate
            .filter(|_| self.applies_rate_and_hours())
            .and_then(Rate::per_second);
        let currency = destination.profile().and_then(|profile| profile.currency.clone());
        RunTerms { rate, budget: terms.limits, currency }
    }

    /// Whether the rate and the sending hours are observed: always in a live run, but in a rehearsal only in real time.
    pub(super) fn applies_rate_and_hours(&self) -> bool {
        self.inputs().destination.is_live() || self.launch.request.real_time
    }
}

/// Whether rows in doubt can be reconciled now.
fn can_reconcile_at_end(ending: &SendEnding) -> bool {
    let has_doubt = ending.counts.get(RowState::InDoubt) > 0;
    let kind = ending.stopped.as_ref().map(|stop| stop.kind);
    let prevents_inquiries =
        |kind| matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::LeaseLost | StopKind::KeyRefused);
    has_doubt && !kind.is_some_and(prevents_inquiries)
}

/// The time for polling the first messages of an asynchronous run.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that does not change while a process sends a run: adapters, terms and gateway.
pub(super) struct RunSender<'s> {
    pub(super) adapters: &'s Adapters,
    pub(super) interrupt: &'s watch::Receiver<Interrupt>,
    pub(super) terms: &'s SendingTerms,
    pub(super) destination: &'s Destination,
    /// Whether the rate and the sending hours are observed, as in [`Session::applies_rate_and_hours`].
    pub(super) is_paced: bool,
    pub(super) gateway: Arc<dyn Gateway>,
    /// The webhook of the messages.
    pub(super) hook: Option<RunWebhookUrls>,
    /// Finds recipients who opt out in a suppression file while the run is sent. `None` if no such file applies.
    pub(super) late_opt_outs: Option<Arc<dyn LateOptOuts>>,
    /// Whether rows are retried. In a retry, a first rejection proves nothing about the other rows.
    pub(super) is_retry: bool,
}

/// Rows of a run that are sent together: all rows of an invocation, or the shards that a worker has drawn.
pub(super) struct SendJob<'r> {
    pub(super) run: &'r Run,
    pub(super) lease: Lease,
    /// The copies of the run.
    pub(super) frozen: Arc<FrozenRun>,
    /// The state of the selected rows.
    pub(super) snapshot: &'r Snapshot,
    /// The requested rows. `None` for all.
    pub(super) rows: Option<RowSet>,
    /// The maximum number of messages.
    pub(super) limit: Option<u64>,
    /// The drawn shards, if workers send the run too.
    pub(super) shards: Option<ShardSource>,
}

impl RunSender<'_> {
    /// Sends the selected rows of a list with the engine.
    pub(super) async fn run_engine(
        &self,
        job: SendJob<'_>,
        compiled: CompiledCampaign<BufReader<ListReader>>,
    ) -> Result<SendEnding, Error> {
        let SendJob { run, frozen, snapshot, shards, .. } = &job;
        refuse_ignored_opt_outs(run, self.destination)?;
        let run_observer = Arc::clone(&self.adapters.observer);
        let mut selection = SendSelection {
            rows: job.rows.clone(),
            limit: job.limit,
            hook: self.hook.clone(),
            prices: self.find_prices(&frozen.inputs.brief),
            ..SendSelection::from_snapshot(snapshot)
        };
        let passes = self.plan_passes(&job, compiled.reader.header(), &selection)?;
        selection.hours = passes.as_ref().map(|passes| Arc::clone(&passes.hours));
        let feed = match shards {
            None => start_feed(compiled, run.ids, selection),
            Some(shards) => start_shard_feed(compiled, run.ids, selection, shards.clone()),
        };
        let context = SendContext {
            ledger: Arc::clone(&self.adapters.ledger),
            gateway: Arc::clone(&self.gateway),
            observer: Arc::new(move |event| run_observer(RunEvent::Sending(event))),
            interrupt: self.interrupt.clone(),
            passes: passes.map(Arc::new),
            late_opt_outs: self.late_opt_outs.clone(),
        };
        Ok(send_operations(self.build_options(&job), context, feed, snapshot.counts.clone()).await)
    }

    /// Finds the prices of the campaign's messages, if the profile has all of these prices.
    fn find_prices(&self, brief: &CampaignBrief) -> Option<MessagePrices> {
        MessagePrices::for_campaign(self.destination.profile()?, brief).ok()
    }

    /// Builds the bounds of the run: budget, message caps, daily limits and countries. Returns `None` if nothing is
    /// bounded. A rehearsal has no cost limit, because it costs nothing.
    fn build_bounds(&self, brief: &CampaignBrief, snapshot: &Snapshot) -> Option<Bounds> {
        let Budget { cost, recipients } = self.terms.limits;
        let budget = Budget { cost: cost.filter(|_| self.destination.is_live()), recipients };
        // A rehearsal reaches no recipients.
        let caps = match self.destination.is_live() {
            true => {
                let own_caps = [self.terms.delivery.cap, self.terms.policy.cap];
                combine_caps(brief.purpose, own_caps.into_iter().flatten(), self.destination)
            }
            false => Vec::new(),
        };
        // A rehearsal that ignores the rate does not wait for another day.
        let per_day = self.terms.per_day.clone().filter(|_| self.is_paced);
        let countries = self.terms.allowed_countries(brief, self.destination.profile());
        let bounds = Bounds { budget, caps, per_day, countries, ..Bounds::default() };
        (bounds != Bounds::default()).then(|| Bounds { repeated: snapshot.repeated.clone(), ..bounds })
    }

    fn build_options(&self, job: &SendJob<'_>) -> SendOptions {
        let (destination, SendJob { run, lease, frozen, snapshot, .. }) = (self.destination, job);
        let delivery = destination.limit_delivery(self.terms.delivery);
        let rate = delivery.rate.filter(|_| self.is_paced).and_then(Rate::per_second);
        let is_proven = run.sharding.as_ref().is_some_and(|sharding| sharding.proven);
        SendOptions {
            lease: *lease,
            repeated: snapshot.repeated.clone(),
            rate,
            allowance: Allowance::of_account(
                destination.account_name(),
                destination.is_loopback(),
                destination.account_rate().per_second(),
            ),
            bounds: self.build_bounds(&frozen.inputs.brief, snapshot).map(Arc::new),
            waits_at_bounds: self.terms.waits,
            batch: delivery.batch.get() as usize,
            in_flight: delivery.in_flight.get() as usize,
            timeout: delivery.timeout,
            limits: breaker_limits(&delivery, destination, self.terms.keep_going),
            proven: is_proven || self.is_retry || snapshot.has_accepted(),
            first_messages_timeout: if destination.is_live() { WARM_UP_TIMEOUT } else { Duration::ZERO },
            sharing: job.shards.as_ref().map(|_| self.shared_rate_limit(run, rate)),
            opt_outs: Arc::new(opt_out_rules(run, destination, self.adapters.clock)),
            is_attended: false,
        }
    }

    /// The number of rows in a shard.
    pub(super) fn shard_size(&self) -> u32 {
        let delivery = self.destination.limit_delivery(self.terms.delivery);
        shard_size(delivery.rate.and_then(Rate::per_second), delivery.batch.get() as usize)
    }

    /// The rate limit that processes sharing a run observe together: the campaign's rate, if it is below the account's
    /// rate.
    fn shared_rate_limit(&self, run: &Run, rate: Option<f64>) -> SharedPace {
        let account_rate = self.destination.account_rate().per_second();
        let run_rate = rate.filter(|rate| account_rate.is_none_or(|account| *rate < account));
        SharedPace {
            pace: run_rate.map(|rate| Allowance::new(format!("{} of {}", run.name(), run.account), Some(rate))),
        }
    }
}

/// The rules by which rejections in a run become opt-outs. In a rehearsal, they never do.
pub(super) fn opt_out_rules(run: &Run, destination: &Destination, clock: fn() -> Timestamp) -> RunOptOuts {
    RunOptOuts {
        errors: destination.profile().map(|profile| profile.opt_out_errors.clone()).unwrap_or_default(),
        run: run.name(),
        scope: OptOutScope::from_reply_to(run.suppression.purpose),
        reach: if destination.is_loopback() { OptOutReach::LoopbackGateways } else { OptOutReach::AllGateways },
        clock,
    }
}

fn breaker_limits(delivery: &DeliverySettings, destination: &Destination, keep_going: bool) -> BreakerLimits {
    let stop_after = &delivery.stop_after;
    BreakerLimits {
        doubtful_envelopes: stop_after.doubtful_envelopes.get(),
        same_error_in_a_row: stop_after.same_error_in_a_row.get(),
        rejected: stop_after.rejected.to_fraction(),
        opted_out: stop_after.opted_out.map(Percentage::to_fraction),
        unreachable: stop_after.unreachable_timeout(destination.profile().is_none_or(Profile::is_loopback)),
        keep_going,
    }
}

impl RunSender<'_> {
    /// Plans the later passes over the rows. Returns `None` if the sending hours are unlimited, or if the run ignores
    /// them. A rehearsal ignores them, except in real time.
    ///
    /// # Errors
    /// If the zones of recipients are in a column that the list of the run does not have.
    fn plan_passes(
        &self,
        job: &SendJob<'_>,
        header: &ListHeader,
        selection: &SendSelection,
    ) -> Result<Option<SendingPasses>, Error> {
        if !self.is_paced {
            return Ok(None);
        }
        let brief = &job.frozen.inputs.brief;
        let Some(rules) = sending_rules(self.terms, self.destination, job.run, brief, header)? else { return Ok(None) };
        let hours = Arc::new(SendingHours::new(rules, Arc::new(self.adapters.clock)));
        let source = FeedSource {
            ledger: Arc::clone(&self.adapters.ledger),
            run: job.run.clone(),
            frozen: Arc::clone(&job.frozen),
            selection: SendSelection { hours: Some(Arc::clone(&hours)), ..selection.clone() },
            shards: job.shards.clone(),
        };
        let restart_feed = Box::new(move |sent: u64| -> FeedFuture { Box::pin(source.clone().open_feed(sent)) });
        Ok(Some(SendingPasses { hours, restart_feed, waits: self.terms.waits, limit: selection.limit }))
    }
}

/// The sending hours for the rows of a run. Returns `None` if the hours are unlimited.
///
/// # Errors
/// If the zones of recipients are in a column that the list of the run does not have.
pub(super) fn sending_rules(
    terms: &SendingTerms,
    destination: &Destination,
    run: &Run,
    brief: &CampaignBrief,
    header: &ListHeader,
) -> Result<Option<SendingRules>, Error> {
    let windows: Vec<_> = terms
        .effective_windows(destination.profile())
        .map(|SendingWindow { window, zone }| Ok((window.clone(), resolve_zone(zone, header)?)))
        .collect::<Result<_, Error>>()?;
    let home = brief.home_zone();
    let until = terms.end_time(&home, run.began_at);
    let is_limited = !windows.is_empty() || until.is_some();
    Ok(is_limited.then_some(SendingRules { windows, home, until }))
}

impl Session {
    /// Skips the remaining rows of an expired run, and sets the stop in `ending` if rows have expired.
    pub(super) async fn expire_run(&self, run: &Run, lease: Lease, ending: &mut SendEnding) -> Result<(), Error> {
        let (ledger, request) = (self.adapters.ledger.as_ref(), &self.launch.request);
        let Some(until) = self.sending_terms().end_time(&self.inputs().campaign.home_zone(), run.began_at) else {
            return Ok(());
        };
        let ended_normally = ending.stopped.as_ref().is_none_or(|stop| stop.kind == StopKind::Limit);
        if ending.expired && ended_normally && (!request.is_partial() || (self.adapters.clock)() >= until) {
            let snapshot = Snapshot::load(ledger, run, true).await?;
            let all = |_: &Recipe, _: &RecordRef<'_>| true;
            let count = self.skip_rows(run, lease, &snapshot, EXPIRED, all).await?;
            failpoint::pass("expired.kept");
            ending.counts.shift(RowState::Planned, RowState::Skipped, count);
            ending.stopped = None;
        }
        let is_over = ending.stopped.is_none() && ending.counts.get(RowState::Planned) == 0;
        // The process that skipped the expired rows might have died before it recorded the end.
        if is_over && self.has_expired_rows(run).await? {
            ending.stopped = Some(Stop::new(
                StopKind::DeadlineReached,
                "the remaining recipients were skipped, because they could not be sent to before `delivery.until`",
            ));
        }
        Ok(())
    }
}

impl Session {
    /// Whether rows of a run were skipped because the run expired. The run must no longer be sending. Expired retries
    /// do not count: their rows keep the earlier state.
    async fn has_expired_rows(&self, run: &Run) -> Result<bool, Error> {
        let ledger = self.adapters.ledger.as_ref();
        if ledger.load_excluded_rows(run.key).await?.sets().all(|(_, reason, _)| reason != EXPIRED) {
            return Ok(false);
        }
        let snapshot = Snapshot::load(ledger, run, false).await?;
        let mut expired = snapshot.left_out.sets().filter(|(_, reason, _)| *reason == EXPIRED);
        Ok(expired.any(|(_, _, rows)| rows.iter().any(|row| snapshot.row_state(Row::new(row)) == RowState::Skipped)))
    }

    /// Skips rows that can still be sent and that `is_selected` selects. Returns the number of rows that were skipped.
    ///
    /// # Errors
    /// If the copies of the run cannot be read, the ledger fails, or another process has the run.
    pub(super) async fn skip_rows(
        &self,
        run: &Run,
        lease: Lease,
        snapshot: &Snapshot,
        reason: &'static str,
        is_selected: impl Fn(&Recipe, &RecordRef<'_>) -> bool + Send + 'static,
    ) -> Result<u64, Error> {
        let open = list_open_rows(run, snapshot);
        if open.is_empty() {
            return Ok(0);
        }
        let mut compiled = open_frozen_list(&self.load_frozen(run).await?).await?;
        let rows = run_blocking(move || {
            let (mut chunk, mut rows) = (Chunk::new(), Vec::new());
            while compiled.reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
                let open = chunk.iter().filter(|record| open.contains(record.row.get()));
                rows.extend(open.filter(|record| is_selected(&compiled.recipe, record)).map(|record| record.row));
            }
            Ok::<_, Error>(rows)
        });
        self.record_skipped_rows(run, lease, rows.await??, reason).await
    }

    /// Skips the open rows among these exclusions. Returns the number of rows that were skipped.
    async fn skip_excluded_rows(
        &self,
        run: &Run,
        lease: Lease,
        snapshot: &Snapshot,
        exclusions: Vec<RowExclusion>,
    ) -> Result<u64, Error> {
        let (open, mut count) = (list_open_rows(run, snapshot), 0);
        for RowExclusion { rows, reason } in exclusions {
            let rows = (rows & &open).iter().map(Row::new).collect();
            count += self.record_skipped_rows(run, lease, rows, reason).await?;
        }
        Ok(count)
    }

    /// Records rows as skipped for a reason. Returns the number of rows.
    async fn record_skipped_rows(
        &self,
        run: &Run,
        lease: Lease,
        rows: Vec<Row>,
        reason: &'static str,
    ) -> Result<u64, Error> {
        let (ledger, count) = (self.adapters.ledger.as_ref(), rows.len() as u64);
        if count == 0 {
            return Ok(0);
        }
        tracing::info!(run = run.name(), rows = count, reason, "rows skipped");
        match ledger.update_rows(lease, RowUpdate::Skipped { rows, reason }).await? {
            Ownership::Held => Ok(count),
            Ownership::Lost => Err(Error::Taken { run: run.name() }),
        }
    }
}

/// Opens the list of a run with its compiled texts.
pub(super) async fn open_frozen_list(
    frozen: &Arc<FrozenRun>,
) -> Result<CompiledCampaign<BufReader<ListReader>>, Error> {
    let frozen = Arc::clone(frozen);
    Ok(run_blocking(move || frozen.open_list()).await??)
}

/// Refuses to begin a run after the campaign's `until`, when all recipients would be skipped.
pub(super) fn refuse_expired_campaign(inputs: &Inputs, now: Timestamp) -> Result<(), Error> {
    check_until_passed(&inputs.campaign, now).map_or(Ok(()), |finding| Err(Error::Findings(vec![finding])))
}

/// Refuses a run that can never send to these recipients and would only skip them.
pub(super) fn refuse_unsendable_run(inputs: &Inputs, listed: &ListSurvey, start: RunStart) -> Result<(), Error> {
    let Some(list) = survey_if_any_planned(&listed.survey) else { return Ok(()) };
    let campaign = listed.campaign_with_deadline(&inputs.campaign, start);
    let mut findings = check_timing(&campaign, inputs.destination.profile(), Some(list), start);
    findings.retain(Finding::is_error);
    if findings.is_empty() { Ok(()) } else { Err(Error::Findings(findings)) }
}

/// Refuses a run that begins now, cannot send to any of these recipients in time, and would only skip them.
pub(super) fn refuse_unsendable_start(inputs: &Inputs, survey: &Survey, now: Timestamp) -> Result<(), Error> {
    let Some(list) = survey_if_any_planned(survey) else { return Ok(()) };
    let finding = check_immediate_run(&inputs.campaign, inputs.destination.profile(), Some(list), now);
    finding.map_or(Ok(()), |finding| Err(Error::Findings(vec![finding])))
}

/// The survey and its number of planned rows. `None` if no rows are planned.
fn survey_if_any_planned(survey: &Survey) -> Option<(&Survey, u64)> {
    Some((survey, survey.count_planned())).filter(|(_, planned)| *planned > 0)
}

/// The source of further passes over a run's list.
#[derive(Clone)]
struct FeedSource {
    ledger: Arc<dyn Ledger>,
    run: Run,
    frozen: Arc<FrozenRun>,
    selection: SendSelection,
    shards: Option<ShardSource>,
}

impl FeedSource {
    /// Opens a feed of the rows that are still planned, after this many rows were sent.
    async fn open_feed(self, sent_rows: u64) -> Result<Feed, Stop> {
        let Self { ledger, run, frozen, selection, shards } = self;
        let failed = |error: String| Stop::new(StopKind::Ledger, error);
        let snapshot = Snapshot::load(ledger.as_ref(), &run, true).await.map_err(|error| failed(error.to_string()))?;
        let unreadable = || failed("the run's stored inputs cannot be read".to_owned());
        let frozen = match &shards {
            None => frozen,
            // A worker does not lock the campaign, so forgetting a recipient can replace the copies meanwhile.
            Some(_) => Arc::new(FrozenRun::load(ledger.as_ref(), &run).await.map_err(|_| unreadable())?),
        };
        let compiled = open_frozen_list(&frozen).await.map_err(|_| unreadable())?;
        let limit = selection.limit.map(|limit| limit.saturating_sub(sent_rows));
        let selection = SendSelection { limit, ..selection.with_snapshot(&snapshot) };
        Ok(match shards {
            None => start_feed(compiled, run.ids, selection),
            Some(shards) => start_shard_feed(compiled, run.ids, selection, shards.repeat()),
        })
    }
}

fn resolve_zone(zone: &WindowZone, header: &ListHeader) -> Result<ZoneSource, Error> {
    Ok(match zone {
        WindowZone::Campaign => ZoneSource::Campaign,
        WindowZone::Recipient => ZoneSource::Country,
        WindowZone::Column(name) => match header.find_column(name) {
            Some(column) => ZoneSource::Column(column),
            None => return Err(Error::Findings(vec![missing_zone_column_finding(name, header)])),
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

    /// Returns the number of seconds for which an unreachable gateway is retried.
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
    fn remote_gateway_is_retried_longer_than_a_local_gateway() {
        let folder = TempDir::new().unwrap();
        let default_limits = ["", "near", "far", "mixed"].map(|gateway| unreachable_seconds(&folder, gateway, ""));
        assert_eq!(default_limits, [10, 10, 1800, 1800]);
        let configured =
            ["", "near", "far"].map(|gateway| unreachable_seconds(&folder, gateway, "stop_after: { unreachable: 2m }"));
        assert_eq!(configured, [120; 3]);
    }
}
