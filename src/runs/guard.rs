//! Who has a message of a campaign already, and since when.

use std::path::PathBuf;

use jiff::Timestamp;

use super::{Error, Inputs};
use crate::domain::{Cap, Purpose};
use crate::ledger::{Ledger, NumberSet, OptedOut, Progress, Run, RunFilter, RunId};
use crate::manifest::{Brief, Destination};
use crate::report::{DOUBTFUL, cancelled_numbers};

/// Who has a message of a campaign and edition through an account.
#[derive(Debug)]
pub struct SentAlready {
    /// Their numbers.
    pub numbers: NumberSet,
    /// The round that they are of.
    pub round: u32,
    /// The runs of that round, oldest first.
    runs: Vec<Run>,
}

/// The recipients of an edition whom `stop --for-good` cancelled.
#[derive(Clone, Debug, Default)]
pub struct CancelledBefore {
    /// Their numbers.
    pub numbers: NumberSet,
    /// The names of the runs that were stopped for good, oldest first.
    pub runs: Vec<String>,
}

/// Since when people have a message, and whence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentBefore {
    /// The first run that sent to them.
    pub run: String,
    /// When it began.
    pub began_at: Timestamp,
    /// The campaign file that it began from, as far as that is known.
    pub file: Option<PathBuf>,
    /// How many runs of the same edition and round came after it.
    pub later: usize,
    /// Whether its results cannot be written anew.
    pub purged: bool,
}

impl SentAlready {
    /// Begins a new round, in which nobody has a message yet.
    pub(super) fn begin_round(&mut self) {
        *self = Self { numbers: NumberSet::default(), round: self.round + 1, runs: Vec::new() };
    }

    /// The runs of the round, oldest first.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The last run that may have sent to them.
    pub(super) fn last(&self) -> Option<&Run> {
        self.runs.last()
    }

    /// The recipients whom `stop --for-good` cancelled in runs of the same edition and round.
    ///
    /// # Errors
    /// As for [`cancelled_in`].
    pub(super) async fn cancelled(&self, ledger: &dyn Ledger) -> Result<CancelledBefore, Error> {
        cancelled_in(ledger, &self.runs).await
    }

    /// Whether nobody knows of some of them whether they have it.
    #[must_use]
    pub(super) fn has_doubt(&self) -> bool {
        let counts = self.runs.iter().filter_map(|run| run.counts.as_ref());
        counts.into_iter().any(|(counts, _)| DOUBTFUL.into_iter().any(|state| counts.get(state) > 0))
    }

    /// Since when they have it; nothing where nobody has.
    #[must_use]
    pub fn since(&self) -> Option<SentBefore> {
        let first = self.runs.first().filter(|_| !self.numbers.is_empty())?;
        Some(SentBefore {
            run: first.name(),
            began_at: first.began_at,
            file: first.file.as_ref().map(PathBuf::from),
            later: self.runs.len() - 1,
            purged: first.purged_at.is_some(),
        })
    }
}

/// The recipients whom `stop --for-good` cancelled in these runs. They stay cancelled until a new edition or round begins.
///
/// Rows that were sent, rejected or in doubt when their run was stopped are not among them.
///
/// # Errors
/// When the ledger or the copy of a list cannot be read: no message is sent then.
pub(super) async fn cancelled_in(
    ledger: &dyn Ledger,
    runs: impl IntoIterator<Item = &Run>,
) -> Result<CancelledBefore, Error> {
    let mut before = CancelledBefore::default();
    for run in runs.into_iter().filter(|run| run.live && run.progress == Progress::Cancelled) {
        let numbers = match run.purged_at {
            Some(_) => ledger.kept_cancelled(run.key).await?,
            None => NumberSet::new(cancelled_numbers(ledger, run).await?, None),
        };
        if !numbers.is_empty() {
            before.numbers |= numbers;
            before.runs.push(run.name());
        }
    }
    Ok(before)
}

/// Who has a message of this campaign and edition through this account.
///
/// The built-in sandbox forgets between runs, so a rehearsal is never guarded.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn already_sent(ledger: &dyn Ledger, inputs: &Inputs, edition: &str) -> Result<SentAlready, Error> {
    let mut runs = runs_of(ledger, inputs).await?;
    runs.retain(|run| run.edition == edition);
    let round = runs.iter().map(|run| run.round).max().unwrap_or(1);
    runs.retain(|run| run.round == round);
    let numbers = match inputs.destination.is_live() {
        true => ledger.numbers_sent_to(&runs.iter().map(|run| run.key).collect::<Vec<RunId>>()).await?,
        false => NumberSet::default(),
    };
    Ok(SentAlready { numbers, round, runs })
}

/// Who opted out of what this campaign sends, through this gateway.
///
/// A rehearsal plays the real run, so it leaves out who is held back from that; what gateways on loopback told does not
/// count for it.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn opted_out(ledger: &dyn Ledger, inputs: &Inputs) -> Result<OptedOut, Error> {
    let Brief { name, purpose, .. } = &inputs.campaign.brief;
    match purpose {
        Purpose::Marketing => Ok(ledger.opted_out(name, inputs.destination.is_loopback()).await?),
        Purpose::Service => Ok(OptedOut::default()),
    }
}

/// How often the people of a campaign may be written to: what it says itself and what its profile says hold both. What is for
/// service is held back by neither.
#[must_use]
pub fn caps(inputs: &Inputs) -> Vec<Cap> {
    let Inputs { campaign, destination, .. } = inputs;
    caps_of((campaign.brief.purpose, campaign.delivery.cap), destination)
}

/// The same of messages for this purpose, which have these caps of their own.
pub(super) fn caps_of((purpose, own): (Purpose, impl IntoIterator<Item = Cap>), destination: &Destination) -> Vec<Cap> {
    if purpose == Purpose::Service {
        return Vec::new();
    }
    own.into_iter().chain(destination.profile().and_then(|profile| profile.cap)).collect()
}

/// Who got as many messages lately as they may. A rehearsal plays the real run, as far as the campaign itself says a cap.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn capped(ledger: &dyn Ledger, inputs: &Inputs) -> Result<NumberSet, Error> {
    let caps = caps(inputs);
    if caps.is_empty() {
        Ok(NumberSet::default())
    } else {
        Ok(ledger.capped(&caps, inputs.destination.is_loopback()).await?)
    }
}

/// The runs of this campaign through this account, whatever their edition, oldest first.
///
/// Between live gateways a shared profile name or account is enough. Runs through loopback count for loopback alone.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn runs_of(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<Run>, Error> {
    let (brief, live) = (&inputs.campaign.brief, inputs.destination.is_live());
    let mut runs = ledger.runs(RunFilter::of_campaign(&brief.name)).await?;
    runs.retain(|run| {
        (run.live, run.heed.loopback) == (live, inputs.destination.is_loopback())
            && run.went_through(&brief.gateway, inputs.destination.account())
    });
    Ok(runs)
}

/// The runs of the same campaign, edition and account as this one, oldest first: all that its people may have a message of.
///
/// The built-in sandbox forgets between runs, so a rehearsal stands alone.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn edition_of(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Run>, Error> {
    let mut runs = ledger.runs(RunFilter::of_campaign(&run.campaign)).await?;
    runs.retain(|other| {
        other.key == run.key || run.live && other.edition == run.edition && run.shares_recipients(other)
    });
    Ok(runs)
}
