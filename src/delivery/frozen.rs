//! What a run froze besides its list: what it is resumed, retried and exported from.

use std::path::PathBuf;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::ledger::{Copies, Ledger, LedgerError, Run};
use crate::manifest::{CampaignBrief, CampaignDay};
use crate::message::LookupTable;

/// What a run froze besides its recipients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrozenInputs {
    /// What the campaign says, to whom, and through what.
    pub brief: CampaignBrief,
    /// The texts that others include or extend, by name.
    pub includes: Vec<(String, String)>,
    /// The date that texts saw.
    pub today: String,
    /// The campaign file, so that it can be named.
    pub campaign_file: PathBuf,
    /// The file of the list that was copied, so that it can be named; nothing where it came from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<PathBuf>,
    /// SHA-256 of the recipients, in hexadecimal.
    pub recipients_sha256: String,
    /// The rows whose people were forgotten since, so that the copy of the list is not what it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<u32>,
    /// Whether texts and `where` see trimmed cells. Runs of earlier versions see the original cells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trims_cells: bool,
}

impl FrozenInputs {
    /// What the copies of a run hold of it.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn from_copies(copies: &Copies) -> Result<Self, LedgerError> {
        Self::from_bytes(copies.inputs()).map_err(|error| copies.unreadable_error(error))
    }

    /// What a run froze.
    ///
    /// # Errors
    /// When it is missing or damaged.
    pub async fn load_for_run(ledger: &dyn Ledger, run: &Run) -> Result<Self, LedgerError> {
        Self::from_copies(&ledger.load_copies(run).await?)
    }

    /// What was frozen as these bytes.
    ///
    /// # Errors
    /// When they are nothing that was frozen.
    pub fn from_bytes(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    /// The bytes as which the ledger keeps it.
    ///
    /// # Errors
    /// When it names a file whose path is no text.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    /// The day of which it is.
    #[must_use]
    pub fn day(&self) -> CampaignDay {
        self.today.parse().map_or(CampaignDay::Coming(Date::ZERO), CampaignDay::Is)
    }

    /// Whether its messages are those of the campaign as it is now: channels, texts, constants and variants.
    #[must_use]
    pub fn has_same_messages(&self, now: &CampaignBrief, includes: &[(String, String)]) -> bool {
        let CampaignBrief { content, vars, variants, .. } = &self.brief;
        *content == now.content && *vars == now.vars && *variants == now.variants && self.includes == includes
    }

    /// What differs between this run and the campaign as it is now, in words; empty when nothing does.
    ///
    /// `recipients` are the words for what changed of the list.
    #[must_use]
    pub fn describe_differences(
        &self,
        now: &CampaignBrief,
        includes: &[(String, String)],
        recipients: Option<String>,
    ) -> Vec<String> {
        // A new key has to be compared here, or left out with its reason: name and gateway are how the run was found.
        let CampaignBrief {
            name: _,
            gateway: _,
            edition,
            purpose,
            endpoint,
            timezone,
            columns,
            region,
            language,
            duplicates,
            max_invalid,
            condition,
            exclude,
            may_be_empty: _,
            vars,
            tables,
            content,
            variants,
            holdout,
        } = &self.brief;
        let mut changes = Vec::new();
        let mut note = |changed: bool, what: &str| {
            if changed {
                changes.push(what.to_owned());
            }
        };
        note(*endpoint != now.endpoint, "`endpoint`");
        note(*purpose != now.purpose, "`purpose`");
        note(*timezone != now.timezone, "`timezone`");
        note(*edition != now.edition, "`edition`");
        note(*columns != now.columns, "`recipients.columns`");
        note(*region != now.region, "`recipients.region`");
        note(*language != now.language, "`language`");
        note(*duplicates != now.duplicates, "`recipients.duplicates`");
        note(*max_invalid != now.max_invalid, "`recipients.max_invalid`");
        note(*condition != now.condition, "`recipients.where`");
        note(*exclude != now.exclude, "`recipients.exclude`");
        note(*vars != now.vars, "`vars`");
        let differ = |tables| filter_includes(&self.includes, tables) != filter_includes(includes, tables);
        note(*tables != now.tables || differ(true), "`data`");
        note(*content != now.content || differ(false), "the channels or their messages");
        note(*variants != now.variants, "`variants`");
        note(*holdout != now.holdout, "`holdout`");
        changes.extend(recipients);
        changes
    }
}

/// The tables among the texts of a campaign, or the other texts.
fn filter_includes(includes: &[(String, String)], tables: bool) -> Vec<&(String, String)> {
    includes.iter().filter(|(name, _)| LookupTable::is_source(name) == tables).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::audience::Chunk;
    use crate::check::CompiledCampaign;
    use crate::delivery::compile_frozen;

    /// What a run wrote when the first version froze it.
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
    fn old_frozen_copies_are_read_and_keep_their_form() {
        let frozen: FrozenInputs = serde_json::from_str(FIRST).unwrap();
        assert_eq!(frozen.brief.region.map(|region| region.to_string()).as_deref(), Some("UA"));
        let form: serde_json::Value = serde_json::from_str(FIRST).unwrap();
        assert_eq!(serde_json::to_value(&frozen).unwrap(), form);
        let international: FrozenInputs = serde_json::from_str(&FIRST.replace("\"UA\"", "null")).unwrap();
        assert_eq!((international.brief.region, international.trims_cells), (None, false));
    }

    /// What the first row of a list is told by a run.
    fn render_first_row(frozen: &FrozenInputs) -> String {
        let list = "phone,name\n+380501234567, Olena \n";
        let CompiledCampaign { mut reader, recipe, .. } =
            compile_frozen(frozen, (list.as_bytes(), Path::new("list.csv"))).unwrap();
        let mut chunk = Chunk::new();
        assert!(reader.read_chunk(&mut chunk).unwrap());
        let mut composer = recipe.composer();
        let composed = composer.compose(chunk.get(0).unwrap()).unwrap();
        composed.message.texts().map(|(_, text)| text.to_owned()).last().unwrap()
    }

    #[test]
    fn blanks_around_cells_count_in_old_runs() {
        let earlier = FIRST.replace("Мобільний", "phone").replace("{{ shop }}", "Hello,{{ name }}!");
        let earlier: FrozenInputs = serde_json::from_str(&earlier).unwrap();
        assert_eq!(render_first_row(&earlier), "Hello, Olena !");
        assert_eq!(render_first_row(&FrozenInputs { trims_cells: true, ..earlier }), "Hello,Olena!");
    }
}
