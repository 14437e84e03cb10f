//! Holding a call to its plan, before anything is sent.

use super::planned::digest;
use super::{PlanOptions, PlanRefusal};
use crate::delivery::{FrozenInputs, Snapshot};
use crate::ledger::{Approval, Run, State};
use crate::runs::freeze::frozen;
use crate::runs::launch::Session;
use crate::runs::{Error, Event, ListSurvey, ProposalKind, Refusal};

/// The states of rows to which nothing was sent by a run.
const UNTOUCHED: [State; 4] = [State::Planned, State::NotSent, State::Skipped, State::Invalid];

/// An approval that a call may use.
pub(in crate::runs) struct UsableApproval {
    /// The approval.
    pub(in crate::runs) approval: Approval,
    /// Whether the run that goes on was begun with it, so that it is used already.
    pub(in crate::runs) is_used: bool,
    /// How many more messages it is for.
    pub(in crate::runs) left: u64,
}

impl Session {
    /// Refuses a new run that is not what was planned.
    pub(in crate::runs) fn refuse_unplanned(&self, survey: &ListSurvey) -> Result<(), Error> {
        match &self.pin {
            Some(_) => self.refuse_other_plan(&frozen(self.inputs(), survey), &[PlanOptions::of(&self.launch.request)]),
            None => Ok(()),
        }
    }

    /// The approval that a new run to so many people uses, if there is one.
    ///
    /// # Errors
    /// When they are more than were planned.
    pub(in crate::runs) fn approval_to_begin(&self, number: u64) -> Result<Option<Approval>, Error> {
        let Some(pin) = &self.pin else { return Ok(None) };
        self.refuse_more(number)?;
        let approval = pin.good((self.adapters.clock)(), number).filter(|_| number > 0).cloned();
        if let Some(approval) = &approval {
            (self.adapters.observer)(Event::Approved { by: approval.by.clone(), at: approval.at });
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

    /// The approval with which a run goes on to so many more people, if it is held to a plan that has one.
    ///
    /// # Errors
    /// When the run is not of the plan, or they are more than were planned.
    pub(in crate::runs) async fn approval_to_go_on(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        number: u64,
    ) -> Result<Option<UsableApproval>, Error> {
        let Some(pin) = &self.pin else { return Ok(None) };
        let ledger = self.adapters.ledger.as_ref();
        let frozen = FrozenInputs::of_run(ledger, run).await?;
        // Whether the round was a new one is the run's own, and said only when it began.
        let options = [false, true].map(|again| PlanOptions { again, ..PlanOptions::of(&self.launch.request) });
        self.refuse_other_plan(&frozen, &options)?;
        let sent: u64 = State::ALL
            .into_iter()
            .filter(|state| !UNTOUCHED.contains(state))
            .map(|state| snapshot.counts.get(state))
            .sum();
        let used = ledger.approvals_of(run.key).await?;
        let own = used.into_iter().map(|kept| kept.approval).find(|approval| approval.digest == pin.digest);
        if let Some(approval) = own.filter(|approval| sent < approval.up_to) {
            let left = approval.up_to - sent;
            let beyond = number.saturating_sub(left);
            // Those whom a limit leaves for later were never approved; all others were.
            if beyond == 0 || self.launch.request.limit.is_some() {
                return Ok(Some(UsableApproval { approval, is_used: true, left }));
            }
        }
        self.refuse_more(number)?;
        let good = pin.good((self.adapters.clock)(), number).filter(|_| number > 0).cloned();
        Ok(good.map(|approval| UsableApproval { left: approval.up_to, approval, is_used: false }))
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

    fn refuse_other_plan(&self, now: &FrozenInputs, options: &[PlanOptions]) -> Result<(), Error> {
        let Some(pin) = &self.pin else { return Ok(()) };
        let destination = &self.inputs().destination;
        for options in options {
            if digest(now, destination, options)? == pin.digest {
                return Ok(());
            }
        }
        let what = options.first().map(|options| pin.planned.differences(now, destination, options));
        let (digest, file) = (pin.digest.clone(), self.inputs().campaign.file.clone());
        Err(Error::Plan(PlanRefusal::Changed { digest, file, what: what.unwrap_or_default() }))
    }

    fn refuse_more(&self, number: u64) -> Result<(), Error> {
        match self.pin.as_ref().filter(|pin| number > pin.planned.messages) {
            None => Ok(()),
            Some(pin) => Err(Error::Plan(PlanRefusal::More {
                digest: pin.digest.clone(),
                file: self.inputs().campaign.file.clone(),
                planned: pin.planned.messages,
                now: number,
            })),
        }
    }
}
