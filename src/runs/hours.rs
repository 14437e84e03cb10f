//! When the messages of a start may leave, and what becomes of those that may not any more.

use std::io::Read;
use std::sync::Arc;

use jiff::Timestamp;

use super::freeze::thaw;
use super::launch::Session;
use super::sender::Sender;
use super::{Error, Inputs};
use crate::audience::{Header, RecordRef};
use crate::check::{CompiledCampaign, Recipe, RunStart, Survey, timing_findings, until_over, zone_column};
use crate::delivery::{
    self, Ending, Feed, Hours, Keeping, Passes, ShareDraw, Snapshot, Stop, ZoneOf, feed, feed_shares,
};
use crate::failpoint;
use crate::finding::Finding;
use crate::ledger::{EXPIRED, Lease, Ledger, Run, State, StopKind};
use crate::manifest::{SendingWindow, WindowZone};

impl Sender<'_> {
    /// How a start goes through its rows again; nothing where they may leave at any time. A rehearsal waits for no window, but
    /// where it keeps the pace of the real run.
    ///
    /// # Errors
    /// When the zones of recipients are in a column that the list of the run does not have.
    pub(super) fn passes<R: Read>(
        &self,
        run: &Run,
        prepared: &CompiledCampaign<R>,
        (selection, shares): (&delivery::Selection, Option<&ShareDraw>),
    ) -> Result<Option<Passes>, Error> {
        if !self.keeps_time {
            return Ok(None);
        }
        let Some(keeping) = self.keeping(run, prepared.reader.header())? else { return Ok(None) };
        let hours = Arc::new(Hours::new(keeping, Arc::new(self.adapters.clock)));
        let anew = Again {
            ledger: Arc::clone(&self.adapters.ledger),
            run: run.clone(),
            selection: delivery::Selection { hours: Some(Arc::clone(&hours)), ..selection.clone() },
            shares: shares.cloned(),
        };
        let anew = move |begun: u64| -> delivery::Feeding { Box::pin(anew.clone().feed(begun)) };
        Ok(Some(Passes { hours, anew: Box::new(anew), waits: self.terms.waits, limit: selection.limit }))
    }

    /// What the rows of a run keep; nothing where they may leave at any time.
    fn keeping(&self, run: &Run, header: &Header) -> Result<Option<Keeping>, Error> {
        let windows: Vec<_> = self
            .terms
            .windows(self.destination.profile())
            .map(|SendingWindow { window, zone }| Ok((window.clone(), zone_of(zone, header)?)))
            .collect::<Result<_, Error>>()?;
        let home = self.brief.home();
        let until = self.terms.until(&home, run.began_at);
        let keeps = !windows.is_empty() || until.is_some();
        Ok(keeps.then_some(Keeping { windows, home, until }))
    }
}

impl Session {
    /// Skips who is left of a run whose time is over, and ends it.
    pub(super) async fn expire(&self, (run, lease): (&Run, Lease), ending: &mut Ending) -> Result<(), Error> {
        let (ledger, request) = (self.adapters.ledger.as_ref(), &self.launch.request);
        let Some(until) = self.terms().until(&self.inputs().campaign.home(), run.began_at) else { return Ok(()) };
        let everybody = request.limit.is_none() && request.rows.is_none();
        let is_through = ending.stopped.as_ref().is_none_or(|stop| stop.kind == StopKind::Limit);
        if ending.expired && is_through && (everybody || (self.adapters.clock)() >= until) {
            let snapshot = Snapshot::read(ledger, run, true).await?;
            let all = |_: &Recipe, _: &RecordRef<'_>| true;
            let count = self.leave_out((run, lease), &snapshot, (EXPIRED, all)).await?;
            failpoint::pass("expired.kept");
            ending.counts.shift(State::Planned, State::Skipped, count);
            ending.stopped = None;
        }
        let is_over = ending.stopped.is_none() && ending.counts.get(State::Planned) == 0;
        // Whoever skipped them may have died before the end was marked.
        if is_over && ledger.left_out(run.key).await?.sets().any(|(.., reason, _)| reason == EXPIRED) {
            ending.stopped = Some(Stop::new(
                StopKind::Until,
                "the time in `delivery.until` has passed, so the remaining recipients were skipped",
            ));
        }
        Ok(())
    }
}

/// Refuses to begin what would only have everybody skipped.
pub(super) fn refuse_over(inputs: &Inputs, now: Timestamp) -> Result<(), Error> {
    until_over(&inputs.campaign, now).map_or(Ok(()), |finding| Err(Error::Findings(vec![finding])))
}

/// Refuses a run that can never send to these recipients: it would only skip all of them.
pub(super) fn refuse_never_sends(inputs: &Inputs, survey: &Survey, start: RunStart) -> Result<(), Error> {
    if survey.planned() == 0 {
        return Ok(());
    }
    let mut findings =
        timing_findings(&inputs.campaign, inputs.destination.profile(), Some((survey, survey.planned())), start);
    findings.retain(Finding::is_error);
    if findings.is_empty() { Ok(()) } else { Err(Error::Findings(findings)) }
}

/// What begins the list of a run anew.
#[derive(Clone)]
struct Again {
    ledger: Arc<dyn Ledger>,
    run: Run,
    selection: delivery::Selection,
    shares: Option<ShareDraw>,
}

impl Again {
    /// The rows that are still planned, after so many left.
    async fn feed(self, begun: u64) -> Result<Feed, Stop> {
        let Self { ledger, run, selection, shares } = self;
        let failed = |error: String| Stop::new(StopKind::Ledger, error);
        let snapshot = Snapshot::read(ledger.as_ref(), &run, true).await.map_err(|error| failed(error.to_string()))?;
        let thawed = thaw(ledger.as_ref(), &run).await;
        let (_, prepared) = thawed.map_err(|_| failed("the stored inputs of the run cannot be read".to_owned()))?;
        let limit = selection.limit.map(|limit| limit.saturating_sub(begun));
        let Snapshot { settled, digests, renumbered, .. } = snapshot;
        let selection = delivery::Selection { settled, digests, renumbered, limit, ..selection };
        Ok(match shares {
            None => feed(prepared, run.ids, selection),
            Some(shares) => feed_shares(prepared, run.ids, selection, shares.again()),
        })
    }
}

fn zone_of(zone: &WindowZone, header: &Header) -> Result<ZoneOf, Error> {
    Ok(match zone {
        WindowZone::Campaign => ZoneOf::Campaign,
        WindowZone::Recipient => ZoneOf::Country,
        WindowZone::Column(name) => match header.column(name) {
            Some(column) => ZoneOf::Column(column),
            None => return Err(Error::Findings(vec![zone_column(name, header)])),
        },
    })
}
