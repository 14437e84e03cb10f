//! Consent of recipients: the file of consents, the evidence of a new run, and rows and numbers without consent.
//!
//! `engine/check/consent.rs` judges a consent. This module opens the file. All code that sends to a recipient gets the
//! verdict on their consent from this module.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use roaring::RoaringTreemap;
use tokio::sync::mpsc;

use super::launch::Session;
use super::number_files::{NumberFile, UnreadRows};
use super::policy::HeldRecipient;
use super::send::open_frozen_list;
use super::{Error, Inputs, ListSurvey, PolicyRefusal, run_blocking};
use campaign_content::audience::{Chunk, ListHeader};
use campaign_core::domain::{
    CONSENT_EXPIRED, ConsentCells, ConsentRules, ConsentVerdict, NO_CONSENT, Phone, Region, Row, choose_plural,
    format_count,
};
use campaign_core::failpoint;
use campaign_core::finding::{Finding, rules};
use campaign_engine::check::{CompiledCampaign, ConsentFinder, ConsentRegister, Consents};
use campaign_engine::delivery::Snapshot;
use campaign_ledger::{ConsentBlock, ConsentBlockBuilder, Lease, Run, RunUpdate};
use campaign_manifest::{Campaign, ConsentFile, ConsentSource, Profile};

/// The number of blocks of evidence that one commit stores.
const BLOCKS_PER_COMMIT: usize = 32;

/// The consents of a campaign as they are recorded now.
pub(super) struct ReadConsents {
    pub(super) consents: Consents,
    /// Warnings about rows of the file without a usable number, whose recipients count as not having consented.
    pub(super) warnings: Vec<Finding>,
}

/// Reads the consents of a campaign, evaluated for this day. Returns `None` if `recipients.consent` is not set, and for
/// service messages.
///
/// # Errors
/// If the file is missing, unreadable or lacks a column, or has several columns of phone numbers and the campaign
/// chooses none of them. In these cases, nothing is sent.
pub(super) fn read_consents(
    campaign: &Campaign,
    profile: Option<&Profile>,
    today: Date,
) -> Result<Option<ReadConsents>, Vec<Finding>> {
    let Some(source) = campaign.consent.as_ref().filter(|_| campaign.brief.purpose.is_marketing()) else {
        return Ok(None);
    };
    let (rules, is_required) = (source.rules_on(today), campaign.needs_consent(profile));
    let with_place = |finding: Finding| finding.at(campaign.places.locate_key("recipients.consent.file"));
    let (register, warnings) = match &source.file {
        None => (None, Vec::new()),
        Some(file) => {
            let region = file.region.or(campaign.brief.region);
            let read = read_register(source, file, region, &rules).map_err(|finding| vec![with_place(finding)])?;
            let (register, unread) = read;
            let warning = unread_rows_warning(file.file.path(), &unread).map(with_place);
            (Some(register), warning.into_iter().collect())
        }
    };
    let consents = Consents::new(source.clone(), rules, register, is_required);
    Ok(Some(ReadConsents { consents, warnings }))
}

/// Reads a file of consents. Also returns the rows without a usable number.
fn read_register(
    source: &ConsentSource,
    consent_file: &ConsentFile,
    region: Option<Region>,
    rules: &ConsentRules,
) -> Result<(ConsentRegister, UnreadRows), Finding> {
    let path = consent_file.file.path();
    let refuse = |finding: Finding| {
        let message = format!("cannot use the consent file `{}`: {}", path.display(), finding.message);
        let help = finding.help.unwrap_or_else(|| "restore the file; without it, nothing is sent".to_owned());
        Finding::new(&rules::CONSENT, message).help(help)
    };
    let refuse_missing = |key: &str, header: &str| {
        let help = format!("write the header under `{key}` exactly as in the file");
        refuse(Finding::new(&rules::CONSENT, format!("it has no column `{header}`")).help(help))
    };
    let file = NumberFile { file: &consent_file.file, phone: consent_file.phone.as_deref(), region };
    let columns = file.find_columns(|_| false).map_err(refuse)?;
    let columns = columns.ok_or_else(|| refuse_missing("phone", file.header()))?;
    for (key, header) in source.headers() {
        if let Some(header) = header.filter(|header| !columns.has_column(header)) {
            return Err(refuse_missing(key, header));
        }
    }
    let (is_listed, mut register) = (source.column.is_none(), ConsentRegister::default());
    let add = |row: Row, phone: Phone, [value, at, source, wording]: [&str; 4]| {
        register.add_row(row, phone, ConsentCells { value, at, source, wording }, is_listed, rules);
    };
    let headers = source.headers().map(|(_, header)| header);
    let (phone_columns, unread) = file.read_numbers(&columns, headers, add).map_err(refuse)?;
    match phone_columns.len() > 1 {
        true => Err(refuse(ambiguous_columns_finding(&phone_columns, consent_file))),
        false => Ok((register, unread)),
    }
}

/// The error for a consent file with several columns of phone numbers: it is unclear which numbers have consent.
fn ambiguous_columns_finding(columns: &[String], file: &ConsentFile) -> Finding {
    let names: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
    let message = format!(
        "it has several columns of phone numbers ({}), so it is unclear which numbers have consent",
        names.join(", ")
    );
    let help = match &file.phone {
        None => {
            "name the column whose numbers have consent: `consent: { file: …, phone: \"Header\" }`, or write each \
             number with consent in its own row"
        }
        Some(_) => "give each column its own header, and name the column whose numbers have consent under `phone`",
    };
    Finding::new(&rules::CONSENT, message).help(help)
}

/// Returns a warning about rows of a consent file without a usable phone number, if there are any.
fn unread_rows_warning(path: &Path, unread: &UnreadRows) -> Option<Finding> {
    let rows = unread.count();
    let message = format!(
        "{} in the consent file `{}` {} no usable number: {}",
        format_count(rows, "row"),
        path.display(),
        choose_plural(rows, "has", "have"),
        unread.describe()
    );
    let help = match unread.has_national_number() {
        true => "set the country of the numbers: `consent: { file: …, region: UA }`",
        false => "correct these rows; until then, their recipients count as not having consented",
    };
    (rows > 0).then(|| Finding::new(&rules::CONSENT_ROW, message).help(help))
}

impl Inputs {
    /// Reads the consents as they are recorded now, and judges them as of today.
    async fn read_consents_now(self: &Arc<Self>, now: Timestamp) -> Result<Option<Consents>, Error> {
        let inputs = Arc::clone(self);
        let read = run_blocking(move || {
            // A resumed run keeps the day on which it began, so today's date is used if it is later.
            let today = inputs.campaign.today.max(now.to_zoned(inputs.campaign.home_zone()).date());
            read_consents(&inputs.campaign, inputs.destination.profile(), today)
        });
        Ok(read.await?.map_err(Error::Findings)?.map(|read| read.consents))
    }

    /// Finds the columns of the list that contain evidence of consent.
    pub(super) fn find_consent_columns(
        &self,
        consents: &Consents,
        header: &ListHeader,
    ) -> Result<ConsentFinder, Error> {
        let finder = consents.find_columns(header);
        finder.map_err(|finding| Error::Findings(self.locate_column_findings(vec![finding])))
    }
}

/// The open rows of a claimed run.
pub(super) struct RowsToJudge<'r> {
    pub(super) run: &'r Run,
    pub(super) lease: Lease,
    pub(super) snapshot: &'r Snapshot,
    /// The header of the run's list.
    pub(super) header: &'r ListHeader,
}

impl Session {
    /// Reads the consents that a resumed run or a retry needs. Returns `None` if consent is not required.
    pub(super) async fn read_required_consents(&self) -> Result<Option<Consents>, Error> {
        let consents = self.inputs().read_consents_now((self.adapters.clock)()).await?;
        Ok(consents.filter(Consents::is_required))
    }

    /// Refuses a run whose evidence of consent the ledger cannot keep.
    pub(super) fn refuse_unstorable_evidence(&self, survey: &ListSurvey) -> Result<(), Error> {
        if survey.consents.is_none() || self.adapters.ledger.properties().stores_consents {
            return Ok(());
        }
        Err(Error::Input(
            "the shared ledger's tables are from an earlier version and cannot store evidence of consent; upgrade \
             them with `campaign ledger upgrade`"
                .to_owned(),
        ))
    }

    /// Stores the evidence of consent for the planned rows of a new run, taken from the frozen list.
    pub(super) async fn record_evidence(&self, run: &Run, survey: &ListSurvey) -> Result<(), Error> {
        let Some(consents) = survey.consents.clone() else { return Ok(()) };
        let CompiledCampaign { mut reader, recipe, .. } = open_frozen_list(&self.load_frozen(run).await?).await?;
        let finder = self.inputs().find_consent_columns(&consents, reader.header())?;
        let planned = survey.survey.planned_rows();
        let (sender, mut receiver) = mpsc::channel::<Vec<ConsentBlock>>(2);
        let reading = run_blocking(move || {
            let (mut chunk, mut blocks) = (Chunk::new(), Vec::new());
            let mut block = ConsentBlockBuilder::default();
            while reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
                for record in chunk.iter().filter(|record| planned.contains(record.row.get())) {
                    let phone = recipe.parse_phone(record);
                    let cells = phone.and_then(|phone| finder.find_cells(record.fields, phone));
                    cells.into_iter().for_each(|cells| block.add_row(record.row, cells));
                    if block.is_full() {
                        blocks.push(std::mem::take(&mut block).build());
                    }
                }
                // The writer has failed and reports the error itself, so reading stops without an error.
                if blocks.len() >= BLOCKS_PER_COMMIT && sender.blocking_send(std::mem::take(&mut blocks)).is_err() {
                    return Ok(());
                }
            }
            if !block.is_empty() {
                blocks.push(block.build());
            }
            let _ = sender.blocking_send(blocks);
            Ok::<_, Error>(())
        });
        let ledger = self.adapters.ledger.as_ref();
        // If writing fails, the channel is closed, which ends the reading.
        let writing = async move {
            while let Some(blocks) = receiver.recv().await {
                if !blocks.is_empty() {
                    ledger.update_runs(vec![run.key], RunUpdate::Consents(blocks.into())).await?;
                }
            }
            Ok::<_, Error>(())
        };
        let (read, written) = tokio::join!(reading, writing);
        read??;
        written?;
        failpoint::pass("consents.kept");
        Ok(())
    }

    /// Skips the open rows of a run whose recipients have no valid consent now. Returns the number of rows that were
    /// skipped.
    pub(super) async fn skip_rows_without_consent(
        &self,
        open_rows: RowsToJudge<'_>,
        consents: Option<&Consents>,
    ) -> Result<u64, Error> {
        let Some(consents) = consents else { return Ok(0) };
        let finder = Arc::new(self.inputs().find_consent_columns(consents, open_rows.header)?);
        let mut count = 0;
        for reason in [NO_CONSENT, CONSENT_EXPIRED] {
            let finder = Arc::clone(&finder);
            count += self
                .skip_rows(open_rows.run, open_rows.lease, open_rows.snapshot, reason, move |recipe, record| {
                    let phone = recipe.parse_phone(*record);
                    phone.is_some_and(|phone| finder.judge(record.fields, phone).skip_reason() == Some(reason))
                })
                .await?;
        }
        Ok(count)
    }
}

/// Refuses test messages to phone numbers without consent. If several rows of the list have the same phone number, the
/// first row counts.
pub(super) async fn refuse_tests_without_consent(
    inputs: &Arc<Inputs>,
    phones: &[Phone],
    now: Timestamp,
) -> Result<(), Error> {
    let Some(consents) = inputs.read_consents_now(now).await?.filter(Consents::is_required) else { return Ok(()) };
    let (inputs, numbers) = (Arc::clone(inputs), phones.iter().map(|phone| phone.to_u64()).collect());
    let consenting = run_blocking(move || find_consenting_numbers(&inputs, &consents, &numbers)).await??;
    let held_back = (1..).zip(phones).filter(|(_, phone)| !consenting.contains(phone.to_u64()));
    let held_back: Vec<HeldRecipient> =
        held_back.map(|(place, phone)| HeldRecipient { place, phone: *phone }).collect();
    if held_back.is_empty() { Ok(()) } else { Err(PolicyRefusal::NoConsent(held_back).into()) }
}

/// Finds which phone numbers in `numbers` have consent in the consent file, or in the first list row with that number.
fn find_consenting_numbers(
    inputs: &Inputs,
    consents: &Consents,
    numbers: &RoaringTreemap,
) -> Result<RoaringTreemap, Error> {
    let CompiledCampaign { mut reader, recipe, .. } = inputs.compile_campaign()?;
    let finder = inputs.find_consent_columns(consents, reader.header())?;
    let in_file = numbers.iter().filter_map(Phone::new);
    let in_file: Vec<(Phone, ConsentVerdict)> =
        in_file.filter_map(|phone| Some((phone, finder.judge_number(phone)?))).collect();
    if !in_file.is_empty() {
        let consenting_rows = in_file.iter().filter(|(_, verdict)| *verdict == ConsentVerdict::Given);
        return Ok(consenting_rows.map(|(phone, _)| phone.to_u64()).collect());
    }
    let (mut chunk, mut checked, mut consenting) = (Chunk::new(), RoaringTreemap::new(), RoaringTreemap::new());
    while reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
        for record in chunk.iter() {
            let phone = recipe.parse_phone(record).filter(|phone| numbers.contains(phone.to_u64()));
            let Some(phone) = phone.filter(|phone| checked.insert(phone.to_u64())) else { continue };
            if finder.judge(record.fields, phone) == ConsentVerdict::Given {
                consenting.insert(phone.to_u64());
            }
        }
    }
    Ok(consenting)
}

/// Refuses an assistant's marketing message through a profile that requires consent, because no list row records the
/// recipient's consent.
pub(super) fn refuse_message_without_consent(profile: &Profile, phone: Phone) -> Result<(), PolicyRefusal> {
    match profile.requires_consent {
        true => Err(PolicyRefusal::NoConsent(vec![HeldRecipient { place: 1, phone }])),
        false => Ok(()),
    }
}
