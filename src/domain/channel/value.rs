//! What stands behind the keys of a channel.

use super::{Card, ChannelField};
use crate::domain::ExtraProperties;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue<T> {
    /// A text.
    Text(T),
    /// One of the words of the key itself.
    Word(&'static str),
    /// Seconds, or another number.
    Number(u32),
    /// Whether something is done.
    Flag(bool),
    /// Cards, each with its texts.
    Cards(Vec<Card<T>>),
}

/// The most keys with values that a channel has.
const MAX_VALUES: usize = 9;

/// The values of a stage with their keys, in the order in which they are sent.
pub(super) type FieldValueIter<'s, T> =
    std::iter::Flatten<std::array::IntoIter<Option<(&'static ChannelField, FieldValue<&'s T>)>, MAX_VALUES>>;

/// The keys that have a value.
pub(super) fn present_values<'s, T, const N: usize>(
    values: [Option<(&'static ChannelField, FieldValue<&'s T>)>; N],
) -> FieldValueIter<'s, T> {
    const { assert!(N <= MAX_VALUES, "a channel with more keys needs more room") };
    let mut given = values.into_iter();
    std::array::from_fn(|_| given.next().flatten()).into_iter().flatten()
}

/// A text that is always there.
pub(super) fn text_value<'s, T>(
    field: &'static ChannelField,
    text: &'s T,
) -> Option<(&'static ChannelField, FieldValue<&'s T>)> {
    Some((field, FieldValue::Text(text)))
}

/// A text that may be missing.
pub(super) fn optional_text_value<'s, T>(
    field: &'static ChannelField,
    text: &'s Option<T>,
) -> Option<(&'static ChannelField, FieldValue<&'s T>)> {
    text.as_ref().map(|text| (field, FieldValue::Text(text)))
}

/// A number that may be missing.
pub(super) fn number_value<T>(
    field: &'static ChannelField,
    number: Option<u32>,
) -> Option<(&'static ChannelField, FieldValue<T>)> {
    number.map(|number| (field, FieldValue::Number(number)))
}

/// One of the words of a key, which may be missing.
pub(super) fn word_value<T>(
    field: &'static ChannelField,
    word: Option<&'static str>,
) -> Option<(&'static ChannelField, FieldValue<T>)> {
    word.map(|word| (field, FieldValue::Word(word)))
}

/// A flag that may be missing.
pub(super) fn flag_value<T>(
    field: &'static ChannelField,
    flag: Option<bool>,
) -> Option<(&'static ChannelField, FieldValue<T>)> {
    flag.map(|flag| (field, FieldValue::Flag(flag)))
}

/// Turns a text that may be missing into another form by `f`.
pub(super) fn try_map_optional<'s, T, U, E>(
    text: &'s Option<T>,
    f: &mut impl FnMut(&'s T) -> Result<U, E>,
) -> Result<Option<U>, E> {
    text.as_ref().map(f).transpose()
}

/// The values that an author gave to the keys of a channel, from which its stage is made.
#[derive(Clone, Debug)]
pub struct StageValues<T> {
    values: Vec<(&'static str, FieldValue<T>)>,
    /// Extra properties.
    pub(super) fields: ExtraProperties,
}

impl<T> StageValues<T> {
    /// No values but extra properties.
    #[must_use]
    pub fn new(fields: ExtraProperties) -> Self {
        Self { values: Vec::new(), fields }
    }

    /// Gives a key its value.
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
