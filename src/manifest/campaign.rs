//! A campaign file, understood.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::notify::{NotificationMethod, NotifySettings};
use super::profile::Profile;
use super::{
    CampaignPath, Gaps, Holdout, MessageVariant, PastRecipients, Percentage, Rate, RecipientSource, SendingDeadline,
    SendingWindow, SourceMap, SuppressionFile, TableFile, TextFolders, WindowZone,
};
use crate::calendar::{DailyLimits, Schedule};
use crate::domain::{
    Budget, Endpoint, FrequencyCap, Language, ListFormat, MessageContent, NamedTemplate, Purpose, Region,
};

/// The name of the built-in gateway: the sandbox, in-process.
pub const SANDBOX: &str = "sandbox";

/// A campaign, valid as far as its file and its text files alone show.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What a run freezes.
    pub brief: CampaignBrief,
    /// Where its recipients come from.
    pub recipients: RecipientSource,
    /// How that file is written, as far as the campaign says it.
    pub form: ListFormat,
    /// Whom nothing is sent to, besides those whom the ledger knows; may change between two starts of a run.
    pub suppress: Vec<SuppressionFile>,
    /// The tables that its texts look something up in.
    pub data: Vec<TableFile>,
    /// How it is sent; may change between two starts of a run.
    pub delivery: DeliverySettings,
    /// The most that its edition may use; may change between two starts of a run.
    pub limits: Budget,
    /// How many messages of its edition leave on a day; may change between two starts of a run.
    pub per_day: Option<DailyLimits>,
    /// When its messages may leave; may change between two starts of a run.
    pub window: Option<SendingWindow>,
    /// When nothing leaves any more; may change between two starts of a run.
    pub until: Option<SendingDeadline>,
    /// When it runs by itself; may change between two starts of a run.
    pub schedule: Option<Schedule>,
    /// How it is learned what became of messages; may change between two starts of a run.
    pub receipts: ReceiptMode,
    /// Who is told how its live runs went; may change between two starts of a run.
    pub notify: Option<NotifySettings>,
    /// Where the results of a live run go.
    pub results: CampaignPath,
    /// The day for which it was read: `today` in its texts and in the names of its files.
    pub today: Date,
    /// The campaign file, as it was named.
    pub file: PathBuf,
    /// Where text files are looked for.
    pub folders: TextFolders,
    /// Where its keys and texts stand.
    pub places: SourceMap,
    /// The wrong parts of its file; a campaign with gaps is never sent.
    pub gaps: Gaps,
}

/// The part of a campaign that a run freezes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignBrief {
    /// The campaign's name: 1 to 64 of a-z, 0-9 and `-`.
    pub name: String,
    /// What makes a repeated campaign a new one.
    pub edition: Option<NamedTemplate>,
    /// What its messages are for, which decides whether an opt-out holds them back.
    #[serde(default, skip_serializing_if = "Purpose::is_marketing")]
    pub purpose: Purpose,
    /// The profile's name; [`SANDBOX`] is built in.
    pub gateway: String,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The IANA name of the time zone of local times.
    pub timezone: Option<String>,
    /// Template names with their columns' headers, in the file's order.
    pub columns: Vec<(String, String)>,
    /// The region of national numbers.
    pub region: Option<Region>,
    /// The language of amounts and dates in texts. `None` for the language of the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// What becomes of a repeated number.
    pub duplicates: DuplicatePolicy,
    /// The part of the rows that may be invalid.
    pub max_invalid: Percentage,
    /// Who of the list is meant: an expression over its columns; nothing for everybody.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<NamedTemplate>,
    /// Who of the list is left out because of an earlier message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<PastRecipients>,
    /// Whether a list without anybody is fine: there is nobody to send to then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_empty: bool,
    /// Constants of the texts, in the file's order.
    pub vars: Vec<(String, String)>,
    /// The names of the tables that texts look something up in.
    #[serde(rename = "data", default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// What is said.
    pub content: MessageContent<NamedTemplate>,
    /// What is tried against each other; nothing where everybody gets `content`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<MessageVariant>,
    /// Who gets nothing, to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<Holdout>,
}

/// What becomes of a number that stands in the list more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicatePolicy {
    /// Its first row is sent, the others are skipped.
    #[default]
    Skip,
    /// Nothing is sent.
    Refuse,
    /// Every row is sent.
    Allow,
}

/// How fast and how carefully a campaign is sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliverySettings {
    /// The most operations in a time; nothing for as many as the profile allows.
    pub rate: Option<Rate>,
    /// The most operations in an envelope.
    pub batch: NonZeroU32,
    /// The most envelopes that wait for their answers.
    pub in_flight: NonZeroU32,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// What becomes of a row in doubt.
    pub on_in_doubt: InDoubtPolicy,
    /// How often a number is written to by all campaigns.
    pub cap: Option<FrequencyCap>,
    /// What stops a run before its end.
    pub stop_after: BreakerSettings,
}

/// How it is learned what became of messages that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiptMode {
    /// The gateway tells it where the profile has `hook`; what it does not tell is asked.
    #[default]
    Auto,
    /// The same, and a profile without `hook` is refused.
    Webhook,
    /// It is asked.
    Poll,
    /// Nobody wants to know.
    Off,
}

impl ReceiptMode {
    /// Whether messages get an address for webhooks, where there is one.
    #[must_use]
    pub fn takes_webhooks(self) -> bool {
        matches!(self, ReceiptMode::Auto | ReceiptMode::Webhook)
    }
}

impl FromStr for ReceiptMode {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "auto" => Ok(ReceiptMode::Auto),
            "webhook" => Ok(ReceiptMode::Webhook),
            "poll" => Ok(ReceiptMode::Poll),
            "off" => Ok(ReceiptMode::Off),
            _ => Err(()),
        }
    }
}

/// What becomes of a row of which nobody knows whether it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InDoubtPolicy {
    /// It stays in doubt until evidence or a person decides.
    #[default]
    Hold,
    /// It counts as sent once the gateway was asked at the end of a run.
    AssumeSent,
    /// It is sent again once the gateway surely does not know it; only where a second message does no harm.
    ResendIfNotFound,
}

impl InDoubtPolicy {
    /// The word in campaign files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            InDoubtPolicy::Hold => "hold",
            InDoubtPolicy::AssumeSent => "assume_sent",
            InDoubtPolicy::ResendIfNotFound => "resend_if_not_found",
        }
    }
}

/// What stops a run before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerSettings {
    /// Envelopes in a row whose outcome is not known.
    pub doubtful_envelopes: NonZeroU32,
    /// Operations in a row that were rejected with the same text.
    pub same_error_in_a_row: NonZeroU32,
    /// The part of the answered operations that may be rejected.
    pub rejected: Percentage,
    /// How long a gateway that cannot be reached is tried, where the campaign says it.
    pub unreachable: Option<Duration>,
}

impl BreakerSettings {
    /// How long a gateway that cannot be reached is tried: on this machine not for long, since what does not run there does
    /// not come back by itself.
    #[must_use]
    pub fn unreachable(&self, loopback: bool) -> Duration {
        let default = if loopback { Duration::from_secs(10) } else { Duration::from_secs(30 * 60) };
        self.unreachable.unwrap_or(default)
    }
}

impl CampaignBrief {
    /// Whether it is sent to the built-in sandbox, so to nobody.
    #[must_use]
    pub fn is_rehearsal(&self) -> bool {
        self.gateway == SANDBOX
    }

    /// The language of amounts and dates in its texts.
    #[must_use]
    pub fn text_language(&self) -> Language {
        self.language.or_else(|| self.region.map(Language::for_region)).unwrap_or_default()
    }

    /// The zone of its `timezone`.
    #[must_use]
    pub fn home_zone(&self) -> TimeZone {
        self.timezone.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
    }
}

impl Campaign {
    /// Who is told of it through a profile: whom it names, and whom the profile does.
    pub fn notify_settings<'c>(&'c self, profile: Option<&'c Profile>) -> impl Iterator<Item = &'c NotifySettings> {
        self.notify.iter().chain(profile.and_then(|profile| profile.notify.as_ref()))
    }

    /// The same campaign without the program that it starts to notify someone.
    #[must_use]
    pub fn without_notify_command(mut self) -> Self {
        self.notify = self.notify.filter(|notify| !matches!(notify.method, NotificationMethod::Command(_)));
        self
    }

    /// The rate at which it is sent through a profile: its own, at most that of the account; nothing where nobody says one.
    #[must_use]
    pub fn effective_rate(&self, profile: Option<&Profile>) -> Option<Rate> {
        profile.map_or(self.delivery.rate, |profile| self.delivery.limited_by_profile(profile).rate)
    }

    /// The zone of its `timezone`.
    #[must_use]
    pub fn home_zone(&self) -> TimeZone {
        self.brief.home_zone()
    }

    /// The column with the time zones of its recipients, where its window is on their clocks.
    #[must_use]
    pub fn zone_column(&self) -> Option<&str> {
        match &self.window.as_ref()?.zone {
            WindowZone::Column(name) => Some(name),
            WindowZone::Campaign | WindowZone::Recipient => None,
        }
    }

    /// Whether the file says where it goes, so that nobody forgot it.
    #[must_use]
    pub fn has_gateway_key(&self) -> bool {
        self.places.locate_key("gateway").is_some()
    }

    /// The same campaign as an occurrence of its schedule: of this edition, unless it names one itself.
    #[must_use]
    pub fn with_edition(mut self, edition: &str) -> Self {
        self.brief
            .edition
            .get_or_insert_with(|| NamedTemplate { name: "edition".to_owned(), source: edition.to_owned() });
        self
    }

    /// The same campaign with results of its edition alone, unless it names a place for them.
    #[must_use]
    pub fn with_results_for_edition(mut self, edition: &str) -> Self {
        if self.places.locate_key("results").is_none() {
            let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            let edition: String = edition.chars().map(|c| if fits(c) { c } else { '-' }).collect();
            self.results =
                default_results_path(&self.results.with_path(&self.file), &format!("{}-{edition}", self.brief.name));
        }
        self
    }

    /// The same campaign through another gateway.
    #[must_use]
    pub fn with_gateway(mut self, gateway: &str) -> Self {
        gateway.clone_into(&mut self.brief.gateway);
        self
    }

    /// The file that a run's results go to; those of a rehearsal stand beside those of a live run, never in their place.
    #[must_use]
    pub fn results_file(&self) -> CampaignPath {
        if self.brief.is_rehearsal() { insert_path_word(&self.results, "sandbox") } else { self.results.clone() }
    }

    /// The file that the results of a dry run go to.
    #[must_use]
    pub fn dry_results_file(&self) -> CampaignPath {
        insert_path_word(&self.results_file(), "dry-run")
    }
}

impl DeliverySettings {
    /// The same within what a profile allows: its rate and its envelope.
    #[must_use]
    pub fn limited_by_profile(self, profile: &Profile) -> Self {
        let rate = self.rate.map_or(profile.rate, |rate| rate.min_rate(profile.rate));
        Self { rate: Some(rate), batch: self.batch.min(profile.batch_limit), ..self }
    }
}

/// Where the results of a campaign go that does not name a place.
pub(super) fn default_results_path(file: &CampaignPath, name: &str) -> CampaignPath {
    file.join_sibling(format!("results/{name}.csv"))
}

/// The path with a word before its `.csv`; another ending stays, so that no two paths become one.
fn insert_path_word(results: &CampaignPath, word: &str) -> CampaignPath {
    let path = results.path();
    let csv = path.extension().is_some_and(|extension| extension == "csv");
    let mut name = if csv { path.file_stem() } else { path.file_name() }.unwrap_or_default().to_owned();
    name.push(format!(".{word}.csv"));
    results.join_sibling(name)
}
