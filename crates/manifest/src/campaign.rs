//! The types of a campaign file and its variants, and the placeholders for parts with errors.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::campaign_tests::CampaignTest;
use super::document::ConfigSection;
use super::keys::VARIANT_KEYS;
use super::notify::{NotificationMethod, NotifySettings};
use super::profile::Profile;
use super::yaml::Node;
use super::{
    CampaignPath, ConsentSource, PastRecipients, Percentage, Rate, RecipientSource, SendingDeadline, SendingWindow,
    SourceMap, SuppressionFile, TableFile, TextFolders, WindowZone,
};
use campaign_core::calendar::{DailyLimits, Schedule};
use campaign_core::domain::{
    Budget, CountrySet, Endpoint, FrequencyCap, Language, ListFormat, MessageContent, NamedTemplate, Purpose, Region,
    VariantAllocation, intersect_countries,
};

/// The name of the built-in gateway, the in-process sandbox.
pub const SANDBOX: &str = "sandbox";

/// A campaign whose file and text files are valid, or a draft with [`Gaps`].
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The part that a run freezes.
    pub brief: CampaignBrief,
    /// The source of the recipients.
    pub recipients: RecipientSource,
    /// The format of the list, as far as the campaign defines it.
    pub format: ListFormat,
    /// Opted-out numbers in addition to the ledger's; can change when a run is resumed.
    pub suppress: Vec<SuppressionFile>,
    /// The source of the recipients' consent; read again whenever a run starts or is resumed.
    pub consent: Option<ConsentSource>,
    /// Whether the campaign itself requires consent; see [`Campaign::needs_consent`].
    pub requires_consent: bool,
    /// The lookup tables that the texts use.
    pub data: Vec<TableFile>,
    /// The sending options of the campaign; they can change when a run is resumed.
    pub delivery: DeliverySettings,
    /// The budget of the edition; can change when a run is resumed.
    pub limits: Budget,
    /// The maximum number of messages of the edition per day; can change when a run is resumed.
    pub per_day: Option<DailyLimits>,
    /// The sending window; can change when a run is resumed.
    pub window: Option<SendingWindow>,
    /// The end of all sending; can change when a run is resumed.
    pub until: Option<SendingDeadline>,
    /// The schedule; can change when a run is resumed.
    pub schedule: Option<Schedule>,
    /// The collection of delivery statuses; can change when a run is resumed.
    pub receipts: ReceiptMode,
    /// Notifications about live runs; can change when a run is resumed.
    pub notify: Option<NotifySettings>,
    /// The campaign's tests, in the order of the file.
    pub tests: Vec<CampaignTest>,
    /// The results file of a live run.
    pub results: CampaignPath,
    /// The day for which the campaign was read: `today` in texts and file names.
    pub today: Date,
    /// The campaign file, as the user named it.
    pub file: PathBuf,
    /// The folders with the text files.
    pub folders: TextFolders,
    /// The locations of the keys and texts in the files.
    pub places: SourceMap,
    /// The parts of the file that have errors; a campaign with gaps is never sent.
    pub gaps: Gaps,
}

/// The part of a campaign that a run freezes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignBrief {
    /// The campaign's name: 1 to 64 of a-z, 0-9 and `-`.
    pub name: String,
    /// The human-readable name, which has no effect on sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text that distinguishes the editions of a repeated campaign.
    pub edition: Option<NamedTemplate>,
    /// The purpose of the messages, which decides which opt-outs apply.
    #[serde(default, skip_serializing_if = "Purpose::is_marketing")]
    pub purpose: Purpose,
    /// Whether the messages must arrive, even if a recipient opted out of all messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mandatory: bool,
    /// The name of the profile; [`SANDBOX`] is built in.
    pub gateway: String,
    /// The endpoint for all messages of the campaign; `sync` by default.
    pub endpoint: Endpoint,
    /// The IANA name of the time zone of local times.
    pub timezone: Option<String>,
    /// Names in templates with the headers of their columns, in the file's order.
    pub columns: Vec<(String, String)>,
    /// The region of national numbers.
    pub region: Option<Region>,
    /// The language of amounts and dates in texts. `None` for the language of the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The treatment of repeated numbers.
    pub duplicates: DuplicatePolicy,
    /// The share of rows that can be invalid.
    pub max_invalid: Percentage,
    /// The condition that selects recipients, an expression over columns; `None` for all.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<NamedTemplate>,
    /// The recipients to skip because of an earlier message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<PastRecipients>,
    /// The countries that the messages may reach. `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub countries: Option<CountrySet>,
    /// Whether the list can be empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_empty: bool,
    /// The constants of the texts, in the file's order.
    pub vars: Vec<(String, String)>,
    /// The names of the lookup tables that the texts use.
    #[serde(rename = "data", default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// The content of the messages.
    pub content: MessageContent<NamedTemplate>,
    /// The variants of an A/B test; empty if all recipients get `content`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<MessageVariant>,
    /// The holdout group, which gets no messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<Holdout>,
}

/// The treatment of a number that is in the list more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicatePolicy {
    /// The first row is sent, the others are skipped.
    #[default]
    Skip,
    /// No messages are sent.
    Refuse,
    /// Every row is sent.
    Allow,
}

/// Speed and safety settings of sending.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliverySettings {
    /// The rate limit; `None` for that of the profile.
    pub rate: Option<Rate>,
    /// The maximum number of operations in an envelope.
    pub batch: NonZeroU32,
    /// The maximum number of envelopes in flight.
    pub in_flight: NonZeroU32,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The treatment of rows in doubt.
    pub on_in_doubt: InDoubtPolicy,
    /// The frequency cap over all campaigns.
    pub cap: Option<FrequencyCap>,
    /// The condition under which the circuit breaker stops a run.
    pub stop_after: BreakerSettings,
}

/// The collection of delivery statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiptMode {
    /// By webhooks if the profile has `hook`; by requests for everything else.
    #[default]
    Auto,
    /// As `Auto`, but a profile without `hook` is refused.
    Webhook,
    /// By requests.
    Poll,
    /// Not at all.
    Off,
}

impl ReceiptMode {
    /// Whether messages include the webhook address, if one is configured.
    pub fn uses_webhooks(self) -> bool {
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

/// The treatment of rows in doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InDoubtPolicy {
    /// A row stays in doubt until evidence or a person decides.
    #[default]
    Hold,
    /// A row counts as sent if it is still in doubt after the gateway was asked at the end of a run.
    AssumeSent,
    /// A row is sent again once the gateway has confirmed that it does not know the message. Use this only if a second
    /// message does no harm.
    ResendIfNotFound,
}

impl InDoubtPolicy {
    /// The name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            InDoubtPolicy::Hold => "hold",
            InDoubtPolicy::AssumeSent => "assume_sent",
            InDoubtPolicy::ResendIfNotFound => "resend_if_not_found",
        }
    }
}

/// The circuit breaker: when a failing run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerSettings {
    /// Consecutive envelopes with an unknown outcome.
    pub doubtful_envelopes: NonZeroU32,
    /// Consecutive operations that were rejected with the same error.
    pub same_error_in_a_row: NonZeroU32,
    /// The share of answered operations that can be rejected.
    pub rejected: Percentage,
    /// The share of recipients who can opt out because of the run, if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opted_out: Option<Percentage>,
    /// The time for which an unreachable gateway is retried, if the campaign defines it.
    pub unreachable: Option<Duration>,
}

impl BreakerSettings {
    /// The time for which an unreachable gateway is retried. The default for a local gateway is short, because a
    /// stopped local process does not restart on its own.
    pub fn unreachable_timeout(&self, is_loopback: bool) -> Duration {
        let default = if is_loopback { Duration::from_secs(10) } else { Duration::from_secs(30 * 60) };
        self.unreachable.unwrap_or(default)
    }
}

impl CampaignBrief {
    /// Whether the campaign uses the built-in sandbox, which sends no messages to recipients.
    pub fn is_rehearsal(&self) -> bool {
        self.gateway == SANDBOX
    }

    /// The language of amounts and dates in the campaign's texts.
    pub fn text_language(&self) -> Language {
        self.language.or_else(|| self.region.map(Language::for_region)).unwrap_or_default()
    }

    /// The countries that the campaign's messages may reach through a profile. `None` if all countries are allowed.
    pub fn allowed_countries(&self, profile: Option<&Profile>) -> Option<CountrySet> {
        let policy = profile.and_then(|profile| profile.countries.as_ref());
        intersect_countries([self.countries.as_ref(), policy])
    }

    /// The home countries of a profile. `None` if the campaign defines its own `countries`. The countries of the
    /// profile's policy make no difference, because they limit all campaigns.
    pub fn effective_home<'p>(&self, profile: Option<&'p Profile>) -> Option<&'p CountrySet> {
        profile.filter(|_| self.countries.is_none())?.home.as_ref()
    }

    /// The time zone of the campaign; UTC if the campaign names none.
    pub fn home_zone(&self) -> TimeZone {
        self.timezone.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
    }
}

impl Campaign {
    /// The notification settings of the campaign and of the profile.
    pub fn notify_settings<'c>(&'c self, profile: Option<&'c Profile>) -> impl Iterator<Item = &'c NotifySettings> {
        self.notify.iter().chain(profile.and_then(|profile| profile.notify.as_ref()))
    }

    /// Removes the notification command from the campaign.
    #[must_use]
    pub fn without_notify_command(mut self) -> Self {
        self.notify = self.notify.filter(|notify| !matches!(notify.method, NotificationMethod::Command(_)));
        self
    }

    /// The lower of the campaign's and the profile's rate limit; `None` if neither is defined.
    pub fn effective_rate(&self, profile: Option<&Profile>) -> Option<Rate> {
        profile.map_or(self.delivery.rate, |profile| self.delivery.with_profile_limits(profile).rate)
    }

    /// The time zone of the campaign; UTC if the campaign names none.
    pub fn home_zone(&self) -> TimeZone {
        self.brief.home_zone()
    }

    /// Whether recipients without consent are skipped. This applies to marketing if the campaign or the profile
    /// requires consent.
    pub fn needs_consent(&self, profile: Option<&Profile>) -> bool {
        let is_required = self.requires_consent || profile.is_some_and(|profile| profile.requires_consent);
        is_required && self.brief.purpose.is_marketing()
    }

    /// The suppression files that apply to this campaign through a profile. Service messages ignore these files.
    pub fn suppression_files<'c>(&'c self, profile: Option<&'c Profile>) -> impl Iterator<Item = &'c SuppressionFile> {
        let files = self.suppress.iter().chain(profile.into_iter().flat_map(|profile| &profile.suppress));
        files.filter(|_| self.brief.purpose.is_marketing())
    }

    /// The column with the recipients' time zones, if the window uses one.
    pub fn zone_column(&self) -> Option<&str> {
        match &self.window.as_ref()?.zone {
            WindowZone::Column(name) => Some(name),
            WindowZone::Campaign | WindowZone::Recipient => None,
        }
    }

    /// Whether the file names a gateway.
    pub fn has_gateway_key(&self) -> bool {
        self.places.locate_key("gateway").is_some()
    }

    /// Sets the edition for an occurrence of the schedule, unless the campaign defines an edition.
    #[must_use]
    pub fn with_edition(mut self, edition: &str) -> Self {
        self.brief
            .edition
            .get_or_insert_with(|| NamedTemplate { name: "edition".to_owned(), source: edition.to_owned() });
        self
    }

    /// Names the results file after the campaign and the edition, unless the campaign defines a results file.
    #[must_use]
    pub fn with_results_for_edition(mut self, edition: &str) -> Self {
        if self.places.locate_key("results").is_none() {
            let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            let edition: String = edition.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect();
            self.results =
                default_results_path(&self.results.with_path(&self.file), &format!("{}-{edition}", self.brief.name));
        }
        self
    }

    /// Replaces the gateway of the campaign.
    #[must_use]
    pub fn with_gateway(mut self, gateway: &str) -> Self {
        gateway.clone_into(&mut self.brief.gateway);
        self
    }

    /// The results file of a run. A rehearsal has a separate file next to the file of a live run.
    pub fn results_file(&self) -> CampaignPath {
        if self.brief.is_rehearsal() { insert_path_word(&self.results, "sandbox") } else { self.results.clone() }
    }

    /// The results file of a dry run.
    pub fn dry_results_file(&self) -> CampaignPath {
        insert_path_word(&self.results_file(), "dry-run")
    }
}

impl DeliverySettings {
    /// Reduces the rate and the envelope size to the limits of a profile.
    #[must_use]
    pub fn with_profile_limits(self, profile: &Profile) -> Self {
        let rate = self.rate.map_or(profile.rate, |rate| rate.min_rate(profile.rate));
        Self { rate: Some(rate), batch: self.batch.min(profile.batch_limit), ..self }
    }
}

/// The default results file of a campaign.
pub(super) fn default_results_path(file: &CampaignPath, name: &str) -> CampaignPath {
    file.join_sibling(format!("results/{name}.csv"))
}

/// Inserts a word before the extension `.csv`. If a name does not end with `.csv`, the word and `.csv` are appended, so
/// that different paths stay different.
fn insert_path_word(results: &CampaignPath, word: &str) -> CampaignPath {
    let path = results.path();
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    let mut name = if is_csv { path.file_stem() } else { path.file_name() }.unwrap_or_default().to_owned();
    name.push(format!(".{word}.csv"));
    results.join_sibling(name)
}

/// A variant of the message, which part of the recipients get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageVariant {
    /// The name: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// The share of recipients who get the variant.
    pub share: Percentage,
    /// The content, if it differs from that of the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<MessageContent<NamedTemplate>>,
    /// The variant's constants, which override or extend those of the campaign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vars: Vec<(String, String)>,
}

/// The holdout group: recipients who get no message, for comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdout {
    /// The share of recipients.
    pub share: Percentage,
    /// The group of campaigns that hold out the same recipients; `None` for this campaign alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
}

/// A message that some recipients get: a variant, or the message of a campaign without variants.
#[derive(Clone, Debug)]
pub struct MessageArm<'b> {
    /// The name of the variant; `None` without variants.
    pub name: Option<&'b str>,
    /// The variant's own content, or the campaign's if the variant defines none.
    pub content: &'b MessageContent<NamedTemplate>,
    /// The constants of its texts.
    pub vars: Cow<'b, [(String, String)]>,
}

/// The name of the variable that holds the variant's name in texts.
pub const VARIANT: &str = "variant";

impl CampaignBrief {
    /// The message of each variant in the order of the file, or the only message of a campaign without variants. Never
    /// empty.
    pub fn list_arms(&self) -> Vec<MessageArm<'_>> {
        if self.variants.is_empty() {
            return vec![MessageArm { name: None, content: &self.content, vars: Cow::Borrowed(&self.vars) }];
        }
        let mut arms = Vec::with_capacity(self.variants.len());
        for variant in &self.variants {
            let is_overridden = |name: &String| variant.vars.iter().any(|(other, _)| other == name);
            let shared = self.vars.iter().filter(|(name, _)| !is_overridden(name));
            let name_constant = (VARIANT.to_owned(), variant.name.clone());
            arms.push(MessageArm {
                name: Some(&variant.name),
                content: variant.content.as_ref().unwrap_or(&self.content),
                vars: Cow::Owned(shared.chain(&variant.vars).cloned().chain([name_constant]).collect()),
            });
        }
        arms
    }

    /// The content of the campaign, followed by the content of each variant that defines its own.
    pub fn all_contents(&self) -> impl Iterator<Item = &MessageContent<NamedTemplate>> {
        std::iter::once(&self.content).chain(self.variants.iter().filter_map(|variant| variant.content.as_ref()))
    }

    /// The names of all constants that texts of the campaign or of any variant can use.
    pub fn constant_names(&self) -> Vec<&str> {
        let variant_vars = self.variants.iter().flat_map(|variant| &variant.vars);
        let name_constant = (!self.variants.is_empty()).then_some(VARIANT);
        self.vars.iter().chain(variant_vars).map(|(name, _)| name.as_str()).chain(name_constant).collect()
    }

    /// The allocation of the recipients to the variants and the holdout group.
    pub fn variant_allocation(&self) -> VariantAllocation {
        let shares: Vec<u64> = self.variants.iter().map(|variant| variant.share.hundredths().into()).collect();
        let allocation = VariantAllocation::new(&self.name, &shares);
        match &self.holdout {
            Some(Holdout { share, group }) => {
                allocation.with_holdout(group.as_deref().unwrap_or(&self.name), share.hundredths().into())
            }
            None => allocation,
        }
    }
}

/// The parts of a campaign that are placeholders. A campaign with gaps is only searched for more mistakes and never
/// sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Whether there is any placeholder.
    pub(crate) any: bool,
    /// Whether the list or its format is unknown.
    pub list: bool,
    /// Whether `recipients` has errors, which might explain a missing phone column.
    pub recipients: bool,
    /// Names that texts can use and that the file does not define properly.
    names: BTreeSet<String>,
    /// Whether the names that the file was meant to define are unknown.
    any_name: bool,
}

impl Gaps {
    /// Whether the author might have meant the file to define this name for texts.
    pub fn might_define(&self, name: &str) -> bool {
        self.any_name || self.names.contains(name)
    }

    /// Collects the names that the author might have meant to define: the keys of `vars`, `columns` and `data`, unknown
    /// keys, and the keys under unknown keys.
    pub(super) fn collect_possible_names(&mut self, root: ConfigSection<'_>) {
        let recipients = root.subsection("recipients");
        let variants = root.find_value("variants").and_then(Node::as_entries).unwrap_or_default();
        let variants = variants.iter().map(|entry| ConfigSection::new(Some(&entry.value), VARIANT_KEYS));
        let sections: Vec<ConfigSection<'_>> = [root, recipients].into_iter().chain(variants).collect();
        for section in &sections {
            for entry in section.unknown_entries() {
                self.names.insert(entry.key.clone());
                self.names.extend(entry.value.as_entries().unwrap_or_default().iter().map(|inner| inner.key.clone()));
            }
            for map in ["vars", "columns", "data"].into_iter().filter_map(|key| section.find_value(key)) {
                match map.as_entries() {
                    Some(entries) => self.names.extend(entries.iter().map(|entry| entry.key.clone())),
                    None => self.any_name = true,
                }
            }
        }
    }
}
