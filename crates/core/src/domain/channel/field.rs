//! Keys of a channel: allowed values, limits, and where operations carry them.
//!
//! These tables are shared by the structure check, the check for keys that an operation cannot carry, the text rules
//! and the encoder. A key is therefore known to all of them or to none.

use super::{Card, TextLimit};
use crate::domain::{ExtraProperties, OperationKind};

/// The reason why a pipeline stage cannot have a lifetime or short links.
const NO_SUCH_FIELD: &str = "its stages have no field for this key";
/// The reason why a pipeline stage cannot have an image or a button.
pub(super) const TEXT_ONLY: &str = "its stages contain only a signature and a message";

/// A key of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelField {
    /// The name in campaign files.
    pub key: &'static str,
    /// The kind of value.
    pub kind: FieldKind,
    /// An example value.
    pub example: &'static str,
    /// The purpose of the key.
    pub doc: &'static str,
    /// The default, as written in a campaign file.
    pub default: Option<&'static str>,
    /// The operations in which the key is required.
    pub need: FieldRequirement,
    /// The limit of the text.
    pub limit: TextLimit,
    /// The number of characters that every account allows, if some allow fewer than the limit.
    pub safe_length: Option<usize>,
    /// The noun for the text: `button`, `card's caption`.
    pub noun: &'static str,
    flat: WirePlace,
    stage: WirePlace,
    unsupported_kinds: &'static [(OperationKind, &'static str)],
}

/// The kind of value of a channel key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A template for a text, which must respect the limit of the key.
    Template,
    /// A template, or the text file that contains it.
    Message,
    /// A template that must result in one of these words.
    Choice(&'static [&'static str]),
    /// The form of the message, by name.
    Form(&'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A duration in whole seconds, written in a campaign file as `2h`, for example.
    Seconds {
        /// The minimum.
        least: u32,
        /// The maximum.
        most: u32,
    },
    /// A whole number.
    Number {
        /// The minimum.
        least: u32,
        /// The maximum.
        most: u32,
    },
    /// `true` or `false`.
    Flag,
    /// The cards of a carousel, each with its own texts.
    Cards {
        /// The minimum.
        least: usize,
        /// The maximum.
        most: usize,
    },
    /// Extra properties, sent unchanged.
    Extra,
}

/// The operations in which a key is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRequirement {
    /// Required in no operation.
    Never,
    /// Required in all operations.
    Always,
    /// Required in all operations except pipelines, for this reason.
    OutsidePipeline(&'static str),
    /// Required in pipelines, for this reason.
    InPipeline(&'static str),
}

/// The location of a key in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WirePlace {
    /// Under this name, in the operation or in the channel's stage of a pipeline.
    Under(&'static str),
    /// In the object of the first name, under the second.
    Within(&'static str, &'static str),
    /// Under this name, once for all channels of the operation.
    Shared(&'static str),
    /// Not sent: only `campaign` uses it.
    LocalOnly,
    /// Not possible, for this reason; the key is rejected.
    Nowhere(&'static str),
}

impl WirePlace {
    /// The property of the operation or stage that contains the value of the key.
    pub fn property(self) -> Option<&'static str> {
        match self {
            WirePlace::Under(name) | WirePlace::Within(name, _) | WirePlace::Shared(name) => Some(name),
            WirePlace::LocalOnly | WirePlace::Nowhere(_) => None,
        }
    }
}

impl ChannelField {
    /// A key whose value is not sent.
    pub(super) const fn new(key: &'static str, kind: FieldKind) -> Self {
        Self {
            key,
            kind,
            example: "",
            doc: "",
            default: None,
            need: FieldRequirement::Never,
            limit: TextLimit::NotEmpty,
            safe_length: None,
            noun: key,
            flat: WirePlace::LocalOnly,
            stage: WirePlace::LocalOnly,
            unsupported_kinds: &[],
        }
    }

    /// The key for the sender name, which is sent as `flat` outside a pipeline.
    pub(super) const fn signature(flat: &'static str) -> Self {
        let field = Self::new("signature", FieldKind::Template).with_docs("OlenaCo", "The sender name.").required();
        field.with_flat_place(WirePlace::Under(flat)).with_stage_place(WirePlace::Under("signature"))
    }

    /// The key for the text, which is sent as `flat` outside a pipeline.
    pub(super) const fn message(flat: &'static str) -> Self {
        Self::new("message", FieldKind::Message)
            .with_docs(
                "\"Hello, {{ first_name }}\"",
                "The message text, or `{ file: NAME }` for a text file in this file's folder or in templates/.",
            )
            .with_noun("text")
            .with_flat_place(WirePlace::Under(flat))
            .with_stage_place(WirePlace::Under("message"))
    }

    /// The key for the address of the image, which is sent at the location `flat` outside a pipeline.
    pub(super) const fn image(flat: WirePlace) -> Self {
        let doc = "The URL of the image.";
        Self::new("image", FieldKind::Template).with_docs("https://cdn.example/autumn.png", doc).with_flat_place(flat)
    }

    /// The key for the address that the button opens, which is sent as `flat` outside a pipeline.
    pub(super) const fn link(flat: &'static str) -> Self {
        Self::new("link", FieldKind::Template)
            .with_docs("https://shop.example", "The URL that the button opens.")
            .with_limit(TextLimit::WebAddress)
            .with_flat_place(WirePlace::Under(flat))
    }

    /// The key for the caption of the button, which has at most `max_length` characters. It is sent at the location
    /// `flat` outside a pipeline.
    pub(super) const fn button(flat: WirePlace, max_length: usize) -> Self {
        let doc = "The caption of the button.";
        Self::new("button", FieldKind::Template)
            .with_docs("Shop now", doc)
            .with_limit(TextLimit::AtMost(max_length))
            .with_flat_place(flat)
    }

    /// The key for the time in seconds during which delivery is attempted, sent as `flat`; not available in a pipeline.
    pub(super) const fn lifetime(flat: &'static str, least: u32, most: u32) -> Self {
        Self::new("lifetime", FieldKind::Seconds { least, most })
            .with_docs("1h", "How long to keep trying to deliver the message on this channel.")
            .with_flat_place(WirePlace::Under(flat))
            .with_stage_place(WirePlace::Nowhere(NO_SUCH_FIELD))
    }

    /// The key that says whether links are shortened; not available in a pipeline.
    pub(super) const fn short_link() -> Self {
        Self::new("short_link", FieldKind::Flag)
            .with_docs("true", "Shortens and tracks links, if your pricing plan includes this.")
            .with_flat_place(WirePlace::Shared("short_link"))
            .with_stage_place(WirePlace::Nowhere(NO_SUCH_FIELD))
    }

    /// The key for extra properties.
    pub(super) const fn extra() -> Self {
        let doc = "Additional properties of the operation, sent unchanged.";
        Self::new("fields", FieldKind::Extra).with_docs("{ tag: autumn }", doc)
    }

    pub(super) const fn with_docs(mut self, example: &'static str, doc: &'static str) -> Self {
        self.example = example;
        self.doc = doc;
        self
    }

    pub(super) const fn with_default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    pub(super) const fn required(self) -> Self {
        self.with_requirement(FieldRequirement::Always)
    }

    pub(super) const fn with_requirement(mut self, need: FieldRequirement) -> Self {
        self.need = need;
        self
    }

    pub(super) const fn with_limit(mut self, limit: TextLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the length, in characters, that every account allows.
    pub(super) const fn with_safe_length(mut self, characters: usize) -> Self {
        self.safe_length = Some(characters);
        self
    }

    pub(super) const fn with_noun(mut self, noun: &'static str) -> Self {
        self.noun = noun;
        self
    }

    /// Sets the location of the value outside a pipeline.
    pub(super) const fn with_flat_place(mut self, place: WirePlace) -> Self {
        self.flat = place;
        self
    }

    /// Sets the location of the value in a pipeline stage.
    pub(super) const fn with_stage_place(mut self, place: WirePlace) -> Self {
        self.stage = place;
        self
    }

    /// Sets the operations outside a pipeline that cannot carry the key, each with the reason.
    pub(super) const fn with_unsupported_kinds(mut self, kinds: &'static [(OperationKind, &'static str)]) -> Self {
        self.unsupported_kinds = kinds;
        self
    }

    /// The location of the key in an operation of `kind`.
    pub fn place_in(&self, kind: OperationKind) -> WirePlace {
        if kind == OperationKind::Pipeline {
            return self.stage;
        }
        let unsupported = self.unsupported_kinds.iter().find(|(unsupported, _)| *unsupported == kind);
        unsupported.map_or(self.flat, |(_, reason)| WirePlace::Nowhere(reason))
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue<T> {
    /// A template, or the text that results from it.
    Text(T),
    /// One of the words that the key allows.
    Word(&'static str),
    /// Seconds, or another number.
    Number(u32),
    /// `true` or `false`.
    Flag(bool),
    /// Cards, each with its texts.
    Cards(Vec<Card<T>>),
}

/// The maximum number of keys with values in a channel.
const MAX_VALUES: usize = 9;

/// The values of a stage with their keys, in the order in which they are sent.
pub(super) type FieldValueIter<'s, T> =
    std::iter::Flatten<std::array::IntoIter<Option<(&'static ChannelField, FieldValue<&'s T>)>, MAX_VALUES>>;

/// The keys that have a value, each with that value.
pub(super) fn present_values<'s, T, const N: usize>(
    values: [Option<(&'static ChannelField, FieldValue<&'s T>)>; N],
) -> FieldValueIter<'s, T> {
    const { assert!(N <= MAX_VALUES, "a channel with more keys needs more room") };
    let mut values = values.into_iter();
    std::array::from_fn(|_| values.next().flatten()).into_iter().flatten()
}

/// Pairs a key with a required text.
pub(super) fn text_value<'s, T>(
    field: &'static ChannelField,
    text: &'s T,
) -> Option<(&'static ChannelField, FieldValue<&'s T>)> {
    Some((field, FieldValue::Text(text)))
}

/// Pairs a key with an optional text. `None` if there is no text.
pub(super) fn optional_text_value<'s, T>(
    field: &'static ChannelField,
    text: &'s Option<T>,
) -> Option<(&'static ChannelField, FieldValue<&'s T>)> {
    text.as_ref().map(|text| (field, FieldValue::Text(text)))
}

/// Pairs a key with an optional number. `None` if there is no number.
pub(super) fn number_value<T>(
    field: &'static ChannelField,
    number: Option<u32>,
) -> Option<(&'static ChannelField, FieldValue<T>)> {
    number.map(|number| (field, FieldValue::Number(number)))
}

/// Pairs a key with one of its words. `None` if there is no word.
pub(super) fn word_value<T>(
    field: &'static ChannelField,
    word: Option<&'static str>,
) -> Option<(&'static ChannelField, FieldValue<T>)> {
    word.map(|word| (field, FieldValue::Word(word)))
}

/// Pairs a key with an optional flag. `None` if there is no flag.
pub(super) fn flag_value<T>(
    field: &'static ChannelField,
    flag: Option<bool>,
) -> Option<(&'static ChannelField, FieldValue<T>)> {
    flag.map(|flag| (field, FieldValue::Flag(flag)))
}

/// Converts an optional text with `f`.
pub(super) fn try_map_optional<'s, T, U, E>(
    text: &'s Option<T>,
    f: &mut impl FnMut(&'s T) -> Result<U, E>,
) -> Result<Option<U>, E> {
    text.as_ref().map(f).transpose()
}

/// The values of a channel's keys, from which its stage is built.
#[derive(Clone, Debug)]
pub struct StageValues<T> {
    values: Vec<(&'static str, FieldValue<T>)>,
    /// Extra properties.
    pub(super) fields: ExtraProperties,
}

impl<T> StageValues<T> {
    /// Creates values that consist only of extra properties.
    pub fn new(fields: ExtraProperties) -> Self {
        Self { values: Vec::new(), fields }
    }

    /// Sets the value of a key.
    pub fn set_value(&mut self, field: &'static ChannelField, value: FieldValue<T>) {
        self.values.push((field.key, value));
    }

    fn take_value(&mut self, field: &ChannelField) -> Option<FieldValue<T>> {
        let at = self.values.iter().position(|(key, _)| *key == field.key)?;
        Some(self.values.swap_remove(at).1)
    }

    pub(super) fn take_text(&mut self, field: &ChannelField) -> Option<T> {
        match self.take_value(field)? {
            FieldValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn take_word(&mut self, field: &ChannelField) -> Option<&'static str> {
        match self.take_value(field)? {
            FieldValue::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn take_number(&mut self, field: &ChannelField) -> Option<u32> {
        match self.take_value(field)? {
            FieldValue::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn take_flag(&mut self, field: &ChannelField) -> Option<bool> {
        match self.take_value(field)? {
            FieldValue::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    pub(super) fn take_cards(&mut self, field: &ChannelField) -> Vec<Card<T>> {
        match self.take_value(field) {
            Some(FieldValue::Cards(cards)) => cards,
            _ => Vec::new(),
        }
    }
}
