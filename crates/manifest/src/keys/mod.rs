//! Tables of the keys that files can have, their structure checks and JSON Schemas.
//!
//! Only these tables define a key, its form, default and meaning. The structure check, the hints about misplaced keys
//! and the JSON Schema read them. The keys of channels are derived from the channels' own tables, and the keys of
//! `tests` are in `campaign_tests`.
//!
//! For editors, a [`KeyPlace`] says what can be written at a path; it records neither the file nor the position in it.

mod advice;
#[cfg(test)]
mod agreement_tests;
mod list_checks;
mod schema;
mod structure;
mod tables;

pub(crate) use advice::find_meant_key;
pub(crate) use advice::{is_known_key, is_text_key};
pub(crate) use list_checks::{ChannelItem, guess_channel_item, has_bare_texts, parse_channel_item};
pub use schema::build_schema;
pub use schema::{campaign_schema, gateways_schema};
pub(crate) use structure::{PHONE_COLUMN, check_complete_map, check_root, unknown_country_finding};
use tables::TEXT_FILE;
pub(crate) use tables::{CAMPAIGN, CHANNELS, CONSENT, HOLDOUT, PROFILE, SUPPRESS_FILE, WINDOW};
pub(crate) use tables::{DATA_KEYS, VARIANT_KEYS};

/// The key of the price for all countries without a price of their own.
pub(crate) const OTHER_COUNTRIES: &str = "else";

/// A key of a map.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// The name in files, or a stand-in for list items and author-defined names.
    pub name: &'static str,
    /// The form of the value.
    pub(crate) shape: ValueShape,
    /// An example value.
    pub example: &'static str,
    /// The purpose of the key.
    pub doc: &'static str,
    /// The default, as it would be written; a list is in brackets with plain items.
    pub default: Option<&'static str>,
    /// Whether the key is required.
    pub(crate) presence: KeyPresence,
}

/// Whether a key is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPresence {
    /// The key can be omitted.
    Optional,
    /// The key is required.
    Required,
    /// Exactly one of the map's keys with this mark is required.
    Choice,
}

/// The form of a key's value.
#[derive(Clone, Copy, Debug)]
pub enum ValueShape {
    /// A text of one line that is used unchanged: a name, a path.
    Line,
    /// A text that can have several lines and placeholders.
    Template,
    /// A template, or the text file that holds it.
    Message,
    /// A whole number.
    Integer {
        /// The minimum value.
        least: u32,
        /// The maximum value.
        most: u32,
    },
    /// A positive whole number, or a list of positive whole numbers.
    Counts,
    /// `true` or `false`.
    Bool,
    /// A duration in seconds.
    Seconds {
        /// The minimum number of seconds.
        least: u32,
        /// The maximum number of seconds.
        most: u32,
    },
    /// A number of operations per unit of time.
    Rate,
    /// A number of messages per period, for one recipient.
    Cap,
    /// A percentage.
    Share,
    /// An amount of money, not negative.
    Amount,
    /// An amount of money, or a map from countries to amounts, with an amount for all other countries.
    Price,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A map with these keys.
    Map(&'static [KeySpec]),
    /// A map of author-defined names to constant texts.
    Texts,
    /// A map of author-defined names to headers; `phone` can have a list of headers.
    Columns,
    /// A map of author-defined names to constant texts, or to where secrets are stored.
    Headers,
    /// One of these words, or a list of them.
    Words(&'static [&'static str]),
    /// A map of author-defined names to values of this kind.
    Each(&'static KeySpec),
    /// A single value, or a map with these keys that defines more.
    Or {
        /// The single value.
        alone: &'static KeySpec,
        /// The keys of the map.
        keys: &'static [KeySpec],
    },
    /// A map of any content, sent unchanged.
    Properties,
    /// A list of items that have the same form.
    List {
        /// The kind of the items.
        item: &'static KeySpec,
        /// The minimum number of items.
        least: usize,
        /// The maximum number of items.
        most: usize,
    },
    /// The list of channels.
    Channels,
    /// The location of a secret, never the secret itself.
    Secret,
    /// The location of a secret, or a list of locations.
    Secrets,
}

impl KeySpec {
    /// An optional key.
    pub const fn new(name: &'static str, shape: ValueShape, example: &'static str) -> Self {
        Self { name, shape, example, doc: "", default: None, presence: KeyPresence::Optional }
    }

    /// Sets the documentation of the key.
    pub const fn with_doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// Sets the default of the key.
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// Marks the key as required in its map.
    pub const fn mark_required(mut self) -> Self {
        self.presence = KeyPresence::Required;
        self
    }

    pub(crate) const fn mark_choice(mut self) -> Self {
        self.presence = KeyPresence::Choice;
        self
    }

    /// The key with its example.
    pub(crate) fn format_example(&self) -> String {
        self.format_example_as(self.name)
    }

    /// The example of the key under the name that the author chose.
    pub(crate) fn format_example_as(&self, name: &str) -> String {
        format!("{name}: {}", self.example)
    }

    /// The location of the key's value.
    pub fn place(&'static self) -> KeyPlace {
        KeyPlace { key: Some(self), shape: self.shape }
    }

    /// Whether the map needs this key, or needs one key of the group that this key belongs to.
    pub fn is_required(&self) -> bool {
        matches!(self.presence, KeyPresence::Required | KeyPresence::Choice)
    }
}

pub(crate) fn key_names(keys: &'static [KeySpec]) -> impl Iterator<Item = &'static str> + Clone {
    keys.iter().map(|key| key.name)
}

/// The key with this name.
pub(crate) fn find_key(keys: &'static [KeySpec], name: &str) -> Option<&'static KeySpec> {
    keys.iter().find(|key| key.name == name)
}

/// One step on the way from the top of a file to a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The value of this key.
    Key(String),
    /// An item of a list, by its position from 0.
    Item(usize),
}

/// A location in a file, with the form of its value.
#[derive(Clone, Copy, Debug)]
pub struct KeyPlace {
    key: Option<&'static KeySpec>,
    shape: ValueShape,
}

static SECRET_KEYS: &[KeySpec] = &[
    KeySpec::new("env", ValueShape::Line, "CAMPAIGN_API_KEY")
        .with_doc("The environment variable that contains the secret.")
        .mark_choice(),
    KeySpec::new("file", ValueShape::Line, "secrets/api-key")
        .with_doc("The file that contains the secret. The path is relative to this file.")
        .mark_choice(),
];

/// One profile of gateways.yaml, under a name that its author chose.
static NAMED_PROFILE: KeySpec = KeySpec::new(
    "profile",
    ValueShape::Map(PROFILE),
    "{ base_url: https://gateway.example, api_key: { env: CAMPAIGN_API_KEY } }",
)
.with_doc("A gateway profile: an account, its limits and its rules.");

impl KeyPlace {
    /// The top of a file with these keys.
    pub fn top_of(keys: &'static [KeySpec]) -> Self {
        Self { key: None, shape: ValueShape::Map(keys) }
    }

    /// The top of a campaign file.
    pub fn top_of_campaign() -> Self {
        Self::top_of(CAMPAIGN)
    }

    /// The top of gateways.yaml, with profiles by their names.
    pub fn top_of_gateways() -> Self {
        Self { key: None, shape: ValueShape::Each(&NAMED_PROFILE) }
    }

    /// The location at the end of a path; `None` if the tables of keys do not contain the path.
    #[must_use]
    pub fn follow(self, path: &[PathStep]) -> Option<Self> {
        path.iter().try_fold(self, |place, step| place.enter(step))
    }

    /// The location one step below this one; `None` if the tables of keys do not contain the step.
    fn enter(self, step: &PathStep) -> Option<Self> {
        let keyed = |key: &'static KeySpec| Self { key: Some(key), shape: key.shape };
        let unnamed = |shape| Self { key: None, shape };
        match (self.shape, step) {
            (ValueShape::Each(each), PathStep::Key(_)) => Some(keyed(each)),
            (ValueShape::Texts | ValueShape::Headers, PathStep::Key(_)) => Some(unnamed(ValueShape::Template)),
            (ValueShape::Columns, PathStep::Key(_)) => Some(unnamed(ValueShape::Line)),
            (_, PathStep::Key(name)) => find_key(self.keys(), name).map(keyed),
            (ValueShape::List { item, .. }, PathStep::Item(_)) => Some(keyed(item)),
            (ValueShape::Channels, PathStep::Item(_)) => Some(unnamed(ValueShape::Map(CHANNELS))),
            // These values can also be lists, whose items have the form of a single value.
            (ValueShape::Words(_) | ValueShape::Counts | ValueShape::Secrets | ValueShape::Line, PathStep::Item(_)) => {
                Some(self)
            }
            _ => None,
        }
    }

    /// The key whose value is at this location. `None` at the top of a file, for an item of `channels`, and for a text
    /// under a name that the author chose.
    pub fn key(&self) -> Option<&'static KeySpec> {
        self.key
    }

    /// The keys that a map can have at this location; empty if the value here is not a map.
    pub fn keys(&self) -> &'static [KeySpec] {
        match self.shape {
            ValueShape::Map(keys) | ValueShape::Or { keys, .. } => keys,
            ValueShape::Message => TEXT_FILE,
            ValueShape::Secret | ValueShape::Secrets => SECRET_KEYS,
            _ => &[],
        }
    }

    /// The words that can be written here; empty if the value is free.
    pub fn words(&self) -> Vec<&'static str> {
        match self.shape {
            ValueShape::OneOf(words) | ValueShape::Words(words) => words.to_vec(),
            ValueShape::Bool => vec!["true", "false"],
            ValueShape::Channels => CHANNELS.iter().map(|channel| channel.name).collect(),
            ValueShape::Or { alone, .. } => Self { key: None, shape: alone.shape }.words(),
            _ => Vec::new(),
        }
    }

    /// Whether the value here is a map or the list of channels, which starts on the next line.
    pub fn is_nested(&self) -> bool {
        matches!(
            self.shape,
            ValueShape::Map(_)
                | ValueShape::Each(_)
                | ValueShape::Texts
                | ValueShape::Columns
                | ValueShape::Headers
                | ValueShape::Properties
                | ValueShape::Channels
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<PathStep> {
        let step = |step: &str| step.parse().map_or_else(|_| PathStep::Key(step.to_owned()), PathStep::Item);
        text.split('.').filter(|step| !step.is_empty()).map(step).collect()
    }

    fn names(text: &str) -> Vec<&'static str> {
        let place = KeyPlace::top_of_campaign().follow(&path(text)).unwrap_or_else(|| panic!("{text}"));
        place.keys().iter().map(|key| key.name).collect()
    }

    #[test]
    fn path_leads_to_the_keys_that_it_allows() {
        for (text, expected) in [
            ("", "recipients"),
            ("recipients", "region"),
            ("recipients.suppress.0", "phone"),
            ("channels.0", "sms"),
            ("channels.0.sms", "signature"),
            ("channels.1.sms.message", "file"),
            ("variants.a.channels.0.viber", "signature"),
            ("notify.url", "env"),
            ("delivery.window", "days"),
            ("tests.0.expect.sms", "parts"),
            ("data.stores", "key"),
        ] {
            assert!(names(text).contains(&expected), "{text}: {:?}", names(text));
        }
        for text in ["vars.shop", "recipients.file", "edition"] {
            assert!(names(text).is_empty(), "{text}");
        }
        for text in ["nothing", "recipients.file.x", "vars.shop.x", "channels.sms"] {
            assert!(KeyPlace::top_of_campaign().follow(&path(text)).is_none(), "{text}");
        }
        let profile = KeyPlace::top_of_gateways().follow(&path("main")).expect("a profile");
        assert!(profile.keys().iter().any(|key| key.name == "base_url" && key.is_required()));
    }

    #[test]
    fn words_of_a_key_are_its_allowed_values() {
        let words = |text| KeyPlace::top_of_campaign().follow(&path(text)).map(|place| place.words());
        assert_eq!(words("purpose"), Some(vec!["marketing", "service"]));
        assert_eq!(words("mandatory"), Some(vec!["true", "false"]));
        assert!(words("channels").is_some_and(|words| words.contains(&"sms")));
        assert!(words("recipients.state.0").is_some_and(|words| words.contains(&"failed")));
        assert_eq!(words("name"), Some(Vec::new()));
    }
}
