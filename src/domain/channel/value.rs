//! What stands behind the keys of a channel.

use super::{Card, Field};
use crate::domain::Extra;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<T> {
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
const MOST: usize = 9;

/// The values of a stage with their keys, in the order in which they are sent.
pub(super) type FieldValues<'s, T> =
    std::iter::Flatten<std::array::IntoIter<Option<(&'static Field, Value<&'s T>)>, MOST>>;

/// The keys that have a value.
pub(super) fn filled<'s, T, const N: usize>(values: [Option<(&'static Field, Value<&'s T>)>; N]) -> FieldValues<'s, T> {
    const { assert!(N <= MOST, "a channel with more keys needs more room") };
    let mut given = values.into_iter();
    std::array::from_fn(|_| given.next().flatten()).into_iter().flatten()
}

/// A text that is always there.
pub(super) fn text<'s, T>(field: &'static Field, text: &'s T) -> Option<(&'static Field, Value<&'s T>)> {
    Some((field, Value::Text(text)))
}

/// A text that may be missing.
pub(super) fn optional<'s, T>(field: &'static Field, text: &'s Option<T>) -> Option<(&'static Field, Value<&'s T>)> {
    text.as_ref().map(|text| (field, Value::Text(text)))
}

/// A number that may be missing.
pub(super) fn number<T>(field: &'static Field, number: Option<u32>) -> Option<(&'static Field, Value<T>)> {
    number.map(|number| (field, Value::Number(number)))
}

/// One of the words of a key, which may be missing.
pub(super) fn word<T>(field: &'static Field, word: Option<&'static str>) -> Option<(&'static Field, Value<T>)> {
    word.map(|word| (field, Value::Word(word)))
}

/// A flag that may be missing.
pub(super) fn flag<T>(field: &'static Field, flag: Option<bool>) -> Option<(&'static Field, Value<T>)> {
    flag.map(|flag| (field, Value::Flag(flag)))
}

/// Turns a text that may be missing into another form by `f`.
pub(super) fn map<'s, T, U, E>(text: &'s Option<T>, f: &mut impl FnMut(&'s T) -> Result<U, E>) -> Result<Option<U>, E> {
    text.as_ref().map(f).transpose()
}

/// The values that an author gave to the keys of a channel, from which its stage is made.
#[derive(Clone, Debug)]
pub struct Values<T> {
    values: Vec<(&'static str, Value<T>)>,
    /// Extra properties.
    pub(super) fields: Extra,
}

impl<T> Values<T> {
    /// No values but extra properties.
    #[must_use]
    pub fn new(fields: Extra) -> Self {
        Self { values: Vec::new(), fields }
    }

    /// Gives a key its value.
    pub fn set(&mut self, field: &'static Field, value: Value<T>) {
        self.values.push((field.key, value));
    }

    fn take(&mut self, field: &Field) -> Option<Value<T>> {
        let at = self.values.iter().position(|(key, _)| *key == field.key)?;
        Some(self.values.swap_remove(at).1)
    }

    pub(super) fn text(&mut self, field: &Field) -> Option<T> {
        match self.take(field)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn word(&mut self, field: &Field) -> Option<&'static str> {
        match self.take(field)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn number(&mut self, field: &Field) -> Option<u32> {
        match self.take(field)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn flag(&mut self, field: &Field) -> Option<bool> {
        match self.take(field)? {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    pub(super) fn cards(&mut self, field: &Field) -> Vec<Card<T>> {
        match self.take(field) {
            Some(Value::Cards(cards)) => cards,
            _ => Vec::new(),
        }
    }
}
