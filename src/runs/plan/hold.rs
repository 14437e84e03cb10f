//! Holding a call to its plan, and a large one to its approval, before anything is sent.

use roaring::RoaringBitmap;

use super::edition::{approved_since, attempted_before, sent_unapproved};
use super::made::planned;
use super::pin::{approvals, counts, good};
use super::planned::keep;
use super::resources::digests;
use super::{PlanOf, PlanOptions, PlanRefusal};
use crate::delivery::{FrozenInputs, Snapshot};
use crate::ledger::{Approval, Run, State};
use crate::manifest::ApprovalRule;
use crate::runs::freeze::frozen;
use crate::runs::launch::Session;
use crate::runs::{Error, Event, ListSurvey, ProposalKind, Refusal, runs_of};

/// The states of rows to which nothing was sent by a run.
const UNTOUCHED: [State; 4] = [State::Planned, State::NotSent, State::Skipped, State::Invalid];

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
struct Unapproved {
    /// How many would be sent now.
    number: u64,
    /// How many recipients of the edition have one already.
    sent: u64,
}

impl Session {
    /// Refuses a plan of other programs, addresses and sources, before the list is fetched.
    pub(in crate::runs) fn refuse_other_resources(&self) -> Result<(), Error> {
        let planned = self.pin.as_ref().and_then(|pin| Some((pin.planned.as_ref()?, pin)));
        planned.map_or(Ok(()), |(planned, pin)| planned.refuse_other_resources(&pin.digest, self.inputs()))
    }

    /// Refuses a new run that is not what was planned.
    pub(in crate::runs) fn refuse_unplanned(&self, survey: &ListSurvey) -> Result<(), Error> {
        match &self.pin {
            Some(_) => self.refuse_other_plan(
                &frozen(self.inputs(), survey),
                &[PlanOptions::of(&self.launch.request, self.inputs())],
            ),
            None => Ok(()),
        }
    }

    /// The approval that a new run to these rows uses, if there is one. All runs of its edition count.
    ///
    /// # Errors
    /// When they are more than were planned, or need an approval that nobody gave.
    pub(in crate::runs) async fn approval_to_begin(
        &self,
        survey: &ListSurvey,
        rows: &RoaringBitmap,
        in_edition: impl Fn(&Run) -> bool,
    ) -> Result<Option<Approval>, Error> {
        let (number, now) = (rows.len(), (self.adapters.clock)());
        let total = Unapproved { number, sent: self.sent_unapproved(in_edition).await? };
        let approval = match &self.pin {
            Some(pin) => {
                self.refuse_more(number)?;
                pin.good(now, number).filter(|_| number > 0).cloned()
            }
            None => self.approval_of_occurrence(&frozen(self.inputs(), survey), total).await?,
        };
        match &approval {
            Some(approval) => {
                (self.adapters.observer)(Event::Approved { by: approval.by.clone(), at: approval.at });
            }
            None if self.needed(total).is_some() => {
                let (planned, _) = planned(self.inputs(), survey, (rows, &self.launch.request));
                let digest = keep(&self.adapters, planned, &self.inputs().destination).await?;
                return Err(self.unapproved(Some(digest), total));
            }
            None => {}
        }
        Ok(approval)
    }

    /// Refuses messages to so many people that nobody approved, where nothing but an approval will do.
    pub(in crate::runs) fn refuse_unapproved(&self, approved: bool, number: u64) -> Result<(), Error> {
        match self.launch.request.approved_only && !approved && number > 0 {
            true => Err(Error::NotConfirmed { what: ProposalKind::Run(number), refusal: Refusal::NobodyToAsk }),
            false => Ok(()),
        }
    }

    /// Refuses to end a run without messages if only an approval will do, and the run used none of its plan.
    pub(in crate::runs) async fn refuse_unapproved_end(&self, run: &Run, number: u64) -> Result<(), Error> {
        let Some(pin) = self.pin.as_ref().filter(|_| self.launch.request.approved_only && number == 0) else {
            return Ok(());
        };
        match self.own_approval(run, std::slice::from_ref(&pin.digest)).await? {
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
    pub(in crate::runs) async fn approval_to_go_on(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        number: u64,
    ) -> Result<Option<UsableApproval>, Error> {
        let is_other = |other: &Run| other.edition == run.edition && other.key != run.key;
        let (sent, unapproved) = self.sent_of(run, snapshot).await?;
        let total = Unapproved { number, sent: unapproved + self.sent_unapproved(is_other).await? };
        let needed = self.needed(total).is_some();
        if self.pin.is_none() && !needed {
            return Ok(None);
        }
        let frozen = FrozenInputs::of_run(self.adapters.ledger.as_ref(), run).await?;
        // Whether the round was a new one is the run's own, and said only when it began.
        let options =
            [false, true].map(|again| PlanOptions { again, ..PlanOptions::of(&self.launch.request, self.inputs()) });
        self.refuse_other_plan(&frozen, &options)?;
        let mut known = Vec::from_iter(self.launch.request.armed.clone());
        for options in &options {
            known.extend(digests(&frozen, &self.inputs().destination, options)?);
        }
        let own = self.own_approval(run, &known).await?;
        let approved = sent - unapproved;
        if let Some(approval) = own.filter(|approval| approved < approval.up_to) {
            let left = approval.up_to - approved;
            // Those whom a limit leaves for later were never approved; all others were.
            if number <= left || self.launch.request.limit.is_some() {
                return Ok(Some(UsableApproval { approval, is_used: true, left }));
            }
        }
        let now = (self.adapters.clock)();
        let found = match &self.pin {
            Some(pin) => {
                self.refuse_more(number)?;
                pin.good(now, number).filter(|_| number > 0).cloned()
            }
            None => self.approval_of_occurrence(&frozen, total).await?,
        };
        match found {
            Some(approval) => Ok(Some(UsableApproval { left: approval.up_to, approval, is_used: false })),
            None if needed => Err(self.unapproved(None, total)),
            None => Ok(None),
        }
    }

    /// Refuses new messages to so many people of a run, in the place of others, where they need an approval and it has none.
    pub(in crate::runs) async fn refuse_unapproved_retry(&self, run: &Run, number: u64) -> Result<(), Error> {
        let in_edition = |other: &Run| other.edition == run.edition;
        let total = Unapproved { number, sent: self.sent_unapproved(in_edition).await? };
        if self.needed(total).is_none() {
            return Ok(());
        }
        let ledger = self.adapters.ledger.as_ref();
        let frozen = FrozenInputs::of_run(ledger, run).await?;
        let now = PlanOptions::default().with_resources_of(self.inputs());
        let mut options = vec![now.clone(), PlanOptions { again: true, ..now }];
        for used in ledger.approvals_of(run.key).await? {
            let plans = ledger.plans(&used.approval.digest).await?;
            let planned = plans.first().map(PlanOf::campaign).transpose()?;
            options.extend(planned.map(|planned| planned.options.with_resources_of(self.inputs())));
        }
        let known = options.iter().map(|options| digests(&frozen, &self.inputs().destination, options));
        let own = self.own_approval(run, &known.collect::<Result<Vec<_>, _>>()?.concat()).await?;
        match own.filter(|approval| number <= approval.up_to) {
            Some(_) => Ok(()),
            None => Err(self.unapproved(None, total)),
        }
    }

    /// Uses an approval for a run that goes on.
    pub(in crate::runs) async fn use_to_go_on(&self, run: &Run, usable: &UsableApproval) -> Result<(), Error> {
        let ledger = self.adapters.ledger.as_ref();
        if usable.is_used || ledger.use_approval(&usable.approval.token, Some(run.key)).await? {
            return Ok(());
        }
        Err(Self::used_meanwhile(&usable.approval))
    }

    /// The refusal of an approval that somebody used meanwhile.
    pub(in crate::runs) fn used_meanwhile(approval: &Approval) -> Error {
        Error::Plan(PlanRefusal::Used { digest: approval.digest.clone() })
    }

    /// Who can approve, where the profile says so.
    fn rule(&self) -> Option<&ApprovalRule> {
        self.inputs().destination.profile().and_then(|profile| profile.approval.as_ref())
    }

    /// Who has to approve these messages; nobody for a rehearsal and for a gateway on this machine.
    fn needed(&self, total: Unapproved) -> Option<&ApprovalRule> {
        self.live_rule().filter(|rule| total.number > 0 && total.sent + total.number > u64::from(rule.above))
    }

    /// The rule of a live gateway.
    fn live_rule(&self) -> Option<&ApprovalRule> {
        self.inputs().destination.remote().and_then(|profile| profile.approval.as_ref())
    }

    /// The recipients with a message of these runs of the campaign that no approval covers.
    async fn sent_unapproved(&self, counts: impl Fn(&Run) -> bool) -> Result<u64, Error> {
        let (Some(rule), ledger) = (self.live_rule(), self.adapters.ledger.as_ref()) else { return Ok(0) };
        let mut runs = runs_of(ledger, self.inputs()).await?;
        runs.retain(counts);
        sent_unapproved(ledger, &runs, rule).await
    }

    /// How many rows of a run have a message, and for how many of them no approval was used.
    async fn sent_of(&self, run: &Run, snapshot: &Snapshot) -> Result<(u64, u64), Error> {
        let touched = State::ALL.into_iter().filter(|state| !UNTOUCHED.contains(state));
        let sent: u64 = touched.map(|state| snapshot.counts.get(state)).sum();
        let (Some(rule), ledger) = (self.live_rule(), self.adapters.ledger.as_ref()) else { return Ok((sent, sent)) };
        let approvals = ledger.approvals_of(run.key).await?;
        let Some(since) = approved_since(run, &approvals, rule) else { return Ok((sent, sent)) };
        let is_touched = |row| snapshot.states.recorded(row).is_some_and(|state| !UNTOUCHED.contains(&state));
        Ok((sent, attempted_before(ledger, run.key, since, is_touched).await?.min(sent)))
    }

    /// An approval of one of these digests that a run has used.
    async fn own_approval(&self, run: &Run, digests: &[String]) -> Result<Option<Approval>, Error> {
        let used = self.adapters.ledger.approvals_of(run.key).await?.into_iter().map(|kept| kept.approval);
        let mut own = used.filter(|own| digests.contains(&own.digest) && counts(own, self.rule()));
        Ok(own.next())
    }

    /// The approval of an occurrence of what is armed, or of all its occurrences; a person names what they mean.
    async fn approval_of_occurrence(&self, now: &FrozenInputs, total: Unapproved) -> Result<Option<Approval>, Error> {
        let request = &self.launch.request;
        let Some(armed) = request.armed.as_ref().filter(|_| self.needed(total).is_some()) else { return Ok(None) };
        let ledger = self.adapters.ledger.as_ref();
        let own = digests(now, &self.inputs().destination, &PlanOptions::of(request, self.inputs()))?;
        for digest in own.iter().chain([armed]) {
            let found = approvals(ledger, digest, self.rule()).await?;
            if let Some(approval) = good(&found, (self.adapters.clock)(), total.number) {
                return Ok(Some(approval.clone()));
            }
        }
        Ok(None)
    }

    fn unapproved(&self, digest: Option<String>, Unapproved { number, sent }: Unapproved) -> Error {
        let (campaign, above) = (&self.inputs().campaign, self.live_rule().map_or(0, |rule| rule.above));
        let (file, gateway) = (campaign.file.clone(), campaign.brief.gateway.clone());
        Error::Plan(PlanRefusal::Unapproved { digest, file, gateway, number, sent, above })
    }

    fn refuse_other_plan(&self, now: &FrozenInputs, options: &[PlanOptions]) -> Result<(), Error> {
        let Some(pin) = &self.pin else { return Ok(()) };
        let destination = &self.inputs().destination;
        for options in options {
            if digests(now, destination, options)?.contains(&pin.digest) {
                return Ok(());
            }
        }
        let planned = pin.planned.as_ref().zip(options.first());
        let what = planned.map(|(planned, options)| planned.differences(now, destination, options));
        let campaign = &self.inputs().campaign;
        Err(Error::Plan(PlanRefusal::Changed {
            digest: pin.digest.clone(),
            file: campaign.file.clone(),
            gateway: campaign.brief.gateway.clone(),
            what: what.unwrap_or_default(),
        }))
    }

    fn refuse_more(&self, number: u64) -> Result<(), Error> {
        match self.pin.as_ref().filter(|pin| number > pin.messages()) {
            None => Ok(()),
            Some(pin) => Err(Error::Plan(PlanRefusal::More {
                digest: pin.digest.clone(),
                file: self.inputs().campaign.file.clone(),
                gateway: self.inputs().campaign.brief.gateway.clone(),
                planned: pin.messages(),
                now: number,
            })),
        }
    }
}
