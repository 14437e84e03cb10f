//! Number lookups (HLR), which send no messages.

use serde::{Deserialize, Serialize};

use super::field::{FieldValueIter, present_values};
use super::{ChannelFacts, ChannelField, StageValues};
use crate::domain::ExtraProperties;

pub(super) const FACTS: ChannelFacts = ChannelFacts {
    title: "lookup",
    doc: "Looks up the number. Sends no message, and cannot be combined with other channels.",
    fields: &[ChannelField::extra()],
    single: true,
    price_example: "0.05",
    price_doc: "The price of a lookup.",
    ..ChannelFacts::PLAIN
};

/// A lookup of a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hlr {
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl Hlr {
    pub(super) fn of<T>(values: StageValues<T>) -> Option<Self> {
        Some(Self { fields: values.fields })
    }

    pub(super) fn values<T>(&self) -> FieldValueIter<'_, T> {
        present_values([])
    }

    pub(super) fn try_map<T, U, E>(&self, _: &mut impl FnMut(T) -> Result<U, E>) -> Result<Self, E> {
        Ok(self.clone())
    }
}
