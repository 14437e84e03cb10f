//! Sending a run: claim, engine, what is asked before and after, end.

use std::io::BufReader;
use std::sync::Arc;
use std::time::Instant;

use super::find::reload_run;
use super::freeze::open_copies;
use super::launch::{RunToSend, Session};
use super::resume::list_open_rows;
use super::sender::{RunSender, SendJob};
use super::{Connection, EndedRun, Error, Inputs, RunEvent, RunOutcome};
use crate::audience::RecordRef;
use crate::check::{CompiledCampaign, Recipe};
use crate::delivery::{SendEnding, Snapshot, Stop};
use crate::failpoint;
use crate::gateway::{Gateway, RunWebhookUrls};
use crate::ledger::{Claim, Lease, ListReader, OPTED_OUT, RowState, Run, StopKind};
use crate::manifest::{Rate, SendingTerms};
use crate::report::{RunFigures, RunTerms};

impl Session {
    /// Sends the run and tells how it ended.
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
            // Read while it was held; what the claim made doubt was read as doubt.
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
                self.skip_rows((&run, lease), &snapshot, (OPTED_OUT, is_on_a_list)).await?
            }
        };
        let snapshot = if left_out > 0 { Snapshot::load(ledger, &run, false).await? } else { snapshot };
        let hook = self.launch.hook.as_ref().or(receipts.as_ref().map(|receipts| &receipts.hook));
        let hook = hook.map(|hook| hook.for_run(run.name()));
        let mut ending =
            self.run_engine((&run, lease), Arc::clone(&gateway), (prepared, hook), (&snapshot, limit, retry)).await?;
        let sharing = reload_run(ledger, run.key).await?.sharding;
        let run = Run { sharding: sharing, ..run };
        self.expire_run((&run, lease), &mut ending).await?;
        tracing::info!(run = run.name(), stopped = ending.stopped.is_some(), "sent");
        if can_reconcile_at_end(&ending) {
            self.reconcile_last(&run, lease, gateway.as_ref(), &mut ending).await?;
        }
        let played = match connection.into_sandbox() {
            Some(sandbox) => self.play_scenario((&run, sandbox), gateway.as_ref(), receipts, &mut ending).await?,
            None => None,
        };
        let ended = self.end_run((run, lease), ending, (snapshot.parts, began), played).await?;
        Ok(RunOutcome::Ended(Box::new(EndedRun { before, cancelled_in, earlier_edition, unconfirmed, ..ended })))
    }

    /// Sends what the start selects, alone or with others, which the observer hears.
    async fn run_engine(
        &self,
        (run, lease): (&Run, Lease),
        gateway: Arc<dyn Gateway>,
        (prepared, hook): (CompiledCampaign<BufReader<ListReader>>, Option<RunWebhookUrls>),
        (snapshot, limit, retry): (&Snapshot, Option<u64>, bool),
    ) -> Result<SendEnding, Error> {
        let (request, observer) = (&self.launch.request, &self.adapters.observer);
        let terms = self.sending_terms();
        let later = self.count_planned_for_later(run, snapshot, limit);
        observer(RunEvent::SendingBegins { run: run.name(), recipients: run.recipients, later });
        let ended = if request.shared || run.sharding.is_some() {
            self.send_shared_run((run, lease), gateway, hook, (&terms, retry)).await
        } else {
            let start = SendJob { run, lease, snapshot, rows: request.rows.clone(), limit, retry, hook, shares: None };
            self.build_sender(&terms).run_engine(start, gateway, prepared).await
        };
        observer(RunEvent::SendingEnded);
        let mut ending = ended?;
        // Too many rejections stop what would follow; after the last row nothing does.
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

    /// How many planned rows this call does not send to.
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

    /// How the campaign is sent by this call.
    pub(super) fn sending_terms(&self) -> SendingTerms {
        let request = &self.launch.request;
        SendingTerms::from_campaign(&self.inputs().campaign, request.keep_going, !request.no_wait)
    }

    /// What is kept of them for who looks at the run.
    pub(super) fn stored_terms(&self) -> RunTerms {
        let (terms, destination) = (self.sending_terms(), &self.inputs().destination);
        let keeps_time = destination.is_live() || self.launch.request.real_time;
        let rate = destination.limit_delivery(terms.delivery).rate.filter(|_| keeps_time).and_then(Rate::per_second);
        let currency = destination.profile().and_then(|profile| profile.currency.clone());
        RunTerms { rate, budget: terms.limits, currency }
    }

    /// What it is sent with.
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

/// Whether there is somebody to ask about rows in doubt, and time for it.
fn can_reconcile_at_end(ending: &SendEnding) -> bool {
    let doubt = ending.counts.get(RowState::InDoubt) > 0;
    let kind = ending.stopped.as_ref().map(|stop| stop.kind);
    let gone =
        |kind| matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::LeaseLost | StopKind::KeyRefused);
    doubt && !kind.is_some_and(gone)
}
