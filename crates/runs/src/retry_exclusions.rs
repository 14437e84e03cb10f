//! Rows that a retry skips, by reason: everything for which a run skips recipients is checked again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::guard::{GuardedNumbers, find_cancelled_recipients, find_capped, find_sent_rows};
use super::launch::Session;
use super::send::{open_frozen_list, sending_rules};
use super::{CampaignList, Error, find_opted_out, run_blocking};
use campaign_content::audience::Chunk;
use campaign_core::domain::{ConsentVerdict, EXPIRED, Phone, Row, find_country, format_thousands};
use campaign_engine::check::{ALREADY_SENT, CompiledCampaign, SurveyExclusions};
use campaign_engine::delivery::SendingHours;
use campaign_ledger::{NumberFilter, NumberSet, Run, RunId};

/// Rows that are not retried, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedRetries {
    /// The number of messages that were delivered in the end.
    pub delivered: u64,
    /// The number of messages whose channels the gateway is still trying.
    pub under_way: u64,
    /// The number of messages whose failure the gateway did not confirm.
    pub unconfirmed: u64,
    /// Rows that a run would skip now, by the reason in the results.
    pub excluded: BTreeMap<&'static str, u64>,
}

impl SkippedRetries {
    /// Counts the rows that a run would skip now.
    pub fn count_excluded(&self) -> u64 {
        self.excluded.values().sum()
    }

    /// Describes the rows that a run would skip now, with a text for each reason.
    pub fn describe_excluded(&self) -> impl Iterator<Item = String> {
        let describe = |reason: &&'static str| match *reason {
            ALREADY_SENT => "already sent in another run",
            reason => reason,
        };
        self.excluded.iter().map(move |(reason, rows)| format!("{} {}", format_thousands(*rows), describe(reason)))
    }
}

/// The rows of a run that are skipped now.
pub(super) struct RetryExclusions {
    number_exclusions: SurveyExclusions,
    /// The rows without consent, and those that cannot be sent in time.
    row_exclusions: BTreeMap<&'static str, RoaringBitmap>,
    /// The number of messages to each number in this retry.
    messages: HashMap<Phone, u32>,
}

impl RetryExclusions {
    /// The reason to skip a row. Without a reason, the message to the row counts towards the caps of its number.
    pub(super) fn find_reason(&mut self, row: Row, phone: Phone) -> Option<&'static str> {
        let messages = self.messages.entry(phone).or_default();
        let row_reason =
            self.row_exclusions.iter().find(|(_, rows)| rows.contains(row.get())).map(|(reason, _)| *reason);
        let number_reason = || {
            self.number_exclusions.find_reason(Some(row), phone, find_country(phone), ConsentVerdict::Given, *messages)
        };
        let reason = row_reason.or_else(number_reason);
        *messages += u32::from(reason.is_none());
        reason
    }
}

impl Session {
    /// Finds the rows that a retry skips for the reasons of a run. It also finds the rows that other runs of the
    /// edition sent or cancelled in the meantime.
    pub(super) async fn find_retry_exclusions(&self, run: &Run, runs: &[Run]) -> Result<RetryExclusions, Error> {
        let (ledger, inputs) = (self.adapters.ledger.as_ref(), self.inputs());
        let mut opted_out = NumberSet::new(self.read_suppressed().await?, None);
        opted_out |= find_opted_out(ledger, inputs).await?.numbers;
        let terms = self.sending_terms();
        let number_exclusions = SurveyExclusions {
            opted_out,
            capped: find_capped(Some(ledger), inputs).await?,
            countries: terms.allowed_countries(&inputs.campaign.brief, inputs.destination.profile()),
            ..self.find_sent_elsewhere(run, runs).await?
        };
        let row_exclusions = self.find_row_exclusions(run).await?;
        Ok(RetryExclusions { number_exclusions, row_exclusions, messages: HashMap::new() })
    }

    /// Finds the rows without consent, and the rows that cannot be sent before the end of sending.
    async fn find_row_exclusions(&self, run: &Run) -> Result<BTreeMap<&'static str, RoaringBitmap>, Error> {
        let required = self.read_required_consents().await?;
        let frozen = self.load_frozen(run).await?;
        let CompiledCampaign { mut reader, recipe, .. } = open_frozen_list(&frozen).await?;
        let finder = required.as_ref().map(|consents| self.inputs().find_consent_columns(consents, reader.header()));
        let finder = finder.transpose()?;
        let rules = match self.is_paced() {
            true => {
                let (terms, brief) = (self.sending_terms(), &frozen.inputs.brief);
                sending_rules(&terms, &self.inputs().destination, (run, brief), reader.header())?
            }
            false => None,
        };
        let hours = rules
            .filter(|rules| rules.until.is_some())
            .map(|rules| SendingHours::new(rules, Arc::new(self.adapters.clock)));
        if finder.is_none() && hours.is_none() {
            return Ok(BTreeMap::new());
        }
        run_blocking(move || {
            let (mut chunk, mut rows) = (Chunk::new(), BTreeMap::<_, RoaringBitmap>::new());
            while reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
                for record in chunk.iter() {
                    let Some(phone) = recipe.parse_phone(record) else { continue };
                    let verdict = finder.as_ref().map(|finder| finder.judge(record.fields, phone));
                    let late = || hours.as_ref().is_some_and(|hours| hours.ends_before_departure(phone, record.fields));
                    let reason = verdict.and_then(ConsentVerdict::skip_reason).or_else(|| late().then_some(EXPIRED));
                    if let Some(reason) = reason {
                        rows.entry(reason).or_default().insert(record.row.get());
                    }
                }
            }
            Ok(rows)
        })
        .await?
    }

    /// Finds recipients with a message of the same campaign and edition from another run, or whom `stop --for-good`
    /// cancelled in another run.
    async fn find_sent_elsewhere(&self, run: &Run, runs: &[Run]) -> Result<SurveyExclusions, Error> {
        let same = |other: &&Run| {
            other.edition == run.edition
                && run.can_share_recipients(other)
                && other.round >= run.round
                && other.key != run.key
        };
        let others: Vec<Run> = runs.iter().filter(same).cloned().collect();
        let ledger = self.adapters.ledger.as_ref();
        let keys: Vec<RunId> = others.iter().map(|other| other.key).collect();
        let sent = ledger.load_numbers(NumberFilter::Sent(&keys)).await?;
        let cancelled = find_cancelled_recipients(ledger, &others).await?.numbers;
        if sent.is_empty() && cancelled.is_empty() {
            return Ok(SurveyExclusions::default());
        }
        // A retry uses the rows of the run's own list, even if the user's list has changed.
        let copies = self.load_frozen(run).await?.copies.clone();
        let listed = Arc::new(self.inputs().with_list(CampaignList::Copies(copies)));
        let numbers = GuardedNumbers { sent: &sent, cancelled: &cancelled };
        let rows = find_sent_rows(ledger, &listed, &others, numbers).await?;
        Ok(SurveyExclusions { already_sent: sent, rows, cancelled, ..SurveyExclusions::default() })
    }
}
