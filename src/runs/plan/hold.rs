//! Holding a call to its plan, and a large one to its approval, before anything is sent.

use roaring::RoaringBitmap;

use super::edition::{count_attempted_before, count_unapproved, find_approval_time};
use super::made::plan_campaign;
use super::pin::{find_usable_approval, is_valid_approval, load_approvals};
use super::planned::store_plan;
use super::resources::list_valid_digests;
use super::{PlanContent, PlanOptions, PlanRefusal};
use crate::delivery::{FrozenInputs, Snapshot};
use crate::ledger::{Approval, RowState, Run};
use crate::manifest::ApprovalRule;
use crate::runs::freeze::freeze_inputs;
use crate::runs::launch::Session;
use crate::runs::{ConsentRefusal, Error, ListSurvey, ProposalKind, RunEvent, list_campaign_runs};

/// The states of rows to which nothing was sent by a run.
const UNTOUCHED: [RowState; 4] = [RowState::Planned, RowState::NotSent, RowState::Skipped, RowState::Invalid];

/// An approval that a call may use.
pub(in crate::runs) struct UsableApproval {
    /// The approval.
    pub(in crate::runs) approval: Approval,
    /// Whether the run that goes on has it already.
    pub(in crate::runs) is_used: bool,
    /// How many more messages it is for.
    pub(in crate::runs) left: u64,
}

/// Messages without an approval, which are compared with the profile's `above`.
#[derive(Clone, Copy)]
struct UnapprovedMessages {
    /// How many would be sent now.
    number: u64,
    /// How many recipients of the edition have one already.
    sent: u64,
}

impl Session {
    /// Refuses a plan of other programs, addresses and sources, before the list is fetched.
    pub(in crate::runs) fn refuse_other_resources(&self) -> Result<(), Error> {
        let planned = self.required_plan.as_ref().and_then(|pin| Some((pin.planned.as_ref()?, pin)));
        planned.map_or(Ok(()), |(planned, pin)| planned.refuse_other_resources(&pin.digest, self.inputs()))
    }

    /// Refuses a new run that is not what was planned.
    pub(in crate::runs) fn refuse_unplanned(&self, survey: &ListSurvey) -> Result<(), Error> {
        match &self.required_plan {
            Some(_) => self.refuse_other_plan(
                &freeze_inputs(self.inputs(), survey),
                &[PlanOptions::from_request(&self.launch.request, self.inputs())],
            ),
            None => Ok(()),
        }
    }

    /// The approval that a new run to these rows uses, if there is one. All runs of its edition count.
    ///
    /// # Errors
    /// When they are more than were planned, or need an approval that nobody gave.
    pub(in crate::runs) async fn find_begin_approval(
        &self,
        survey: &ListSurvey,
        rows: &RoaringBitmap,
        in_edition: impl Fn(&Run) -> bool,
    ) -> Result<Option<Approval>, Error> {
        let (number, now) = (rows.len(), (self.adapters.clock)());
        let total = UnapprovedMessages { number, sent: self.count_unapproved(in_edition).await? };
        let approval = match &self.required_plan {
            Some(pin) => {
                self.refuse_more_messages(number)?;
                pin.find_usable(now, number).filter(|_| number > 0).cloned()
            }
            None => self.find_occurrence_approval(&freeze_inputs(self.inputs(), survey), total).await?,
        };
        match &approval {
            Some(approval) => {
                (self.adapters.observer)(RunEvent::Approved { by: approval.by.clone(), at: approval.at });
            }
            None if self.required_rule(total).is_some() => {
                let (planned, _) = plan_campaign(self.inputs(), survey, (rows, &self.launch.request));
                let digest = store_plan(&self.adapters, planned, &self.inputs().destination).await?;
                return Err(self.unapproved_error(Some(digest), total));
            }
            None => {}
        }
        Ok(approval)
    }

    /// Refuses messages to so many people that nobody approved, where nothing but an approval will do.
    pub(in crate::runs) fn refuse_unapproved(&self, approved: bool, number: u64) -> Result<(), Error> {
        match self.launch.request.approved_only && !approved && number > 0 {
            true => Err(Error::NotConfirmed { what: ProposalKind::Run(number), refusal: ConsentRefusal::NoTerminal }),
            false => Ok(()),
        }
    }

    /// Refuses to end a run without messages if only an approval will do, and the run used none of its plan.
    pub(in crate::runs) async fn refuse_unapproved_end(&self, run: &Run, number: u64) -> Result<(), Error> {
        let Some(pin) = self.required_plan.as_ref().filter(|_| self.launch.request.approved_only && number == 0) else {
            return Ok(());
        };
        match self.find_used_approval(run, std::slice::from_ref(&pin.digest)).await? {
            Some(_) => Ok(()),
            None => Err(Error::Plan(PlanRefusal::NobodyLeft {
                digest: pin.digest.clone(),
                file: self.inputs().campaign.file.clone(),
                gateway: self.inputs().campaign.brief.gateway.clone(),
                run: run.name(),
            })),
        }
    }

    /// The approval with which a run goes on to so many more people, if it is held to a plan that has one.
    ///
    /// # Errors
    /// When the run is not of the plan, they are more than were planned, or they need an approval that nobody gave.
    pub(in crate::runs) async fn find_resume_approval(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        number: u64,
    ) -> Result<Option<UsableApproval>, Error> {
        let is_other = |other: &Run| other.edition == run.edition && other.key != run.key;
        let (sent, unapproved) = self.count_sent(run, snapshot).await?;
        let total = UnapprovedMessages { number, sent: unapproved + self.count_unapproved(is_other).await? };
        let needed = self.required_rule(total).is_some();
        if self.required_plan.is_none() && !needed {
            return Ok(None);
        }
        let frozen = FrozenInputs::load_for_run(self.adapters.ledger.as_ref(), run).await?;
        // Whether the round was a new one is the run's own, and said only when it began.
        let options = [false, true]
            .map(|again| PlanOptions { again, ..PlanOptions::from_request(&self.launch.request, self.inputs()) });
        self.refuse_other_plan(&frozen, &options)?;
        let mut known = Vec::from_iter(self.launch.request.schedule_digest.clone());
        for options in &options {
            known.extend(list_valid_digests(&frozen, &self.inputs().destination, options)?);
        }
        let own = self.find_used_approval(run, &known).await?;
        let approved = sent - unapproved;
        if let Some(approval) = own.filter(|approval| approved < approval.up_to) {
            let left = approval.up_to - approved;
            // Those whom a limit leaves for later were never approved; all others were.
            if number <= left || self.launch.request.limit.is_some() {
                return Ok(Some(UsableApproval { approval, is_used: true, left }));
            }
        }
        let now = (self.adapters.clock)();
        let found = match &self.required_plan {
            Some(pin) => {
                self.refuse_more_messages(number)?;
                pin.find_usable(now, number).filter(|_| number > 0).cloned()
            }
            None => self.find_occurrence_approval(&frozen, total).await?,
        };
        match found {
            Some(approval) => Ok(Some(UsableApproval { left: approval.up_to, approval, is_used: false })),
            None if needed => Err(self.unapproved_error(None, total)),
            None => Ok(None),
        }
    }

    /// Refuses new messages to so many people of a run, in the place of others, where they need an approval and it has none.
    pub(in crate::runs) async fn refuse_unapproved_retry(&self, run: &Run, number: u64) -> Result<(), Error> {
        let in_edition = |other: &Run| other.edition == run.edition;
        let total = UnapprovedMessages { number, sent: self.count_unapproved(in_edition).await? };
        if self.required_rule(total).is_none() {
            return Ok(());
        }
        let ledger = self.adapters.ledger.as_ref();
        let frozen = FrozenInputs::load_for_run(ledger, run).await?;
        let now = PlanOptions::default().with_resources_of(self.inputs());
        let mut options = vec![now.clone(), PlanOptions { again: true, ..now }];
        for used in ledger.list_run_approvals(run.key).await? {
            let plans = ledger.find_plans(&used.approval.digest).await?;
            let planned = plans.first().map(PlanContent::parse_campaign).transpose()?;
            options.extend(planned.map(|planned| planned.options.with_resources_of(self.inputs())));
        }
        let known = options.iter().map(|options| list_valid_digests(&frozen, &self.inputs().destination, options));
        let own = self.find_used_approval(run, &known.collect::<Result<Vec<_>, _>>()?.concat()).await?;
        match own.filter(|approval| number <= approval.up_to) {
            Some(_) => Ok(()),
            None => Err(self.unapproved_error(None, total)),
        }
    }

    /// Uses an approval for a run that goes on.
    pub(in crate::runs) async fn use_resume_approval(&self, run: &Run, usable: &UsableApproval) -> Result<(), Error> {
        let ledger = self.adapters.ledger.as_ref();
        if usable.is_used || ledger.use_approval(&usable.approval.token, Some(run.key)).await? {
            return Ok(());
        }
        Err(Self::used_approval_error(&usable.approval))
    }

    /// The refusal of an approval that somebody used meanwhile.
    pub(in crate::runs) fn used_approval_error(approval: &Approval) -> Error {
        Error::Plan(PlanRefusal::Used { digest: approval.digest.clone() })
    }

    /// Who can approve, where the profile says so.
    fn approval_rule(&self) -> Option<&ApprovalRule> {
        self.inputs().destination.profile().and_then(|profile| profile.approval.as_ref())
    }

    /// Who has to approve these messages; nobody for a rehearsal and for a gateway on this machine.
    fn required_rule(&self, total: UnapprovedMessages) -> Option<&ApprovalRule> {
        self.live_rule().filter(|rule| total.number > 0 && total.sent + total.number > u64::from(rule.above))
    }

    /// The rule of a live gateway.
    fn live_rule(&self) -> Option<&ApprovalRule> {
        self.inputs().destination.remote_profile().and_then(|profile| profile.approval.as_ref())
    }

    /// The recipients with a message of these runs of the campaign that no approval covers.
    async fn count_unapproved(&self, counts: impl Fn(&Run) -> bool) -> Result<u64, Error> {
        let (Some(rule), ledger) = (self.live_rule(), self.adapters.ledger.as_ref()) else { return Ok(0) };
        let mut runs = list_campaign_runs(ledger, self.inputs()).await?;
        runs.retain(counts);
        count_unapproved(ledger, &runs, rule).await
    }

    /// How many rows of a run have a message, and for how many of them no approval was used.
    async fn count_sent(&self, run: &Run, snapshot: &Snapshot) -> Result<(u64, u64), Error> {
        let touched = RowState::ALL.into_iter().filter(|state| !UNTOUCHED.contains(state));
        let sent: u64 = touched.map(|state| snapshot.counts.get(state)).sum();
        let (Some(rule), ledger) = (self.live_rule(), self.adapters.ledger.as_ref()) else { return Ok((sent, sent)) };
        let approvals = ledger.list_run_approvals(run.key).await?;
        let Some(since) = find_approval_time(run, &approvals, rule) else { return Ok((sent, sent)) };
        let is_touched = |row| snapshot.states.recorded_state(row).is_some_and(|state| !UNTOUCHED.contains(&state));
        Ok((sent, count_attempted_before(ledger, run.key, since, is_touched).await?.min(sent)))
    }

    /// An approval of one of these digests that a run has used.
    async fn find_used_approval(&self, run: &Run, digests: &[String]) -> Result<Option<Approval>, Error> {
        let used = self.adapters.ledger.list_run_approvals(run.key).await?.into_iter().map(|kept| kept.approval);
        let mut own = used.filter(|own| digests.contains(&own.digest) && is_valid_approval(own, self.approval_rule()));
        Ok(own.next())
    }

    /// The approval of an occurrence of what is armed, or of all its occurrences; a person names what they mean.
    async fn find_occurrence_approval(
        &self,
        now: &FrozenInputs,
        total: UnapprovedMessages,
    ) -> Result<Option<Approval>, Error> {
        let request = &self.launch.request;
        let Some(armed) = request.schedule_digest.as_ref().filter(|_| self.required_rule(total).is_some()) else {
            return Ok(None);
        };
        let ledger = self.adapters.ledger.as_ref();
        let own =
            list_valid_digests(now, &self.inputs().destination, &PlanOptions::from_request(request, self.inputs()))?;
        for digest in own.iter().chain([armed]) {
            let found = load_approvals(ledger, digest, self.approval_rule()).await?;
            if let Some(approval) = find_usable_approval(&found, (self.adapters.clock)(), total.number) {
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

    fn refuse_other_plan(&self, now: &FrozenInputs, options: &[PlanOptions]) -> Result<(), Error> {
        let Some(pin) = &self.required_plan else { return Ok(()) };
        let destination = &self.inputs().destination;
        for options in options {
            if list_valid_digests(now, destination, options)?.contains(&pin.digest) {
                return Ok(());
            }
        }
        let planned = pin.planned.as_ref().zip(options.first());
        let what = planned.map(|(planned, options)| planned.describe_differences(now, destination, options));
        let campaign = &self.inputs().campaign;
        Err(Error::Plan(PlanRefusal::Changed {
            digest: pin.digest.clone(),
            file: campaign.file.clone(),
            gateway: campaign.brief.gateway.clone(),
            what: what.unwrap_or_default(),
        }))
    }

    fn refuse_more_messages(&self, number: u64) -> Result<(), Error> {
        match self.required_plan.as_ref().filter(|pin| number > pin.count_messages()) {
            None => Ok(()),
            Some(pin) => Err(Error::Plan(PlanRefusal::More {
                digest: pin.digest.clone(),
                file: self.inputs().campaign.file.clone(),
                gateway: self.inputs().campaign.brief.gateway.clone(),
                planned: pin.count_messages(),
                now: number,
            })),
        }
    }
}
