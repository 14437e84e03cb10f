//! Resuming an unfinished run: changes since it began, and confirmation of the remaining messages.

use std::io::{self, BufReader};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::check_campaign::check_online;
use super::guard::{count_sent_by_day, find_capped_numbers};
use super::launch::{Preparation, RowExclusion, RunToSend, SelectionNotes, Session};
use super::list::{CampaignRecords, describe_list_changes, lists_match_except};
use super::plan::check_profile;
use super::ports::{Consent, ConsentInAdvance, confirm};
use super::{
    CampaignList, Error, InputChanges, Inputs, Proposal, RestOfRun, RunEvent, find_opted_out_numbers, run_blocking,
};
use campaign_core::domain::Row;
use campaign_engine::check::online::{Cost, MessagePrices};
use campaign_engine::check::{ALREADY_SENT, CompiledCampaign, REJECTED_IN_RUN, Survey, SurveyExclusions};
use campaign_engine::delivery::{FrozenInputs, FrozenRun, Snapshot};
use campaign_gateway::Balance;
use campaign_ledger::{CAPPED, CampaignLock, Ledger, LedgerError, ListReader, OPTED_OUT, RowState, Run};
use campaign_manifest::Profile;

/// The messages to confirm before more messages of an existing run are sent.
pub(super) struct RestToConfirm {
    /// The number of recipients who get a message.
    pub(super) number: u64,
    /// The highest cost of the messages, if known.
    pub(super) cost: Option<Cost>,
    /// The balance of the account, if it is known.
    pub(super) balance: Option<Balance>,
    /// The remaining messages, if a person sees the proposal.
    pub(super) rest: Option<RestOfRun>,
    /// Whether the messages are retried.
    pub(super) is_retry: bool,
}

impl Session {
    /// Asks for confirmation to resume a run, and selects the run for sending.
    pub(super) async fn resume_run(
        &self,
        run: Run,
        edition: &str,
        lock: Arc<CampaignLock>,
    ) -> Result<Preparation, Error> {
        let suppressed = self.read_suppressed_numbers().await?;
        let consents = self.read_required_consents().await?;
        let snapshot = Snapshot::load(self.adapters.ledger.as_ref(), &run, false).await?;
        let planned = snapshot.counts.get(RowState::Planned);
        let open = list_open_rows(&run, &snapshot);
        let number =
            if planned == 0 { 0 } else { self.launch.request.choose_rows(&open, run.last_row())?.len().min(planned) };
        if let Some(profile) = self.inputs().destination.profile() {
            check_profile(&self.adapters, profile).await?;
        }
        let survey_rest = || self.survey_rest(&run, |survey| self.choose_open_rows(&open, survey));
        // Plans, approval rules and limits count only recipients who can still get a message.
        let must_count_recipients =
            self.required_plan.is_some() || self.live_rule().is_some() || self.launch.request.limit.is_some();
        let surveyed = match must_count_recipients && number > 0 {
            true => survey_rest().await.ok(),
            false => None,
        };
        // These rows are recorded as skipped. Otherwise, recipients who are not counted now could get a message later,
        // when a cap or an opt-out has ended.
        let exclusions = surveyed.as_ref().map(|rest| self.list_exclusions(&rest.survey.survey)).unwrap_or_default();
        // If no rows are found, the earlier number remains as an upper limit.
        let count_sendable = |rest: Option<&RestOfRun>| rest.map(|rest| rest.rows.len()).filter(|rows| *rows > 0);
        let number = count_sendable(surveyed.as_ref()).map_or(number, |rows| rows.min(number));
        let approval = self.find_resume_approval(&run, &snapshot, number).await?;
        let number = approval.as_ref().map_or(number, |usable| number.min(usable.remaining));
        self.refuse_unapproved(approval.is_some(), number)?;
        self.refuse_unapproved_end(&run, number).await?;
        // Without a plan, the operator is asked for the usual confirmation.
        let consent: &dyn Consent =
            if approval.is_some() && self.required_plan.is_some() { &ConsentInAdvance } else { self.consent.as_ref() };
        if let Some(profile) = self.inputs().destination.remote_profile() {
            let rest = match number > 0 && consent.shows_proposals() {
                true if surveyed.is_some() => surveyed,
                true => survey_rest().await.ok(),
                false => None,
            };
            // Recipients might have opted out since the run was interrupted.
            let number = count_sendable(rest.as_ref()).map_or(number, |rows| rows.min(number));
            let cost = match (&rest, number > 0 && consent.can_confirm()) {
                (Some(rest), true) => Some(self.compute_rest_cost(profile, rest)),
                (None, true) => Some(self.compute_open_cost(profile, &run, &open).await?),
                (_, false) => None,
            };
            let balance = match cost.clone().filter(|_| self.queries_gateway_first(consent)) {
                Some(cost) => {
                    check_online(&self.adapters, self.inputs(), profile, cost, consent.shows_proposals()).await?
                }
                None => None,
            };
            let rest = RestToConfirm { number, cost, balance, rest, is_retry: false };
            self.confirm_rest(consent, profile, &run, &snapshot, rest).await?;
        }
        let limit = match &approval {
            Some(usable) => {
                self.use_resume_approval(&run, usable).await?;
                self.launch.request.limit.map(|limit| limit.min(usable.remaining))
            }
            None => self.launch.request.limit,
        };
        let earlier_edition = run.edition != edition;
        let other_edition = earlier_edition.then(|| run.edition.clone());
        (self.adapters.observer)(RunEvent::GoingOn { run: run.name(), other_edition });
        let (snapshot, notes) = (Some(snapshot), SelectionNotes { earlier_edition, ..SelectionNotes::default() });
        let selected =
            RunToSend { snapshot, suppressed, consents, exclusions, limit, notes, ..RunToSend::new(run, lock) };
        Ok(Preparation::Send(Box::new(selected)))
    }

    /// Asks for confirmation to send messages to recipients of a run. If there are no recipients, no confirmation is
    /// necessary.
    pub(super) async fn confirm_rest(
        &self,
        consent: &dyn Consent,
        profile: &Profile,
        run: &Run,
        snapshot: &Snapshot,
        RestToConfirm { number, cost, balance, rest, is_retry }: RestToConfirm,
    ) -> Result<(), Error> {
        if number == 0 {
            return Ok(());
        }
        let cost = cost.filter(|_| !profile.prices.is_empty());
        let (balance, rest) = (balance.as_ref(), rest.as_ref());
        let proposal = Proposal::Resume { run, snapshot, profile, number, cost, balance, rest, is_retry };
        confirm(consent, proposal).await
    }

    /// The maximum cost of the messages of a run that this invocation would send.
    pub(super) fn compute_rest_cost(&self, profile: &Profile, RestOfRun { survey, rows, .. }: &RestOfRun) -> Cost {
        Cost::estimate(profile, &self.inputs().campaign.brief, &survey.survey, rows)
    }

    /// The rows that this invocation skips according to a survey, because their recipients opted out or reached a cap.
    fn list_exclusions(&self, survey: &Survey) -> Vec<RowExclusion> {
        let is_requested =
            |row: &u32| self.launch.request.rows.as_ref().is_none_or(|rows| rows.contains(Row::new(*row)));
        let exclude = |reason: &'static str| {
            let excluded = survey.left_out.sets().filter(|(_, why, _)| *why == reason).flat_map(|(.., rows)| rows);
            RowExclusion { rows: excluded.filter(is_requested).collect(), reason }
        };
        [OPTED_OUT, CAPPED].map(exclude).into()
    }

    /// Selects the unsettled rows that this invocation sends.
    fn choose_open_rows(&self, open: &RoaringBitmap, survey: &Survey) -> Result<RoaringBitmap, Error> {
        self.launch.request.choose_rows(&(open & survey.planned_rows()), survey.last_row)
    }

    /// Whether this invocation queries the gateway before it sends. If a necessary confirmation is impossible, the run
    /// ends without a request.
    pub(super) fn queries_gateway_first(&self, consent: &dyn Consent) -> bool {
        !self.launch.request.offline && consent.can_confirm()
    }

    /// Checks with the gateway that messages can be sent to these rows of a survey, and refuses to send if there are
    /// errors. Returns the balance, if known.
    pub(super) async fn check_new_messages(
        &self,
        profile: &Profile,
        survey: &Survey,
        rows: &RoaringBitmap,
        is_shown: bool,
    ) -> Result<Option<Balance>, Error> {
        let inputs = self.inputs();
        let cost = Cost::estimate(profile, &inputs.campaign.brief, survey, rows);
        check_online(&self.adapters, inputs, profile, cost, is_shown).await
    }

    /// The cost of the unsettled rows that this invocation sends.
    async fn compute_open_cost(&self, profile: &Profile, run: &Run, open: &RoaringBitmap) -> Result<Cost, Error> {
        self.compute_chosen_cost(profile, run, |survey| self.choose_open_rows(open, survey)).await
    }

    /// Computes the cost of the rows that `choose` selects from a survey of a run's list.
    ///
    /// The list is surveyed again only if prices are known.
    pub(super) async fn compute_chosen_cost(
        &self,
        profile: &Profile,
        run: &Run,
        choose: impl FnOnce(&Survey) -> Result<RoaringBitmap, Error>,
    ) -> Result<Cost, Error> {
        let inputs = self.inputs();
        let prices = match MessagePrices::for_campaign(profile, &inputs.campaign.brief) {
            Ok(prices) => prices,
            Err(missing) => return Ok(Cost::Unknown(missing)),
        };
        let surveyed = self.load_inputs_with_stored_list(run).await?;
        // Recipients with a message or an opt-out are not among the remaining rows, so no exclusions are needed.
        let survey = run_blocking(move || surveyed.run_survey(&SurveyExclusions::default(), None)).await??.survey;
        Ok(Cost::AtMost(prices.max_cost((&survey).into(), &choose(&survey)?)))
    }
}

/// Finds the recipients that a survey skips if it counts the messages of a resumed run: the settled rows of the run,
/// and recipients who opted out or reached a cap since the run began.
pub(super) async fn find_settled_exclusions(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    run: &Run,
) -> Result<SurveyExclusions, Error> {
    let snapshot = Snapshot::load(ledger, run, false).await?;
    let mut settled = snapshot.left_out.filter(|row, _| snapshot.settled.contains(row.get()));
    for row in (&snapshot.settled - settled.rows()).iter().map(Row::new) {
        let reason = match snapshot.row_state(row) {
            RowState::Rejected | RowState::NotSent => REJECTED_IN_RUN,
            _ => ALREADY_SENT,
        };
        settled.insert(row, RowState::Skipped, reason);
    }
    Ok(SurveyExclusions {
        settled,
        opted_out: find_opted_out_numbers(ledger, inputs).await?.numbers,
        capped: find_capped_numbers(Some(ledger), inputs).await?,
        sent_by_day: count_sent_by_day(ledger, inputs, &run.edition).await?,
        ..SurveyExclusions::default()
    })
}

/// The rows of an unfinished run that might still be sent, including blank rows of the list.
pub(super) fn list_open_rows(run: &Run, snapshot: &Snapshot) -> RoaringBitmap {
    let mut rows = RoaringBitmap::new();
    rows.insert_range(Row::HEADER.get() + 1..=run.last_row().get());
    rows - &snapshot.settled
}

/// Changes since a run began.
pub(super) struct RunChanges {
    /// The changed inputs. `None` if the inputs are the same.
    pub(super) changes: Option<InputChanges>,
    /// Whether `edition` in the campaign file is unchanged, so that a replacement run keeps the edition.
    pub(super) keeps_edition: bool,
}

impl Session {
    /// Finds the changes to the inputs since a run began.
    pub(super) async fn find_changes(&self, run: &Run) -> Result<RunChanges, Error> {
        compare_inputs(self.load_frozen(run).await, self.inputs()).await
    }
}

/// Finds the changes to the inputs since a run with these copies began. Unreadable copies count as a change.
pub(super) async fn compare_inputs(
    copies: Result<Arc<FrozenRun>, LedgerError>,
    inputs: &Arc<Inputs>,
) -> Result<RunChanges, Error> {
    let frozen_run = match copies {
        Ok(frozen) => frozen,
        Err(LedgerError::CopiesUnreadable { place, .. }) => return Ok(RunChanges::with_lost_copies(&place, false)),
        Err(error) => return Err(error.into()),
    };
    let inputs = Arc::clone(inputs);
    run_blocking(move || {
        let FrozenRun { inputs: frozen, copies, .. } = &*frozen_run;
        if !frozen_run.is_list_intact() {
            return Ok(RunChanges::with_lost_copies(copies.place(), true));
        }
        // A list that is not a file is not fetched again for the comparison. The run's copy stands in for it.
        let inputs = match inputs.campaign.recipients.list_file() {
            Some(_) => inputs,
            None => Arc::new(inputs.with_list(CampaignList::Copies(copies.clone()))),
        };
        let (campaign, (includes, sha256)) = (&inputs.campaign, inputs.compute_fingerprint()?);
        let describe_list = || {
            let current_list = inputs.open_list().map_err(|_| io::ErrorKind::Other.into());
            let before = CampaignRecords { list: copies.open_list(), brief: &frozen.brief };
            describe_list_changes(before, CampaignRecords { list: current_list, brief: &campaign.brief })
        };
        let is_same = frozen.recipients_sha256 == sha256
            || !frozen.forgotten.is_empty() && {
                let current_list = inputs.open_list().map_err(|_| io::ErrorKind::Other.into());
                let before = CampaignRecords { list: copies.open_list(), brief: &frozen.brief };
                let current = CampaignRecords { list: current_list, brief: &campaign.brief };
                lists_match_except(before, current, &frozen.forgotten)
            };
        let list_change = (!is_same).then(describe_list);
        let settings = frozen.describe_differences(&campaign.brief, &includes, None);
        let keeps_edition = frozen.brief.edition == campaign.brief.edition;
        Ok(RunChanges { changes: InputChanges::from_parts(settings, list_change, &campaign.recipients), keeps_edition })
    })
    .await?
}

impl RunChanges {
    /// The changes for a run whose copies are lost. The run can be replaced but not resumed; the replacement skips
    /// recipients with a message.
    fn with_lost_copies(place: &str, damaged: bool) -> Self {
        Self { changes: Some(InputChanges::Copies { place: place.to_owned(), damaged }), keeps_edition: false }
    }
}

/// Opens the copies of a run, so that current files do not affect what is sent.
///
/// # Errors
/// If the ledger has no copies of the run, or the copies are damaged.
pub async fn open_copies(
    ledger: &dyn Ledger,
    run: &Run,
) -> Result<(FrozenInputs, CompiledCampaign<BufReader<ListReader>>), Error> {
    let frozen = FrozenRun::load(ledger, run).await?;
    run_blocking(move || {
        let compiled = frozen.open_list()?;
        Ok((frozen.inputs, compiled))
    })
    .await?
}
