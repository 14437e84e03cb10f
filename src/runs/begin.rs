//! Finding the run to go on with, or beginning one: the survey, the guard, a yes, the frozen copies.

use std::sync::Arc;

use roaring::{RoaringBitmap, RoaringTreemap};

use super::consent::confirm;
use super::freeze::{NewFolder, is_whole};
use super::launch::{Preparation, RunToSend, Session};
use super::outcome::{NothingLeft, Outcome};
use super::{Error, ListSurvey, Proposal, Round, already_sent, blocking, check_host, runs_of};
use crate::delivery::RunFolder;
use crate::domain::Row;
use crate::failpoint;
use crate::ledger::{NewRun, Progress, Run};
use crate::report::open_doubts;

impl Session {
    /// Finds the run to go on with, or begins one.
    pub(super) async fn prepare(&self) -> Result<Preparation, Error> {
        let inputs = Arc::clone(self.inputs());
        let edition = blocking(move || Ok::<_, Error>(inputs.open()?.edition)).await??;
        let runs = runs_of(self.adapters.ledger.as_ref(), self.inputs()).await?;
        // Of any edition: one that was begun yesterday keeps yesterday's edition until it is through.
        let open = match runs.iter().rfind(|run| run.progress == Progress::Open) {
            Some(open) => Some(open.clone()),
            None => self.reconcile_finished(&runs).await?,
        };
        let Some(open) = open else { return self.begin(&edition, None).await };
        // A request to stop that nobody was there to hear is not for this call; one that comes from now on is.
        self.adapters.ledger.request_stop(open.key, false).await?;
        if self.launch.request.round != Round::Same {
            return Err(Error::RoundUnfinished { run: open.name() });
        }
        let hold = self.hold_of(&open).await?;
        let folder = RunFolder::of(&self.adapters.state, &open.name());
        let changes = self.changes(&folder).await?;
        if changes.is_empty() {
            return self.resume(open, folder, hold).await;
        }
        // A rehearsal protects nobody, so it may begin anew without asking.
        if self.launch.request.accept_changes || !self.inputs().destination.is_live() {
            return self.begin(&edition, Some(open)).await;
        }
        let damaged = folder.frozen().is_ok_and(|frozen| !is_whole(&folder, &frozen));
        Err(Error::InputsChanged { run: open.name(), changes, damaged })
    }

    /// Looks at everything, asks for a yes, and creates the run; `replaced` ends as it is.
    async fn begin(&self, edition: &str, replaced: Option<Run>) -> Result<Preparation, Error> {
        let (inputs, ledger, state) = (self.inputs(), self.adapters.ledger.as_ref(), &self.adapters.state);
        let edition = self.edition(edition, replaced.as_ref());
        let (mut already, mut round) = already_sent(ledger, inputs, edition).await?;
        if self.launch.request.round != Round::Same {
            (already, round) = (RoaringTreemap::new(), round + 1);
        }
        if let Some(replaced) = replaced.as_ref().filter(|_| inputs.destination.is_live()) {
            // Whatever its edition: what it sent is not sent again because something else changed.
            already |= ledger.numbers_sent_to(&[replaced.key]).await?;
        }
        let random = rand::random();
        let mut folder = NewFolder::prepare(state, &self.hold)?;
        let copy = folder.create_recipients()?;
        let surveyed = Arc::clone(inputs);
        let mut survey = blocking(move || surveyed.survey(&already, Some(copy))).await??;
        tracing::info!(recipients = survey.survey.recipients, planned = survey.survey.planned(), "surveyed");
        if survey.survey.planned() == 0 {
            if let Some(replaced) = replaced {
                ledger.retire(replaced.key).await?;
            }
            let open_doubts = open_doubts(&runs_of(ledger, inputs).await?, None);
            return Ok(Preparation::Nothing(Outcome::NothingLeft(Box::new(NothingLeft { survey, open_doubts }))));
        }
        self.check_number(&survey)?;
        let chosen = self.chosen(&survey.survey.planned_rows(), survey.survey.last_row)?;
        if let Some(profile) = inputs.destination.remote() {
            check_host(ledger, profile).await?;
            if self.asks_first() {
                self.ask_for_new(profile, &survey.survey, &chosen).await?;
            }
            let question = Proposal::Begin { inputs, profile, survey: &survey, state, rows: &chosen };
            confirm(self.consent.as_ref(), question).await?;
        }
        let run = ledger.create_run(&self.new_run(&survey, edition, round, random)).await?;
        failpoint::pass("run.created");
        let recipients =
            survey.copy.take().ok_or_else(|| Error::Internal("the recipients were not copied".to_owned()))?;
        let folder = folder.freeze(&self.frozen(&survey), &recipients, (state, &run.name()))?;
        tracing::info!(run = run.name(), "frozen");
        ledger.open_run(run.key, replaced.map(|run| run.key)).await?;
        failpoint::pass("run.opened");
        Ok(Preparation::Send(Box::new(RunToSend { run, folder, snapshot: None, hold: Arc::clone(&self.hold) })))
    }

    /// The edition of a run that begins: one that takes the place of another keeps its edition, which may have been
    /// yesterday's date, unless the campaign says another one now.
    fn edition<'e>(&self, rendered: &'e str, replaced: Option<&'e Run>) -> &'e str {
        let Some(replaced) = replaced else { return rendered };
        let frozen = RunFolder::of(&self.adapters.state, &replaced.name()).frozen();
        match frozen {
            Ok(frozen) if frozen.brief.edition == self.inputs().campaign.brief.edition => &replaced.edition,
            _ => rendered,
        }
    }

    fn new_run(&self, survey: &ListSurvey, edition: &str, round: u32, random: u64) -> NewRun {
        let inputs = self.inputs();
        let brief = &inputs.campaign.brief;
        NewRun {
            campaign: brief.name.clone(),
            edition: edition.to_owned(),
            gateway: brief.gateway.clone(),
            account: inputs.destination.account().to_owned(),
            endpoint: brief.endpoint,
            kind: brief.content.kind,
            live: inputs.destination.is_live(),
            round,
            recipients: survey.survey.recipients,
            last_row: survey.survey.last_row,
            left_out: survey.survey.left_out.clone(),
            began_at: (self.adapters.clock)(),
            random,
        }
    }

    /// The number of recipients, where the request or the profile bounds it.
    fn check_number(&self, survey: &ListSurvey) -> Result<(), Error> {
        let (number, request) = (survey.survey.planned(), &self.launch.request);
        match request.round {
            Round::Again(said) if said != number => return Err(Error::OtherNumber { said, number }),
            Round::Again(_) | Round::Same => {}
        }
        let limit = self.inputs().destination.profile().and_then(|profile| profile.recipients_limit).map(u64::from);
        match limit.filter(|limit| number > (*limit).max(request.up_to.unwrap_or(0))) {
            None => Ok(()),
            Some(limit) => Err(Error::TooManyRecipients { number, limit }),
        }
    }

    /// The rows, of those that are left, that this call sends to.
    ///
    /// # Errors
    /// When rows were asked for that the list does not have, or that need no message any more.
    pub(super) fn chosen(&self, left: &RoaringBitmap, last: Row) -> Result<RoaringBitmap, Error> {
        let request = &self.launch.request;
        let mut chosen = match &request.rows {
            None => left.clone(),
            Some(rows) if rows.last() > last => return Err(Error::NoSuchRow { row: rows.last(), last }),
            Some(rows) => left.iter().filter(|row| rows.contains(Row::new(*row))).collect(),
        };
        if chosen.is_empty() {
            return Err(Error::NoRowsLeft);
        }
        let limit = request.limit.and_then(|limit| u32::try_from(limit).ok());
        if let Some(beyond) = limit.and_then(|limit| chosen.select(limit)) {
            chosen.remove_range(beyond..);
        }
        Ok(chosen)
    }
}
