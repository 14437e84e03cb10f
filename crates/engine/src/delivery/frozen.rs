//! Frozen inputs of a run. Resuming, retrying and exporting read them instead of the campaign's files.

use std::io::{BufReader, Read, Sink};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::check::{
    AnyList, CompiledCampaign, ComposedMessage, Composer, PrepareError, Tee, TextCache, TextHash, TextInputs,
    count_cores, prepare_campaign, process_in_order,
};
use campaign_content::audience::{Chunk, RecordRef, ValidNumber};
use campaign_content::message::LookupTable;
use campaign_core::domain::{MessageId, Phone, Row};
use campaign_core::finding::Finding;
use campaign_gateway::{EncodedOperation, OperationForm};
use campaign_ledger::{Copies, Ledger, LedgerError, ListReader, Run};
use campaign_manifest::{CampaignBrief, CampaignDay};

/// The frozen inputs of a run, without its recipients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrozenInputs {
    /// The texts, recipients and gateway of the campaign.
    pub brief: CampaignBrief,
    /// The included and extended texts, by name.
    pub includes: Vec<(String, String)>,
    /// The value of `today` in texts.
    pub today: String,
    /// The path of the campaign file, for messages.
    pub campaign_file: PathBuf,
    /// The path of the list that was copied, for messages. `None` if the list is not a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<PathBuf>,
    /// SHA-256 of the recipients, in hexadecimal.
    pub recipients_sha256: String,
    /// The rows whose recipients were forgotten since, so that the copy of the list has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<u32>,
    /// Whether texts and `where` see trimmed cells. Runs of earlier versions see the original cells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trims_cells: bool,
}

impl FrozenInputs {
    /// Reads the frozen inputs from the copies of a run.
    ///
    /// # Errors
    /// If the frozen inputs are damaged.
    pub fn from_copies(copies: &Copies) -> Result<Self, LedgerError> {
        let frozen = Self::from_bytes(copies.inputs()).map_err(|error| copies.unreadable_error(error))?;
        tracing::debug!(campaign = frozen.brief.name.as_str(), "frozen inputs read");
        Ok(frozen)
    }

    /// Loads the frozen inputs of a run.
    ///
    /// # Errors
    /// If the frozen inputs are missing or damaged, or the ledger cannot be read.
    pub async fn load_for_run(ledger: &dyn Ledger, run: &Run) -> Result<Self, LedgerError> {
        Self::from_copies(&ledger.load_copies(run).await?)
    }

    /// Parses frozen inputs in the stored form.
    ///
    /// # Errors
    /// If the bytes are not frozen inputs.
    pub fn from_bytes(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    /// Returns the stored form of the frozen inputs.
    ///
    /// # Errors
    /// If a path is not valid text.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    /// The day of the run.
    pub fn day(&self) -> CampaignDay {
        self.today.parse().map_or(CampaignDay::Coming(Date::ZERO), CampaignDay::Is)
    }

    /// Whether a run and the current campaign have the same messages: channels, texts, constants, lookup tables and
    /// variants.
    pub fn has_same_messages(&self, current: &CampaignBrief, includes: &[(String, String)]) -> bool {
        self.describe_message_changes(current, includes).is_empty()
    }

    /// Describes the differences in messages between the run and the current campaign. Empty if there are no
    /// differences.
    pub fn describe_message_changes(
        &self,
        current: &CampaignBrief,
        includes: &[(String, String)],
    ) -> Vec<&'static str> {
        let CampaignBrief { content, vars, variants, .. } = &self.brief;
        let differ =
            |wants_tables| filter_includes(&self.includes, wants_tables) != filter_includes(includes, wants_tables);
        let parts = [
            ("`vars`", *vars != current.vars),
            ("`data`", differ(true)),
            (CHANGED_TEXTS, *content != current.content || differ(false)),
            ("`variants`", *variants != current.variants),
        ];
        parts.into_iter().filter(|(_, is_changed)| *is_changed).map(|(part, _)| part).collect()
    }

    /// Describes the differences between the run and the current campaign. Empty if there are no differences.
    ///
    /// `recipients` describes how the list has changed, if it has.
    pub fn describe_differences(
        &self,
        current: &CampaignBrief,
        includes: &[(String, String)],
        recipients: Option<String>,
    ) -> Vec<String> {
        // A new key must be compared here, or be ignored for a reason. The name and the gateway identify the run, and
        // the title does not affect messages.
        let CampaignBrief {
            name: _,
            title: _,
            gateway: _,
            edition,
            purpose,
            mandatory,
            endpoint,
            timezone,
            columns,
            region,
            language,
            duplicates,
            max_invalid,
            condition,
            exclude,
            countries,
            may_be_empty: _,
            vars,
            tables,
            content,
            variants,
            holdout,
        } = &self.brief;
        let mut changes = Vec::new();
        let mut note = |is_changed: bool, key: &str| {
            if is_changed {
                changes.push(key.to_owned());
            }
        };
        note(*endpoint != current.endpoint, "`endpoint`");
        note(*purpose != current.purpose, "`purpose`");
        note(*mandatory != current.mandatory, "`mandatory`");
        note(*timezone != current.timezone, "`timezone`");
        note(*edition != current.edition, "`edition`");
        note(*columns != current.columns, "`recipients.columns`");
        note(*region != current.region, "`recipients.region`");
        note(*language != current.language, "`language`");
        note(*duplicates != current.duplicates, "`recipients.duplicates`");
        note(*max_invalid != current.max_invalid, "`recipients.max_invalid`");
        note(*condition != current.condition, "`recipients.where`");
        note(*exclude != current.exclude, "`recipients.exclude`");
        note(*countries != current.countries, "`countries`");
        note(*vars != current.vars, "`vars`");
        let differ =
            |wants_tables| filter_includes(&self.includes, wants_tables) != filter_includes(includes, wants_tables);
        note(*tables != current.tables || differ(true), "`data`");
        note(*content != current.content || differ(false), CHANGED_TEXTS);
        note(*variants != current.variants, "`variants`");
        note(*holdout != current.holdout, "`holdout`");
        changes.extend(recipients);
        changes
    }
}

/// The description of changed channels or texts.
pub const CHANGED_TEXTS: &str = "the channels or their messages";

/// The lookup tables among the included texts if `wants_tables` is true, otherwise the texts that are not tables.
fn filter_includes(includes: &[(String, String)], wants_tables: bool) -> Vec<&(String, String)> {
    includes.iter().filter(|(name, _)| LookupTable::is_source_name(name) == wants_tables).collect()
}

/// Compiles the frozen texts of a run for a list, given as its reader and its path. The path is used in messages.
///
/// # Errors
/// If the texts do not fit the list, or the list has problems.
pub fn compile_frozen<R: Read>(
    frozen: &FrozenInputs,
    list: R,
    path: &Path,
) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    compile_brief(&frozen.brief, frozen, list, path)
}

/// Like [`compile_frozen`], but for all rows of the list: the `where` condition is ignored, because it does not change
/// texts.
///
/// # Errors
/// Fails in the same cases as [`compile_frozen`].
pub fn compile_without_condition<'r>(
    frozen: &FrozenInputs,
    list: impl Read + Send + 'r,
    path: &Path,
) -> Result<CompiledCampaign<AnyList<'r>>, Vec<Finding>> {
    let list: AnyList<'r> = Box::new(list);
    compile_brief(&CampaignBrief { condition: None, ..frozen.brief.clone() }, frozen, list, path)
}

fn compile_brief<R: Read>(
    brief: &CampaignBrief,
    frozen: &FrozenInputs,
    list: R,
    path: &Path,
) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    let compiled = frozen.with_texts(|texts| prepare_campaign(brief, list, path, texts, &frozen.today));
    compiled.map_err(|error| error.findings)
}

impl FrozenInputs {
    fn with_texts<T>(&self, compile: impl FnOnce(TextInputs<'_>) -> T) -> T {
        let mut load = |name: &str| {
            let entry = self.includes.iter().find(|(include, _)| include == name);
            entry
                .map(|(_, source)| source.clone())
                .ok_or_else(|| format!("the stored inputs do not contain the template `{name}`"))
        };
        compile(TextInputs { places: None, trims_cells: self.trims_cells, load: &mut load })
    }
}

/// The size of the read buffer of a list.
const LIST_BUFFER_BYTES: usize = 1 << 16;

/// The frozen copies of a run, which a start reads and compiles once.
#[derive(Debug)]
pub struct FrozenRun {
    /// The inputs without the list.
    pub inputs: FrozenInputs,
    /// The copies, with the list.
    pub copies: Copies,
    texts: TextCache,
}

impl FrozenRun {
    /// Loads the copies of a run.
    ///
    /// # Errors
    /// If the copies are missing or damaged, or the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: &Run) -> Result<Self, LedgerError> {
        let copies = ledger.load_copies(run).await?;
        Ok(Self { inputs: FrozenInputs::from_copies(&copies)?, copies, texts: TextCache::default() })
    }

    /// Reads the copied list, and returns whether its hash equals the hash in the frozen inputs. Blocks.
    pub fn is_list_intact(&self) -> bool {
        let hashed = self.copies.open_list().and_then(|list| Tee::new(list, None::<Sink>).finish());
        hashed.is_ok_and(|sha256| sha256 == self.inputs.recipients_sha256)
    }

    /// Opens the list from its beginning, with the compiled texts. Blocks.
    ///
    /// # Errors
    /// If the list cannot be read, or the texts do not fit the list.
    pub fn open_list(&self) -> Result<CompiledCampaign<BufReader<ListReader>>, LedgerError> {
        let Self { inputs, copies, texts } = self;
        let list = copies.open_list().map_err(|error| copies.unreadable_error(error))?;
        let list = BufReader::with_capacity(LIST_BUFFER_BYTES, list);
        let compiled = inputs.with_texts(|sources| {
            texts.prepare_campaign(&inputs.brief, list, copies.place().as_ref(), sources, &inputs.today)
        });
        compiled.map_err(|PrepareError { findings, .. }| {
            let problems: Vec<String> = findings.into_iter().map(|finding| finding.message).collect();
            copies.unreadable_error(problems.join("; "))
        })
    }
}

/// Passes each row with a phone number to `visit`, in list order, with the hash of the text if the row has a message.
///
/// # Errors
/// If the list cannot be read to its end.
pub fn for_each_text_hash(
    prepared: CompiledCampaign<AnyList<'_>>,
    visit: &mut dyn FnMut(Row, Phone, Option<TextHash>),
) -> Result<(), Box<Finding>> {
    let CompiledCampaign { mut reader, recipe, .. } = prepared;
    let forms: Vec<OperationForm> =
        recipe.text_sources().map(|sources| OperationForm::from_content(&sources)).collect();
    let mut read_error = None;
    let read = || {
        let mut chunk = Chunk::new();
        match reader.read_chunk(&mut chunk) {
            Ok(true) => Some(chunk),
            Ok(false) => None,
            Err(finding) => {
                read_error = Some(finding);
                None
            }
        }
    };
    let hash = |composer: &mut Composer<'_>, chunk: Chunk| -> Vec<(Row, Phone, Option<TextHash>)> {
        let numbered = chunk.iter().filter_map(|record| Some((record, recipe.parse_phone(record)?)));
        numbered.map(|(record, phone)| (record.row, phone, hash_text(composer, &forms, record))).collect()
    };
    process_in_order(
        count_cores(),
        read,
        || recipe.composer(),
        hash,
        |texts| {
            texts.into_iter().for_each(|(row, phone, text)| visit(row, phone, text));
            ControlFlow::Continue(())
        },
    );
    read_error.map_or(Ok(()), Err)
}

/// Hashes the text of a row. Returns `None` if the row has no message.
fn hash_text(composer: &mut Composer<'_>, forms: &[OperationForm], record: RecordRef<'_>) -> Option<TextHash> {
    let ComposedMessage { number: ValidNumber { phone, .. }, arm, message } = composer.compose(record).ok()?;
    // Each run gives a row a different identifier, so the hash uses an identifier that no message has.
    let id = MessageId::new(0)?;
    Some(EncodedOperation::from_form(record.row, id, phone, &forms[arm], |place| message.text(place)).digest)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::check::CompiledCampaign;
    use crate::delivery::compile_frozen;
    use campaign_content::audience::Chunk;

    /// Frozen inputs of the first version.
    const FIRST: &str = r#"{
  "brief": {
    "name": "sale",
    "edition": { "name": "edition", "source": "autumn" },
    "gateway": "production",
    "endpoint": "async",
    "timezone": "Europe/Kyiv",
    "columns": [["phone", "Мобільний"]],
    "region": "UA",
    "duplicates": "skip",
    "max_invalid": 1000,
    "vars": [["shop", "Olena & Co"]],
    "content": { "kind": "sms", "stages": [ { "sms": {
      "signature": { "name": "channels[0].sms.signature", "source": "OlenaCo" },
      "message": { "name": "channels[0].sms.message", "source": "{{ shop }}" },
      "lifetime": null, "short_link": null, "max_parts": 3, "fields": {}
    } } ] }
  },
  "includes": [["greeting.txt", "Hello"]],
  "today": "2026-11-21",
  "campaign_file": "sale.yaml",
  "list": "sale.csv",
  "recipients_sha256": "00"
}"#;

    #[test]
    fn old_frozen_copies_are_read_and_keep_their_format() {
        let frozen: FrozenInputs = serde_json::from_str(FIRST).unwrap();
        assert_eq!(frozen.brief.region.map(|region| region.to_string()).as_deref(), Some("UA"));
        let stored: serde_json::Value = serde_json::from_str(FIRST).unwrap();
        assert_eq!(serde_json::to_value(&frozen).unwrap(), stored);
        let international: FrozenInputs = serde_json::from_str(&FIRST.replace("\"UA\"", "null")).unwrap();
        assert_eq!((international.brief.region, international.trims_cells), (None, false));
    }

    /// The message of the first row of a list.
    fn render_first_row(frozen: &FrozenInputs) -> String {
        let list = "phone,name\n+380501234567, Olena \n";
        let CompiledCampaign { mut reader, recipe, .. } =
            compile_frozen(frozen, list.as_bytes(), Path::new("list.csv")).unwrap();
        let mut chunk = Chunk::new();
        assert!(reader.read_chunk(&mut chunk).unwrap());
        let mut composer = recipe.composer();
        let composed = composer.compose(chunk.get(0).unwrap()).unwrap();
        composed.message.texts().map(|(_, text)| text.to_owned()).last().unwrap()
    }

    #[test]
    fn whitespace_around_cells_is_kept_in_old_runs() {
        let earlier = FIRST.replace("Мобільний", "phone").replace("{{ shop }}", "Hello,{{ name }}!");
        let earlier: FrozenInputs = serde_json::from_str(&earlier).unwrap();
        assert_eq!(render_first_row(&earlier), "Hello, Olena !");
        assert_eq!(render_first_row(&FrozenInputs { trims_cells: true, ..earlier }), "Hello,Olena!");
    }
}
