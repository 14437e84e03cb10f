//! Who has a message of a campaign already, and since when.

use std::path::PathBuf;

use jiff::Timestamp;

use super::{Error, Inputs};
use crate::domain::{FrequencyCap, Purpose};
use crate::ledger::{Ledger, NumberSet, Run, RunFilter, RunId, RunProgress, SuppressedNumbers};
use crate::manifest::{CampaignBrief, Destination};
use crate::report::{IN_DOUBT_STATES, load_cancelled_numbers};

/// Who has a message of a campaign and edition through an account.
#[derive(Debug)]
pub struct SentRecipients {
    /// Their numbers.
    pub numbers: NumberSet,
    /// The round that they are of.
    pub round: u32,
    /// The runs of that round, oldest first.
    runs: Vec<Run>,
}

/// The recipients of an edition whom `stop --for-good` cancelled.
#[derive(Clone, Debug, Default)]
pub struct CancelledRecipients {
    /// Their numbers.
    pub numbers: NumberSet,
    /// The names of the runs that were stopped for good, oldest first.
    pub runs: Vec<String>,
}

/// Since when people have a message, and whence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierSending {
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

impl SentRecipients {
    /// Begins a new round, in which nobody has a message yet.
    pub(super) fn begin_round(&mut self) {
        *self = Self { numbers: NumberSet::default(), round: self.round + 1, runs: Vec::new() };
    }

    /// The runs of the round, oldest first.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The last run that may have sent to them.
    pub(super) fn last_run(&self) -> Option<&Run> {
        self.runs.last()
    }

    /// The recipients whom `stop --for-good` cancelled in runs of the same edition and round.
    ///
    /// # Errors
    /// As for [`cancelled_in`].
    pub(super) async fn find_cancelled(&self, ledger: &dyn Ledger) -> Result<CancelledRecipients, Error> {
        find_cancelled_recipients(ledger, &self.runs).await
    }

    /// Whether nobody knows of some of them whether they have it.
    #[must_use]
    pub(super) fn has_doubt(&self) -> bool {
        let counts = self.runs.iter().filter_map(|run| run.counts.as_ref());
        counts.into_iter().any(|(counts, _)| IN_DOUBT_STATES.into_iter().any(|state| counts.get(state) > 0))
    }

    /// Since when they have it; nothing where nobody has.
    #[must_use]
    pub fn first_sending(&self) -> Option<EarlierSending> {
        let first = self.runs.first().filter(|_| !self.numbers.is_empty())?;
        Some(EarlierSending {
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
pub(super) async fn find_cancelled_recipients(
    ledger: &dyn Ledger,
    runs: impl IntoIterator<Item = &Run>,
) -> Result<CancelledRecipients, Error> {
    let mut before = CancelledRecipients::default();
    for run in runs.into_iter().filter(|run| run.live && run.progress == RunProgress::Cancelled) {
        let numbers = match run.purged_at {
            Some(_) => ledger.load_cancelled_numbers(run.key).await?,
            None => NumberSet::new(load_cancelled_numbers(ledger, run).await?, None),
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
pub async fn find_sent_recipients(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    edition: &str,
) -> Result<SentRecipients, Error> {
    let mut runs = list_campaign_runs(ledger, inputs).await?;
    runs.retain(|run| run.edition == edition);
    let round = runs.iter().map(|run| run.round).max().unwrap_or(1);
    runs.retain(|run| run.round == round);
    let numbers = match inputs.destination.is_live() {
        true => ledger.load_sent_numbers(&runs.iter().map(|run| run.key).collect::<Vec<RunId>>()).await?,
        false => NumberSet::default(),
    };
    Ok(SentRecipients { numbers, round, runs })
}

/// Who opted out of what this campaign sends, through this gateway.
///
/// A rehearsal plays the real run, so it leaves out who is held back from that; what gateways on loopback told does not
/// count for it.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_opted_out(ledger: &dyn Ledger, inputs: &Inputs) -> Result<SuppressedNumbers, Error> {
    let CampaignBrief { name, purpose, .. } = &inputs.campaign.brief;
    match purpose {
        Purpose::Marketing => Ok(ledger.load_suppressed_numbers(name, inputs.destination.is_loopback()).await?),
        Purpose::Service => Ok(SuppressedNumbers::default()),
    }
}

/// How often the people of a campaign may be written to: what it says itself and what its profile says hold both. What is for
/// service is held back by neither.
#[must_use]
pub fn message_caps(inputs: &Inputs) -> Vec<FrequencyCap> {
    let Inputs { campaign, destination, .. } = inputs;
    combine_caps((campaign.brief.purpose, campaign.delivery.cap), destination)
}

/// The same of messages for this purpose, which have these caps of their own.
pub(super) fn combine_caps(
    (purpose, own): (Purpose, impl IntoIterator<Item = FrequencyCap>),
    destination: &Destination,
) -> Vec<FrequencyCap> {
    if purpose == Purpose::Service {
        return Vec::new();
    }
    own.into_iter().chain(destination.profile().and_then(|profile| profile.cap)).collect()
}

/// Who got as many messages lately as they may. A rehearsal plays the real run, as far as the campaign itself says a cap.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_capped(ledger: &dyn Ledger, inputs: &Inputs) -> Result<NumberSet, Error> {
    let caps = message_caps(inputs);
    if caps.is_empty() {
        Ok(NumberSet::default())
    } else {
        Ok(ledger.load_capped_numbers(&caps, inputs.destination.is_loopback()).await?)
    }
}

/// The runs of this campaign through this account, whatever their edition, oldest first.
///
/// Between live gateways a shared profile name or account is enough. Runs through loopback count for loopback alone.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn list_campaign_runs(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<Run>, Error> {
    let (brief, live) = (&inputs.campaign.brief, inputs.destination.is_live());
    let mut runs = ledger.list_runs(RunFilter::for_campaign(&brief.name)).await?;
    runs.retain(|run| {
        (run.live, run.suppression.loopback) == (live, inputs.destination.is_loopback())
            && run.uses_gateway(&brief.gateway, inputs.destination.account_name())
    });
    Ok(runs)
}

/// The runs of the same campaign, edition and account as this one, oldest first: all that its people may have a message of.
///
/// The built-in sandbox forgets between runs, so a rehearsal stands alone.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn list_edition_runs(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Run>, Error> {
    let mut runs = ledger.list_runs(RunFilter::for_campaign(&run.campaign)).await?;
    runs.retain(|other| {
        other.key == run.key || run.live && other.edition == run.edition && run.shares_recipients(other)
    });
    Ok(runs)
}
