//! Tables of the keys that files can have, their structure checks and JSON Schemas.
//!
//! Only these tables define a key, its form, default and meaning; the keys of channels are derived from the channels'
//! own tables. The structure check, the hints about misplaced keys and the JSON Schema read them.

mod advice;
#[cfg(test)]
mod agreement_tests;
mod list_checks;
mod places;
mod schema;
mod structure;
mod tables;
mod test_tables;

pub(crate) use advice::find_meant_key;
pub(crate) use advice::{is_known, is_text_key};
pub(crate) use list_checks::{ChannelItem, find_meant_item, has_bare_texts, parse_channel_item};
pub use places::{KeyPlace, PathStep};
pub use schema::build_schema;
pub use schema::{campaign_schema, gateways_schema};
pub(crate) use structure::{PHONE_COLUMN, check_complete_map, check_root, unknown_country_finding};
pub(crate) use tables::{CAMPAIGN, CHANNELS, CONSENT, HOLDOUT, PROFILE, SUPPRESS_FILE, WINDOW};
pub(crate) use tables::{DATA_KEYS, VARIANT_KEYS};
pub(crate) use test_tables::{SMS_TEXT, TEST_KEYS, TESTABLE_REASONS};

/// The key of a price for all countries without their own.
pub(crate) const OTHER_COUNTRIES: &str = "else";

/// A key of a map.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// The name.
    pub name: &'static str,
    /// The form of its value.
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
    /// Exactly one of the keys of its map with this mark is required.
    Choice,
}

/// The form of a key's value.
#[derive(Clone, Copy, Debug)]
pub enum ValueShape {
    /// A text of one line that is used unchanged: a name, a path.
    Line,
    /// A template.
    Template,
    /// A template, or the text file that holds it.
    Message,
    /// A whole number.
    Integer {
        /// The smallest that is allowed.
        least: u32,
        /// The largest that is allowed.
        most: u32,
    },
    /// A whole number from 1, or a list of them.
    Counts,
    /// `true` or `false`.
    Bool,
    /// A duration in seconds.
    Seconds {
        /// The shortest that is allowed.
        least: u32,
        /// The longest that is allowed.
        most: u32,
    },
    /// A number of operations per time.
    Rate,
    /// A number of messages per period, for one recipient.
    Cap,
    /// A percentage.
    Share,
    /// An amount of money, not negative.
    Amount,
    /// An amount of money, or a map of countries to amounts with one for all others.
    Price,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A map with these keys.
    Map(&'static [KeySpec]),
    /// A map of author-defined names to constant texts.
    Texts,
    /// A map of author-defined names to headers; `phone` can have a list of them.
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
    /// A list.
    List {
        /// The kind of its items.
        of: &'static KeySpec,
        /// The minimum number of items.
        least: usize,
        /// The maximum number of items.
        most: usize,
    },
    /// The list of channels.
    Channels,
    /// Where a secret is stored, never the secret itself.
    Secret,
    /// Where a secret is stored, or each of a list.
    Secrets,
}

impl KeySpec {
    /// An optional key.
    pub const fn new(name: &'static str, shape: ValueShape, example: &'static str) -> Self {
        Self { name, shape, example, doc: "", default: None, presence: KeyPresence::Optional }
    }

    /// The key with its purpose.
    pub const fn with_doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// The key with its default.
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// The key, marked as required in its map.
    pub const fn mark_required(mut self) -> Self {
        self.presence = KeyPresence::Required;
        self
    }

    const fn mark_choice(mut self) -> Self {
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
}

/// The names of the keys.
pub(crate) fn key_names(keys: &'static [KeySpec]) -> impl Iterator<Item = &'static str> + Clone {
    keys.iter().map(|key| key.name)
}

/// The key with this name.
pub(crate) fn find_key(keys: &'static [KeySpec], name: &str) -> Option<&'static KeySpec> {
    keys.iter().find(|key| key.name == name)
}
