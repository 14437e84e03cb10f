//! Sending rejected rows of a run again, as new messages with identifiers of their own.

use roaring::RoaringTreemap;

use super::{Ready, Selected, Start};
use crate::cli::after::person;
use crate::cli::exit::{self, Failure};
use crate::cli::{confirm, runs};
use crate::delivery::{OneOff, RunFolder, Snapshot};
use crate::domain::{Outcome, Phone, Row};
use crate::failpoint;
use crate::ledger::{Author, Change, Progress, Recorded, RetryOrder, Run, RunId, State, Walk};
use crate::report::plural;

/// A row that can be sent again: the attempt that was refused, its number, and the gateway's words.
struct Refused {
    row: Row,
    envelope: u32,
    phone: Phone,
    error: String,
}

/// Why no row can be sent again; so many got a message by another run.
fn nothing_to_retry(run: &Run, error: Option<&str>, guarded: u64) -> Failure {
    let which = error.map(|error| format!(" with `{error}` in its error")).unwrap_or_default();
    let meanwhile = match guarded {
        0 => String::new(),
        rows => format!("; {} got a message by another run meanwhile", plural(rows, "rejected row")),
    };
    Failure::new(exit::NOTHING, format!("{} has no rejected row{which} to send again{meanwhile}", run.name()))
}

/// The status with which the gateway refused what it had queued, or what was in doubt.
fn told_by_status(snapshot: &Snapshot, row: Row, envelope: u32) -> String {
    let about = snapshot.states.events().of(row).iter().rev().filter(|event| event.envelope == envelope);
    let mut statuses = about.filter_map(|event| match &event.change {
        Change::Found { status, .. } => Some(status.clone()),
        _ => None,
    });
    statuses.next().unwrap_or_default()
}

impl Start<'_> {
    /// Orders that the rejected rows of a run go out as new messages, and gives the run back to be sent.
    pub(super) async fn prepare_again(&self, key: RunId, error: Option<&str>) -> Result<Ready, Failure> {
        let runs = self.ledger.runs().await?;
        let run = runs.iter().find(|run| run.key == key).cloned();
        let run = run.ok_or_else(|| Failure::new(exit::BUG, "the run is gone from the ledger"))?;
        self.refuse_again(&run, &runs)?;
        let lock = self.lock_of(&run)?;
        let folder = RunFolder::of(&self.state, &run.name());
        let changes = self.changes(&folder).await?;
        if !changes.is_empty() {
            return Err(Failure::wrong(format!(
                "{} would be sent from the copies it began with, but since then these changed: {}; put them back, or \
                 run the campaign anew: it skips whoever has a message",
                run.name(),
                changes.join(", ")
            )));
        }
        let snapshot = runs::snapshot(self.ledger.as_ref(), &run, false).await?;
        let rows = self.refused(&run, &snapshot, error).await?;
        let guarded = self.has_message_elsewhere(&run, &runs).await?;
        let (guarded, rows): (Vec<Refused>, Vec<Refused>) =
            rows.into_iter().partition(|row| guarded.contains(row.phone.get()));
        if rows.is_empty() {
            return Err(nothing_to_retry(&run, error, guarded.len() as u64));
        }
        let number = rows.len() as u64;
        if let Some(profile) = self.inputs.destination.remote() {
            runs::check_host(&self.context.output, self.ledger.as_ref(), profile).await?;
            confirm::resume(self.context, &self.args, profile, (&run, &snapshot), number).await?;
        }
        let (owner, _) = runs::claim(self.ledger.as_ref(), run.key).await?;
        let order = RetryOrder {
            run: run.key,
            rows: rows.iter().map(|refused| (refused.row, refused.envelope)).collect(),
            by: Author::Person(person()),
            random: rand::random(),
        };
        if self.ledger.retry(owner, order).await? == Recorded::NotOwner {
            return Err(Failure::new(exit::NOTHING, format!("another process took {}", run.name())));
        }
        failpoint::pass("retry.ordered");
        self.context.output.note(&format!("sending {} of {} as new messages", plural(number, "row"), run.name()));
        // With the identifiers that the order reserved.
        let run = self.ledger.runs().await?.into_iter().find(|run| run.key == key);
        let run = run.ok_or_else(|| Failure::new(exit::BUG, "the run is gone from the ledger"))?;
        Ok(Ready::Run(Box::new(Selected { run, folder, lock })))
    }

    /// Why nothing of a run can be sent again now.
    fn refuse_again(&self, run: &Run, runs: &[Run]) -> Result<(), Failure> {
        let name = run.name();
        if OneOff::of(run).is_some() {
            return Err(Failure::wrong(format!("{name} was a single question; ask again with `campaign gateway`")));
        }
        if run.progress == Progress::Replaced {
            return Err(Failure::wrong(format!("a newer run took the place of {name}; retry that one")));
        }
        let same = |other: &&Run| {
            other.campaign == run.campaign && other.live == run.live && other.went_through(&run.gateway, &run.account)
        };
        let open = runs.iter().filter(same).find(|other| other.progress == Progress::Open);
        match open {
            Some(open) => {
                let again = super::ending::run_again(&self.inputs.campaign.file, self.args.gateway.as_deref());
                let again = self.context.output.command(again);
                Err(Failure::wrong(format!("{} is unfinished; first: {again}", open.name())))
            }
            None => Ok(()),
        }
    }

    /// The rows whose last attempt was refused, or that a person decided were not sent.
    async fn refused(&self, run: &Run, snapshot: &Snapshot, error: Option<&str>) -> Result<Vec<Refused>, Failure> {
        let mut found = std::collections::BTreeMap::new();
        let mut envelopes = Walk::over(self.ledger.as_ref(), run.key);
        while let Some(envelope) = envelopes.next().await? {
            for (index, sent) in envelope.rows.iter().enumerate() {
                let state = snapshot.states.recorded(sent.row);
                if !matches!(state, Some(State::Rejected | State::NotSent | State::Failed)) {
                    continue;
                }
                let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
                let error = match outcome {
                    Some(Outcome::Rejected { error }) => error.clone(),
                    _ => told_by_status(snapshot, sent.row, envelope.envelope),
                };
                let refused = Refused { row: sent.row, envelope: envelope.envelope, phone: sent.phone, error };
                // A later attempt takes the place of the one before.
                found.insert(sent.row, refused);
            }
        }
        let meant =
            |refused: &Refused| error.is_none_or(|error| refused.error.to_lowercase().contains(&error.to_lowercase()));
        Ok(found.into_values().filter(meant).collect())
    }

    /// Whoever got a message of the same campaign and edition by another run meanwhile.
    async fn has_message_elsewhere(&self, run: &Run, runs: &[Run]) -> Result<RoaringTreemap, Failure> {
        let same = |other: &&Run| {
            (&other.campaign, &other.edition) == (&run.campaign, &run.edition)
                && other.live == run.live
                && other.went_through(&run.gateway, &run.account)
                && other.round >= run.round
                && other.key != run.key
        };
        let others: Vec<RunId> = runs.iter().filter(same).map(|other| other.key).collect();
        Ok(self.ledger.numbers_sent_to(&others).await?)
    }
}
