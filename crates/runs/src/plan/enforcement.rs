//! Enforcement of plans and approvals before a run or a retry sends anything.
//!
//! Unapproved messages are counted across all runs of an edition, so that several small runs cannot avoid an approval.

use jiff::Timestamp;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::approval::verify_token;
use super::{PlanContent, PlanOptions, PlanRefusal, PlannedCampaign, list_valid_digests, plan_campaign, store_plan};
use crate::begin::freeze_inputs;
use crate::launch::Session;
use crate::{ConsentRefusal, Error, ListSurvey, ProposalKind, RunEvent, RunRequest, list_campaign_runs};
use campaign_core::domain::Row;
use campaign_engine::delivery::{FrozenInputs, Snapshot};
use campaign_ledger::{
    Approval, ApprovalFilter, EnvelopeReader, Ledger, LedgerError, NumberFilter, Plan, PlanRecord, RowState, Run,
    RunId, StoredApproval,
};
use campaign_manifest::{ApprovalRule, Profile};

/// A plan that a request must follow.
pub(crate) struct RequiredPlan {
    /// The digest of the plan.
    pub(super) digest: String,
    /// The planned campaign, if this ledger has it.
    pub(super) planned: Option<Box<PlannedCampaign>>,
    /// The valid approvals of the plan.
    pub(super) approvals: Vec<StoredApproval>,
}

/// Finds the plan whose digest has this prefix. Returns an error if no plan, or more than one plan, has this prefix.
pub(super) async fn find_plan(ledger: &dyn Ledger, prefix: &str) -> Result<Plan, Error> {
    let mut plans = ledger.find_plans(&prefix.to_lowercase()).await?;
    let refusal = match (plans.len(), prefix.is_empty()) {
        (1, false) => return Ok(plans.remove(0)),
        (0, _) | (_, true) => PlanRefusal::Unknown { digest: prefix.to_owned() },
        _ => PlanRefusal::Ambiguous { digest: prefix.to_owned() },
    };
    Err(Error::Plan(refusal))
}

/// Whether an approval is signed by an approver in the rule; without a rule, every approval is valid.
pub(super) fn is_valid_approval(approval: &Approval, rule: Option<&ApprovalRule>) -> bool {
    rule.is_none_or(|rule| verify_token(&approval.token, &rule.by).as_ref() == Some(approval))
}

/// Loads the valid approvals of this digest.
pub(super) async fn load_approvals(
    ledger: &dyn Ledger,
    digest: &str,
    rule: Option<&ApprovalRule>,
) -> Result<Vec<StoredApproval>, Error> {
    let mut approvals = ledger.list_approvals(ApprovalFilter::Digest(digest)).await?;
    approvals.retain(|stored| is_valid_approval(&stored.approval, rule));
    Ok(approvals)
}

impl RequiredPlan {
    /// Loads the plan that a request names, directly or by an approval token. Returns `None` if the request names no
    /// plan.
    pub(crate) async fn load_for_request(
        ledger: &dyn Ledger,
        request: &RunRequest,
        profile: Option<&Profile>,
    ) -> Result<Option<Self>, Error> {
        let rule = profile.and_then(|profile| profile.approval.as_ref());
        let digest = match (&request.approval, &request.plan) {
            (None, None) => return Ok(None),
            (None, Some(digest)) => find_plan(ledger, digest).await?.digest,
            (Some(token), digest) => import_approval(ledger, token, digest.as_deref(), rule).await?,
        };
        let planned = ledger.find_plans(&digest).await?.first().map(PlanContent::parse_campaign).transpose()?;
        let approvals = load_approvals(ledger, &digest, rule).await?;
        Ok(Some(Self { digest, planned, approvals }))
    }

    /// The number of planned messages, or the number of approved messages if the plan is in another ledger.
    pub(super) fn count_messages(&self) -> u64 {
        let approved = || self.approvals.iter().map(|stored| stored.approval.up_to).max();
        self.planned.as_ref().map(|planned| planned.messages).or_else(approved).unwrap_or(0)
    }

    /// Finds a usable approval for at least this many messages.
    pub(super) fn find_usable_approval(&self, now: Timestamp, messages: u64) -> Option<&Approval> {
        find_usable_approval(&self.approvals, now, messages)
    }
}

/// Finds a usable approval in `approvals` for at least this many messages.
pub(super) fn find_usable_approval(approvals: &[StoredApproval], now: Timestamp, messages: u64) -> Option<&Approval> {
    let is_usable = |stored: &&StoredApproval| stored.is_valid(now) && messages <= stored.approval.up_to;
    approvals.iter().find(is_usable).map(|stored| &stored.approval)
}

/// Stores an approval from another machine and returns its digest.
async fn import_approval(
    ledger: &dyn Ledger,
    token: &str,
    digest: Option<&str>,
    rule: Option<&ApprovalRule>,
) -> Result<String, Error> {
    let Some(rule) = rule else { return Err(Error::Plan(PlanRefusal::NoApprovers)) };
    let proven = verify_token(token, &rule.by).filter(|approval| !approval.standing);
    let approval = proven.ok_or(Error::Plan(PlanRefusal::NotProven))?;
    if let Some(other) = digest.filter(|digest| !approval.digest.starts_with(&digest.to_lowercase())) {
        let (digest, approved) = (other.to_owned(), approval.digest);
        return Err(Error::Plan(PlanRefusal::OtherPlan { digest, approved }));
    }
    let digest = approval.digest.clone();
    ledger.store_record(PlanRecord::Approval(approval)).await?;
    Ok(digest)
}

/// The states of rows that were never sent.
const UNSENT_STATES: [RowState; 4] = [RowState::Planned, RowState::NotSent, RowState::Skipped, RowState::Invalid];

pub(crate) struct UsableApproval {
    pub(crate) approval: Approval,
    /// Whether the resumed run has already used it.
    pub(crate) is_used: bool,
    /// The number of further messages that the approval covers.
    pub(crate) remaining: u64,
}

/// Messages without an approval, which are compared with the profile's `above`.
#[derive(Clone, Copy)]
struct UnapprovedMessages {
    /// The number of messages that are to be sent now.
    number: u64,
    /// The number of recipients of the edition who already have an unapproved message.
    sent: u64,
}

impl Session {
    /// Refuses programs, URLs and sources that differ from the plan, before the list is fetched.
    pub(crate) fn refuse_changed_resources(&self) -> Result<(), Error> {
        let Some(plan) = &self.required_plan else { return Ok(()) };
        let Some(planned) = &plan.planned else { return Ok(()) };
        planned.refuse_changed_resources(&plan.digest, self.inputs())
    }

    /// Refuses a new run that differs from the plan.
    pub(crate) fn refuse_unplanned(&self, survey: &ListSurvey) -> Result<(), Error> {
        match &self.required_plan {
            Some(_) => self.refuse_other_plan(
                &freeze_inputs(self.inputs(), survey),
                &[PlanOptions::from_request(&self.launch.request, self.inputs())],
            ),
            None => Ok(()),
        }
    }

    /// Finds the approval that a new run to these rows uses, if there is one. Unapproved messages of the runs
    /// that `is_in_edition` selects are counted too.
    ///
    /// # Errors
    /// If there are more messages than planned, or a required approval is missing.
    pub(crate) async fn find_new_run_approval(
        &self,
        survey: &ListSurvey,
        rows: &RoaringBitmap,
        is_in_edition: impl Fn(&Run) -> bool,
    ) -> Result<Option<Approval>, Error> {
        let (number, now) = (rows.len(), (self.adapters.clock)());
        let total = UnapprovedMessages { number, sent: self.count_unapproved(is_in_edition).await? };
        let approval = match &self.required_plan {
            Some(plan) => {
                self.refuse_more_messages(number)?;
                plan.find_usable_approval(now, number).filter(|_| number > 0).cloned()
            }
            None => self.find_occurrence_approval(&freeze_inputs(self.inputs(), survey), total).await?,
        };
        match &approval {
            Some(approval) => {
                (self.adapters.observer)(RunEvent::Approved { by: approval.by.clone(), at: approval.at });
            }
            None if self.required_rule(total).is_some() => {
                let (planned, _) = plan_campaign(self.inputs(), survey, rows, &self.launch.request);
                let digest = store_plan(&self.adapters, planned, &self.inputs().destination).await?;
                return Err(self.unapproved_error(Some(digest), total));
            }
            None => {}
        }
        Ok(approval)
    }

    /// Refuses to send without an approval if the request permits only approved messages.
    pub(crate) fn refuse_unapproved(&self, is_approved: bool, number: u64) -> Result<(), Error> {
        match self.launch.request.approved_only && !is_approved && number > 0 {
            true => {
                Err(Error::NotConfirmed { proposal: ProposalKind::Run(number), refusal: ConsentRefusal::NoTerminal })
            }
            false => Ok(()),
        }
    }

    /// Refuses to end a run with nothing left to send if the request permits only approved messages and the run used no
    /// approval.
    pub(crate) async fn refuse_unapproved_end(&self, run: &Run, number: u64) -> Result<(), Error> {
        let Some(plan) = self.required_plan.as_ref().filter(|_| self.launch.request.approved_only && number == 0)
        else {
            return Ok(());
        };
        match self.find_used_approval(run, std::slice::from_ref(&plan.digest)).await? {
            Some(_) => Ok(()),
            None => Err(Error::Plan(PlanRefusal::NoRecipientsLeft {
                digest: plan.digest.clone(),
                file: self.inputs().campaign.file.clone(),
                gateway: self.inputs().campaign.brief.gateway.clone(),
                run: run.name(),
            })),
        }
    }

    /// Finds the approval to resume a run with this many more messages, if an approval is required or the request names
    /// a plan.
    ///
    /// # Errors
    /// If the run does not belong to the plan, has more messages than planned, or lacks a required approval.
    pub(crate) async fn find_resume_approval(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        number: u64,
    ) -> Result<Option<UsableApproval>, Error> {
        let is_other_run = |other: &Run| other.edition == run.edition && other.key != run.key;
        let (sent, unapproved) = self.count_sent_and_unapproved(run, snapshot).await?;
        let total = UnapprovedMessages { number, sent: unapproved + self.count_unapproved(is_other_run).await? };
        let is_required = self.required_rule(total).is_some();
        if self.required_plan.is_none() && !is_required {
            return Ok(None);
        }
        let frozen = &self.load_frozen(run).await?.inputs;
        // The ledger records the run's round, but not whether `--again` began the run, so both options are tried.
        let options = [false, true]
            .map(|again| PlanOptions { again, ..PlanOptions::from_request(&self.launch.request, self.inputs()) });
        self.refuse_other_plan(frozen, &options)?;
        let mut valid_digests = Vec::from_iter(self.launch.request.schedule_digest.clone());
        for options in &options {
            valid_digests.extend(list_valid_digests(frozen, &self.inputs().destination, options)?);
        }
        let used_approval = self.find_used_approval(run, &valid_digests).await?;
        let approved = sent - unapproved;
        if let Some(approval) = used_approval.filter(|approval| approved < approval.up_to) {
            let remaining = approval.up_to - approved;
            // With a limit, only some of the remaining recipients were approved, so `remaining` caps their number.
            if number <= remaining || self.launch.request.limit.is_some() {
                return Ok(Some(UsableApproval { approval, is_used: true, remaining }));
            }
        }
        let now = (self.adapters.clock)();
        let approval = match &self.required_plan {
            Some(plan) => {
                self.refuse_more_messages(number)?;
                plan.find_usable_approval(now, number).filter(|_| number > 0).cloned()
            }
            None => self.find_occurrence_approval(frozen, total).await?,
        };
        match approval {
            Some(approval) => Ok(Some(UsableApproval { remaining: approval.up_to, approval, is_used: false })),
            None if is_required => Err(self.unapproved_error(None, total)),
            None => Ok(None),
        }
    }

    /// Refuses a retry of this many messages if an approval is required and no approval of the run covers
    /// them.
    pub(crate) async fn refuse_unapproved_retry(&self, run: &Run, number: u64) -> Result<(), Error> {
        let is_in_edition = |other: &Run| other.edition == run.edition;
        let total = UnapprovedMessages { number, sent: self.count_unapproved(is_in_edition).await? };
        if self.required_rule(total).is_none() {
            return Ok(());
        }
        let ledger = self.adapters.ledger.as_ref();
        let frozen = &self.load_frozen(run).await?.inputs;
        let current = PlanOptions::default().with_current_terms_of(self.inputs());
        let mut options = vec![current.clone(), PlanOptions { again: true, ..current }];
        for used in ledger.list_approvals(ApprovalFilter::Run(run.key)).await? {
            let plans = ledger.find_plans(&used.approval.digest).await?;
            let planned = plans.first().map(PlanContent::parse_campaign).transpose()?;
            options.extend(planned.map(|planned| planned.options.with_current_terms_of(self.inputs())));
        }
        let digests = options.iter().map(|options| list_valid_digests(frozen, &self.inputs().destination, options));
        let used_approval = self.find_used_approval(run, &digests.collect::<Result<Vec<_>, _>>()?.concat()).await?;
        match used_approval.filter(|approval| number <= approval.up_to) {
            Some(_) => Ok(()),
            None => Err(self.unapproved_error(None, total)),
        }
    }

    /// Uses an approval for a resumed run.
    pub(crate) async fn use_resume_approval(&self, run: &Run, usable: &UsableApproval) -> Result<(), Error> {
        let ledger = self.adapters.ledger.as_ref();
        if usable.is_used || ledger.use_approval(&usable.approval.token, Some(run.key)).await? {
            return Ok(());
        }
        Err(Self::used_approval_error(&usable.approval))
    }

    /// The error for an approval that was used in the meantime.
    pub(crate) fn used_approval_error(approval: &Approval) -> Error {
        Error::Plan(PlanRefusal::Used { digest: approval.digest.clone() })
    }

    /// The approval rule of the profile.
    fn approval_rule(&self) -> Option<&ApprovalRule> {
        self.inputs().destination.profile().and_then(|profile| profile.approval.as_ref())
    }

    /// The approval rule, if it requires an approval for these messages. Returns `None` for a rehearsal and for a
    /// gateway on this machine.
    fn required_rule(&self, total: UnapprovedMessages) -> Option<&ApprovalRule> {
        self.live_rule().filter(|rule| total.number > 0 && total.sent + total.number > u64::from(rule.above))
    }

    /// The approval rule of the profile, if its gateway is live and not on this machine.
    pub(crate) fn live_rule(&self) -> Option<&ApprovalRule> {
        self.inputs().destination.remote_profile().and_then(|profile| profile.approval.as_ref())
    }

    /// Counts the recipients of unapproved messages in the runs that `is_counted` selects. A recipient counts once per
    /// run.
    async fn count_unapproved(&self, is_counted: impl Fn(&Run) -> bool) -> Result<u64, Error> {
        let (Some(rule), ledger) = (self.live_rule(), self.adapters.ledger.as_ref()) else { return Ok(0) };
        let mut runs = list_campaign_runs(ledger, self.inputs()).await?;
        runs.retain(is_counted);
        count_unapproved(ledger, &runs, rule).await
    }

    /// Counts the rows with a message, and the rows with an unapproved message.
    async fn count_sent_and_unapproved(&self, run: &Run, snapshot: &Snapshot) -> Result<(u64, u64), Error> {
        let sent_states = RowState::ALL.into_iter().filter(|state| !UNSENT_STATES.contains(state));
        let sent: u64 = sent_states.map(|state| snapshot.counts.get(state)).sum();
        let (Some(rule), ledger) = (self.live_rule(), self.adapters.ledger.as_ref()) else { return Ok((sent, sent)) };
        let approvals = ledger.list_approvals(ApprovalFilter::Run(run.key)).await?;
        let Some(since) = find_approval_time(run, &approvals, rule) else { return Ok((sent, sent)) };
        let is_sent = |row| snapshot.states.recorded_state(row).is_some_and(|state| !UNSENT_STATES.contains(&state));
        Ok((sent, count_attempted_before(ledger, run.key, since, is_sent).await?.min(sent)))
    }

    /// Finds a valid approval of one of these digests that a run has used.
    async fn find_used_approval(&self, run: &Run, digests: &[String]) -> Result<Option<Approval>, Error> {
        let used = self
            .adapters
            .ledger
            .list_approvals(ApprovalFilter::Run(run.key))
            .await?
            .into_iter()
            .map(|stored| stored.approval);
        let mut valid_approvals = used
            .filter(|approval| digests.contains(&approval.digest) && is_valid_approval(approval, self.approval_rule()));
        Ok(valid_approvals.next())
    }

    /// Finds the approval of an occurrence, or of all occurrences of its schedule. A person who starts a run names a
    /// plan instead.
    async fn find_occurrence_approval(
        &self,
        current: &FrozenInputs,
        total: UnapprovedMessages,
    ) -> Result<Option<Approval>, Error> {
        let request = &self.launch.request;
        let Some(schedule_digest) = request.schedule_digest.as_ref().filter(|_| self.required_rule(total).is_some())
        else {
            return Ok(None);
        };
        let ledger = self.adapters.ledger.as_ref();
        let plan_digests = list_valid_digests(
            current,
            &self.inputs().destination,
            &PlanOptions::from_request(request, self.inputs()),
        )?;
        for digest in plan_digests.iter().chain([schedule_digest]) {
            let approvals = load_approvals(ledger, digest, self.approval_rule()).await?;
            if let Some(approval) = find_usable_approval(&approvals, (self.adapters.clock)(), total.number) {
                return Ok(Some(approval.clone()));
            }
        }
        Ok(None)
    }

    fn unapproved_error(
        &self,
        digest: Option<String>,
        UnapprovedMessages { number, sent }: UnapprovedMessages,
    ) -> Error {
        let (campaign, above) = (&self.inputs().campaign, self.live_rule().map_or(0, |rule| rule.above));
        let (file, gateway) = (campaign.file.clone(), campaign.brief.gateway.clone());
        Error::Plan(PlanRefusal::Unapproved { digest, file, gateway, number, sent, above })
    }

    /// Refuses inputs that have the digest of the required plan with none of these options.
    fn refuse_other_plan(&self, current: &FrozenInputs, options: &[PlanOptions]) -> Result<(), Error> {
        let Some(plan) = &self.required_plan else { return Ok(()) };
        let destination = &self.inputs().destination;
        for options in options {
            if list_valid_digests(current, destination, options)?.contains(&plan.digest) {
                return Ok(());
            }
        }
        let planned = plan.planned.as_ref().zip(options.first());
        let differences = planned.map(|(planned, options)| planned.describe_differences(current, destination, options));
        let campaign = &self.inputs().campaign;
        Err(Error::Plan(PlanRefusal::Changed {
            digest: plan.digest.clone(),
            file: campaign.file.clone(),
            gateway: campaign.brief.gateway.clone(),
            differences: differences.unwrap_or_default(),
        }))
    }

    /// Refuses more messages than the required plan has.
    fn refuse_more_messages(&self, number: u64) -> Result<(), Error> {
        match self.required_plan.as_ref().filter(|plan| number > plan.count_messages()) {
            None => Ok(()),
            Some(plan) => Err(Error::Plan(PlanRefusal::More {
                digest: plan.digest.clone(),
                file: self.inputs().campaign.file.clone(),
                gateway: self.inputs().campaign.brief.gateway.clone(),
                planned: plan.count_messages(),
                now: number,
            })),
        }
    }
}

/// Counts the recipients to whom these runs sent an unapproved message. A recipient counts once per run.
pub(super) async fn count_unapproved(
    ledger: &dyn Ledger,
    runs: impl IntoIterator<Item = &Run>,
    rule: &ApprovalRule,
) -> Result<u64, Error> {
    let mut sent = 0;
    for run in runs {
        let reached = ledger.load_numbers(NumberFilter::Sent(&[run.key])).await?.len();
        sent += match find_approval_time(run, &ledger.list_approvals(ApprovalFilter::Run(run.key)).await?, rule) {
            None => reached,
            // A purged run has no envelopes left to compare. The approval dates from before its end, so none of its
            // messages count.
            Some(_) if run.purged_at.is_some() => 0,
            Some(since) => reached.min(count_attempted_before(ledger, run.key, since, |_| true).await?),
        };
    }
    Ok(sent)
}

/// Finds the time since which a run has had a valid approval.
pub(super) fn find_approval_time(run: &Run, approvals: &[StoredApproval], rule: &ApprovalRule) -> Option<Timestamp> {
    let valid = approvals.iter().filter(|stored| is_valid_approval(&stored.approval, Some(rule)));
    // The ledger records only the last use. If another run has used a standing approval since, that approval covered
    // this run from its start.
    let approval_time = |stored: &StoredApproval| {
        stored.used.filter(|used| used.run == Some(run.key)).map_or(run.began_at, |used| used.at)
    };
    valid.map(approval_time).min()
}

/// Counts the rows that `is_counted` selects and whose last attempt began before `time`.
pub(super) async fn count_attempted_before(
    ledger: &dyn Ledger,
    run: RunId,
    time: Timestamp,
    is_counted: impl Fn(Row) -> bool,
) -> Result<u64, LedgerError> {
    let (mut last_attempts, mut envelopes) = (FxHashMap::default(), EnvelopeReader::new(ledger, run));
    while let Some(envelope) = envelopes.next_envelope().await? {
        for sent in &envelope.rows {
            last_attempts.insert(sent.row, envelope.begun_at);
        }
    }
    Ok(last_attempts.into_iter().filter(|(row, begun_at)| *begun_at < time && is_counted(*row)).count() as u64)
}
