//! The keys that a file may have.
//!
//! The tables are the only place that names a key, its form, its default and its meaning; those of the channels are made
//! from the channels' own. The check of a file's structure, the hints about misplaced keys and the JSON Schema read them.

#[cfg(test)]
mod agreement;
mod campaign;
mod channel_form;
mod channels;
mod gateway;
mod hint;
mod item;
mod list_columns;
mod listed_names;
mod protective;
mod schema;
mod structure;
mod texts_by;

pub(crate) use campaign::{CAMPAIGN, DATA_KEYS, HOLDOUT, SUPPRESS_FILE, VARIANT_KEYS, WINDOW};
pub(crate) use channels::CHANNELS;
use channels::PRICES;
pub(crate) use gateway::PROFILE;
pub(crate) use hint::{find_meant_key, is_known};
pub(crate) use item::{ChannelItem, find_meant_item, parse_channel_item};
pub(crate) use list_columns::PHONE_COLUMN;
pub(crate) use schema::build_schema;
pub use schema::{campaign_schema, gateways_schema};
pub(crate) use structure::{check_complete_map, check_root};
pub(crate) use texts_by::has_bare_texts;

/// One key of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySpec {
    /// Its name.
    pub(crate) name: &'static str,
    /// What may stand behind it.
    pub(crate) shape: ValueShape,
    /// A value as somebody would write it.
    pub(crate) example: &'static str,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// What holds without it, as it would be written; a list between brackets, its items plain.
    pub(crate) default: Option<&'static str>,
    /// Whether it may be left out, or may not be written yet.
    pub(crate) presence: KeyPresence,
}

/// Whether a key may be left out, or may not be written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPresence {
    /// May be left out.
    Optional,
    /// Must be there.
    Required,
    /// Of those of its map that are marked so, one must be there, and no other.
    Choice,
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueShape {
    /// A text of one line that is used as it is: a name, a path.
    Line,
    /// A text that is a template.
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
    /// A number of messages in a time, for one person.
    Cap,
    /// A percentage.
    Share,
    /// An amount of money, not below nothing.
    Amount,
    /// One of some words.
    OneOf(&'static [&'static str]),
    /// A map with these keys.
    Map(&'static [KeySpec]),
    /// A map of the author's own names to constant texts.
    Texts,
    /// A map of the author's own names to headers; `phone` may have a list of them.
    Columns,
    /// A map of the author's own names to constant texts, or to where secrets are kept.
    Headers,
    /// One of some words, or a list of them.
    Words(&'static [&'static str]),
    /// A map of the author's own names to values of this kind.
    Each(&'static KeySpec),
    /// A value by itself, or a map with these keys that says more.
    Or {
        /// The value by itself.
        alone: &'static KeySpec,
        /// The keys of the map.
        keys: &'static [KeySpec],
    },
    /// A map of anything, sent as it is.
    Properties,
    /// A list.
    List {
        /// What its items are.
        of: &'static KeySpec,
        /// The fewest items.
        least: usize,
        /// The most items.
        most: usize,
    },
    /// The list of channels.
    Channels,
    /// Where a secret is kept, never the secret itself.
    Secret,
    /// Where one secret is kept, or each of a list.
    Secrets,
}

impl KeySpec {
    pub(crate) const fn new(name: &'static str, shape: ValueShape, example: &'static str) -> Self {
        Self { name, shape, example, doc: "", default: None, presence: KeyPresence::Optional }
    }

    pub(crate) const fn with_doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    pub(crate) const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    pub(crate) const fn mark_required(mut self) -> Self {
        self.presence = KeyPresence::Required;
        self
    }

    const fn mark_choice(mut self) -> Self {
        self.presence = KeyPresence::Choice;
        self
    }

    /// The key with its example, as somebody would write it.
    pub(crate) fn format_example(&self) -> String {
        self.format_example_as(self.name)
    }

    /// An example of the key under the name that the author gave it.
    pub(crate) fn format_example_as(&self, name: &str) -> String {
        format!("{name}: {}", self.example)
    }
}

/// Keys, by name.
pub(crate) fn key_names(keys: &'static [KeySpec]) -> impl Iterator<Item = &'static str> + Clone {
    keys.iter().map(|key| key.name)
}

/// The key of that name.
pub(crate) fn find_key(keys: &'static [KeySpec], name: &str) -> Option<&'static KeySpec> {
    keys.iter().find(|key| key.name == name)
}
