//! Lookups of numbers (HLR): they send nothing to anybody.

use serde::{Deserialize, Serialize};

use super::value::{FieldValues, filled};
use super::{Facts, Field, Values};
use crate::domain::Extra;

pub(super) const FACTS: Facts = Facts {
    title: "lookup",
    doc: "Looks up the number. Sends no message, and cannot be combined with other channels.",
    fields: &[Field::extra()],
    single: true,
    price_example: "0.05",
    price_doc: "The price of a lookup.",
    ..Facts::PLAIN
};

/// A lookup of the number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hlr {
    /// Extra properties.
    pub fields: Extra,
}

impl Hlr {
    pub(super) fn of<T>(values: Values<T>) -> Option<Self> {
        Some(Self { fields: values.fields })
    }

    pub(super) fn values<T>(&self) -> FieldValues<'_, T> {
        filled([])
    }

    pub(super) fn try_map<T, U, E>(&self, _: &mut impl FnMut(T) -> Result<U, E>) -> Result<Self, E> {
        Ok(self.clone())
    }
}
