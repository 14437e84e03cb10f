//! When the messages of a start may leave, and what becomes of those that may not any more.

use std::io::Read;
use std::sync::Arc;

use jiff::Timestamp;

use super::freeze::open_copies;
use super::launch::Session;
use super::sender::RunSender;
use super::{Error, Inputs};
use crate::audience::{ListHeader, RecordRef};
use crate::check::{CompiledCampaign, Recipe, RunStart, Survey, check_timing, check_until_over, missing_zone_column};
use crate::delivery::{
    self, Feed, SendEnding, SendingHours, SendingPasses, SendingRules, ShareDraw, Snapshot, Stop, ZoneSource,
    start_feed, start_share_feed,
};
use crate::failpoint;
use crate::finding::Finding;
use crate::ledger::{EXPIRED, Lease, Ledger, RowState, Run, StopKind};
use crate::manifest::{SendingWindow, WindowZone};

impl RunSender<'_> {
    /// How a start goes through its rows again; nothing where they may leave at any time. A rehearsal waits for no window, but
    /// where it keeps the pace of the real run.
    ///
    /// # Errors
    /// When the zones of recipients are in a column that the list of the run does not have.
    pub(super) fn plan_passes<R: Read>(
        &self,
        run: &Run,
        prepared: &CompiledCampaign<R>,
        (selection, shares): (&delivery::SendSelection, Option<&ShareDraw>),
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

    /// What the rows of a run keep; nothing where they may leave at any time.
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
    /// Skips who is left of a run whose time is over, and ends it.
    pub(super) async fn expire_run(&self, (run, lease): (&Run, Lease), ending: &mut SendEnding) -> Result<(), Error> {
        let (ledger, request) = (self.adapters.ledger.as_ref(), &self.launch.request);
        let Some(until) = self.sending_terms().end_time(&self.inputs().campaign.home_zone(), run.began_at) else {
            return Ok(());
        };
        let everybody = request.limit.is_none() && request.rows.is_none();
        let is_through = ending.stopped.as_ref().is_none_or(|stop| stop.kind == StopKind::Limit);
        if ending.expired && is_through && (everybody || (self.adapters.clock)() >= until) {
            let snapshot = Snapshot::load(ledger, run, true).await?;
            let all = |_: &Recipe, _: &RecordRef<'_>| true;
            let count = self.skip_rows((run, lease), &snapshot, (EXPIRED, all)).await?;
            failpoint::pass("expired.kept");
            ending.counts.shift(RowState::Planned, RowState::Skipped, count);
            ending.stopped = None;
        }
        let is_over = ending.stopped.is_none() && ending.counts.get(RowState::Planned) == 0;
        // Whoever skipped them may have died before the end was marked.
        if is_over && ledger.load_excluded_rows(run.key).await?.sets().any(|(.., reason, _)| reason == EXPIRED) {
            ending.stopped = Some(Stop::new(
                StopKind::DeadlineReached,
                "the time in `delivery.until` has passed, so the remaining recipients were skipped",
            ));
        }
        Ok(())
    }
}

/// Refuses to begin what would only have everybody skipped.
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

/// What begins the list of a run anew.
#[derive(Clone)]
struct FeedSource {
    ledger: Arc<dyn Ledger>,
    run: Run,
    selection: delivery::SendSelection,
    shares: Option<ShareDraw>,
}

impl FeedSource {
    /// The rows that are still planned, after so many left.
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
            Some(shares) => start_share_feed(prepared, run.ids, selection, shares.repeat()),
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
