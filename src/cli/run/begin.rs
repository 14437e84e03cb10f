//! Beginning a new run: the survey, the guard, a yes, the frozen copies.

use std::sync::Arc;

use jiff::Timestamp;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::{Ready, Selected, Start};
use crate::cli::exit::{self, Failure};
use crate::cli::survey::{Looked, already_sent, blocking};
use crate::cli::{confirm, runs};
use crate::delivery::{FrozenInputs, RunFolder};
use crate::domain::Row;
use crate::failpoint;
use crate::ledger::{NewRun, Run};

/// The folder of a run that has not begun; dropped, it is removed.
struct NewFolder(Option<RunFolder>);

impl Drop for NewFolder {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            // Nothing was sent from it; what cannot be removed harms nobody.
            let _ = folder.discard();
        }
    }
}

impl Start<'_> {
    /// Looks at everything, asks for a yes, and creates the run; `replaced` ends as it is.
    pub(super) async fn begin(&self, edition: &str, replaced: Option<Run>) -> Result<Ready, Failure> {
        let edition = self.edition(edition, replaced.as_ref());
        let (mut already, mut round) = already_sent(self.ledger.as_ref(), &self.inputs, edition).await?;
        if self.args.again.is_some() {
            (already, round) = (RoaringTreemap::new(), round + 1);
        }
        if let Some(replaced) = replaced.as_ref().filter(|_| self.inputs.destination.is_live()) {
            // Whatever its edition: what it sent is not sent again because something else changed.
            already |= self.ledger.numbers_sent_to(&[replaced.key]).await?;
        }
        let random = rand::random();
        let folder =
            RunFolder::prepare(&self.state, &self.inputs.campaign.brief.name, self.inputs.destination.account());
        let folder = folder.map_err(copying)?;
        let mut folder = NewFolder(Some(folder));
        let copy = folder.0.as_ref().map(RunFolder::create_recipients).transpose().map_err(copying)?;
        let inputs = Arc::clone(&self.inputs);
        let looked = blocking(move || inputs.look(&already, copy)).await?;
        tracing::info!(recipients = looked.survey.recipients, planned = looked.survey.planned(), "surveyed");
        if looked.survey.planned() == 0 {
            if let Some(replaced) = replaced {
                self.ledger.retire(replaced.key).await?;
            }
            return self.nothing_left(&looked).await.map(Ready::Nothing);
        }
        self.check_number(&looked)?;
        let chosen = self.chosen(&looked.survey.planned_rows(), looked.survey.last_row)?;
        if let Some(profile) = self.inputs.destination.remote() {
            runs::check_host(&self.context.output, self.ledger.as_ref(), profile).await?;
            if self.asks_first() {
                self.ask_for_new(profile, &looked.survey, &chosen).await?;
            }
            confirm::begin(self.context, &self.args, (&self.inputs, profile), &looked, chosen.len()).await?;
        }
        let run = self.ledger.create_run(&self.new_run(&looked, edition, round, random)).await?;
        failpoint::pass("run.created");
        let frozen = self.frozen(&looked);
        let Some(new) = folder.0.take() else { return Err(Failure::new(exit::BUG, "the run's folder is gone")) };
        let recipients = looked.copy.ok_or_else(|| Failure::new(exit::BUG, "the recipients were not copied"))?;
        new.freeze(&frozen, &recipients).map_err(copying)?;
        let folder = new.rename(&self.state, &run.name()).map_err(copying)?;
        tracing::info!(run = run.name(), "frozen");
        self.ledger.open_run(run.key, replaced.map(|run| run.key)).await?;
        failpoint::pass("run.opened");
        Ok(Ready::Run(Box::new(Selected { run, folder, lock: None })))
    }

    /// The edition of a run that begins: one that takes the place of another keeps its edition, which may have been
    /// yesterday's date, unless the campaign says another one now.
    fn edition<'e>(&self, rendered: &'e str, replaced: Option<&'e Run>) -> &'e str {
        let Some(replaced) = replaced else { return rendered };
        let frozen = RunFolder::of(&self.state, &replaced.name()).frozen();
        match frozen {
            Ok(frozen) if frozen.brief.edition == self.inputs.campaign.brief.edition => &replaced.edition,
            _ => rendered,
        }
    }

    fn new_run(&self, looked: &Looked, edition: &str, round: u32, random: u64) -> NewRun {
        let campaign = &self.inputs.campaign;
        NewRun {
            campaign: campaign.brief.name.clone(),
            edition: edition.to_owned(),
            gateway: campaign.brief.gateway.clone(),
            account: self.inputs.destination.account().to_owned(),
            endpoint: campaign.brief.endpoint,
            kind: campaign.brief.content.kind,
            live: self.inputs.destination.is_live(),
            round,
            recipients: looked.survey.recipients,
            last_row: looked.survey.last_row,
            left_out: looked.survey.left_out.clone(),
            began_at: Timestamp::now(),
            random,
        }
    }

    fn frozen(&self, looked: &Looked) -> FrozenInputs {
        let campaign = &self.inputs.campaign;
        FrozenInputs {
            brief: campaign.brief.clone(),
            includes: looked.includes.clone(),
            today: self.inputs.today.clone(),
            // From the root, since what follows may be said in any folder.
            campaign_file: std::path::absolute(&campaign.file).unwrap_or_else(|_| campaign.file.clone()),
            list: campaign.recipients.clone(),
            recipients_sha256: looked.sha256.clone(),
        }
    }

    /// The number of recipients, where the user or the profile bounds it.
    fn check_number(&self, looked: &Looked) -> Result<(), Failure> {
        let number = looked.survey.planned();
        if let Some(again) = self.args.again.filter(|again| *again != number) {
            let message = format!("`--again {again}` does not match: the new round would go to {number} recipients");
            return Err(Failure::wrong(format!("{message}; if that is right, say `--again {number}`")));
        }
        let limit = self.inputs.destination.profile().and_then(|profile| profile.recipients_limit).map(u64::from);
        match limit.filter(|limit| number > (*limit).max(self.args.up_to.unwrap_or(0))) {
            None => Ok(()),
            Some(limit) => Err(Failure::wrong(format!(
                "{number} recipients are more than the gateway's limit of {limit}; if that is right, say `--up-to {number}`"
            ))),
        }
    }

    /// The rows, of those that are left, that this call sends to.
    ///
    /// # Errors
    /// When rows were asked for that the list does not have, or that need no message any more.
    pub(super) fn chosen(&self, left: &RoaringBitmap, last: Row) -> Result<RoaringBitmap, Failure> {
        let mut chosen = match &self.args.rows {
            None => left.clone(),
            Some(rows) if rows.last() > last => {
                let asked = rows.last();
                return Err(Failure::wrong(format!("there is no row {asked}; the last recipient is in row {last}")));
            }
            Some(rows) => left.iter().filter(|row| rows.contains(Row::new(*row))).collect(),
        };
        if chosen.is_empty() {
            return Err(Failure::new(exit::NOTHING, "none of the rows that were asked for is left to send"));
        }
        let limit = self.args.limit.and_then(|limit| u32::try_from(limit).ok());
        if let Some(beyond) = limit.and_then(|limit| chosen.select(limit)) {
            chosen.remove_range(beyond..);
        }
        Ok(chosen)
    }
}

fn copying(error: std::io::Error) -> Failure {
    Failure::storage(format!("the inputs cannot be copied to the state folder: {error}"))
}
