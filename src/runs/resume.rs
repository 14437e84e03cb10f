//! Going on with an unfinished run.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::consent::{Consent, confirm};
use super::launch::{Preparation, RunToSend, Session};
use super::online::refuse_online;
use super::plan::{PlanConsent, check_profile};
use super::{Error, Proposal, RestOfRun, RunEvent, run_blocking};
use crate::check::online::{Cost, MessagePrices};
use crate::check::{Survey, SurveyExclusions};
use crate::delivery::Snapshot;
use crate::domain::Row;
use crate::gateway::Balance;
use crate::ledger::{CampaignLock, RowState, Run};
use crate::manifest::Profile;

/// What is confirmed before messages of a run that exists already leave.
pub(super) struct RestToConfirm {
    /// How many recipients get a message.
    pub(super) number: u64,
    /// The most that the messages cost, if that is known.
    pub(super) cost: Option<Cost>,
    /// The balance of the account, if it is known.
    pub(super) balance: Option<Balance>,
    /// What a person sees of them.
    pub(super) rest: Option<RestOfRun>,
    /// Whether they are sent again.
    pub(super) is_retry: bool,
}

impl Session {
    /// Asks for a yes to go on, and selects the run.
    pub(super) async fn resume_run(
        &self,
        run: Run,
        edition: &str,
        hold: Arc<CampaignLock>,
    ) -> Result<Preparation, Error> {
        let suppressed = self.read_suppressed().await?;
        let snapshot = Snapshot::load(self.adapters.ledger.as_ref(), &run, false).await?;
        let left = snapshot.counts.get(RowState::Planned);
        let open = list_open_rows(&run, &snapshot);
        let number =
            if left == 0 { 0 } else { self.launch.request.choose_rows(&open, run.last_row())?.len().min(left) };
        if let Some(profile) = self.inputs().destination.profile() {
            check_profile(&self.adapters, profile).await?;
        }
        let approval = self.find_resume_approval(&run, &snapshot, number).await?;
        let number = approval.as_ref().map_or(number, |usable| number.min(usable.left));
        self.refuse_unapproved(approval.is_some(), number)?;
        self.refuse_unapproved_end(&run, number).await?;
        // Without a plan a yes is asked for as ever.
        let consent: &dyn Consent =
            if approval.is_some() && self.required_plan.is_some() { &PlanConsent } else { self.consent.as_ref() };
        if let Some(profile) = self.inputs().destination.remote_profile() {
            let rest = match number > 0 && consent.shows_proposals() {
                true => self.survey_rest(&run, |survey| self.choose_open_rows(&open, survey)).await.ok(),
                false => None,
            };
            // Recipients may have opted out since the run was interrupted. Without any rows the number stays an upper limit.
            let sent = rest.as_ref().map(|rest| rest.rows.len()).filter(|rows| *rows > 0);
            let number = sent.map_or(number, |rows| rows.min(number));
            let cost = match (&rest, number > 0 && consent.can_confirm()) {
                (Some(rest), true) => Some(self.compute_rest_cost(profile, rest)),
                (None, true) => Some(self.compute_open_cost(profile, (&run, &open)).await?),
                (_, false) => None,
            };
            let balance = match cost.clone().filter(|_| self.asks_first(consent)) {
                Some(cost) => {
                    refuse_online(&self.adapters, (self.inputs(), profile), cost, consent.shows_proposals()).await?
                }
                None => None,
            };
            let rest = RestToConfirm { number, cost, balance, rest, is_retry: false };
            self.confirm_rest((consent, profile), (&run, &snapshot), rest).await?;
        }
        let limit = match &approval {
            Some(usable) => {
                self.use_resume_approval(&run, usable).await?;
                self.launch.request.limit.map(|limit| limit.min(usable.left))
            }
            None => self.launch.request.limit,
        };
        let earlier_edition = run.edition != edition;
        let other_edition = earlier_edition.then(|| run.edition.clone());
        (self.adapters.observer)(RunEvent::GoingOn { run: run.name(), other_edition });
        Ok(Preparation::Send(Box::new(RunToSend {
            suppressed,
            run,
            snapshot: Some(snapshot),
            hold,
            limit,
            retry: false,
            unconfirmed: 0,
            earlier_edition,
            before: None,
            cancelled_in: Vec::new(),
        })))
    }

    /// Asks for a confirmation of messages to recipients of a run; none is needed if there are none.
    pub(super) async fn confirm_rest(
        &self,
        (consent, profile): (&dyn Consent, &Profile),
        (run, snapshot): (&Run, &Snapshot),
        RestToConfirm { number, cost, balance, rest, is_retry }: RestToConfirm,
    ) -> Result<(), Error> {
        if number == 0 {
            return Ok(());
        }
        let cost = cost.filter(|_| !profile.prices.is_empty());
        let (balance, rest) = (balance.as_ref(), rest.as_ref());
        let question = Proposal::Resume { run, snapshot, profile, number, cost, balance, rest, is_retry };
        confirm(consent, question).await
    }

    /// The most that the messages cost that a call would send of a run.
    pub(super) fn compute_rest_cost(&self, profile: &Profile, RestOfRun { survey, rows, .. }: &RestOfRun) -> Cost {
        Cost::estimate(profile, &self.inputs().campaign.brief, &survey.survey.by_size, rows)
    }

    /// The rows that this call chooses of those that are not settled.
    fn choose_open_rows(&self, open: &RoaringBitmap, survey: &Survey) -> Result<RoaringBitmap, Error> {
        self.launch.request.choose_rows(&(open & survey.planned_rows()), survey.last_row)
    }

    /// Whether this call asks first. Where a yes is needed and nobody can give it, the run ends without a request.
    pub(super) fn asks_first(&self, consent: &dyn Consent) -> bool {
        !self.launch.request.offline && consent.can_confirm()
    }

    /// Asks the gateway about messages to these rows of a survey.
    pub(super) async fn check_new_messages(
        &self,
        profile: &Profile,
        survey: &Survey,
        rows: &RoaringBitmap,
        is_shown: bool,
    ) -> Result<Option<Balance>, Error> {
        let inputs = self.inputs();
        let cost = Cost::estimate(profile, &inputs.campaign.brief, &survey.by_size, rows);
        refuse_online(&self.adapters, (inputs, profile), cost, is_shown).await
    }

    /// What messages to the rows cost that this call chooses of those that are not settled.
    async fn compute_open_cost(&self, profile: &Profile, (run, open): (&Run, &RoaringBitmap)) -> Result<Cost, Error> {
        self.compute_chosen_cost(profile, run, |survey| self.choose_open_rows(open, survey)).await
    }

    /// What messages to rows of a run cost that are chosen from a survey of its list.
    ///
    /// The list is looked at again only where prices make something of it.
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
        let surveyed = self.load_with_list_of(run).await?;
        // Whoever has a message, or opted out, is not among the rows of a run that are left.
        let survey =
            run_blocking(move || surveyed.survey_recipients(&SurveyExclusions::default(), None)).await??.survey;
        Ok(Cost::AtMost(prices.max_cost(&survey.by_size, &choose(&survey)?)))
    }
}

/// The rows of an unfinished run that may still be sent; blank rows of the list are among them.
pub(super) fn list_open_rows(run: &Run, snapshot: &Snapshot) -> RoaringBitmap {
    let mut rows = RoaringBitmap::new();
    rows.insert_range(Row::HEADER.get() + 1..=run.last_row().get());
    rows - &snapshot.settled
}
