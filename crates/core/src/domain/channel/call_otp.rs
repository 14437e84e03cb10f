//! Verification calls: the last four digits of the caller's number are a one-time code.

use serde::{Deserialize, Serialize};

use super::field::{FieldValueIter, present_values};
use super::{ChannelFacts, ChannelField, StageValues};
use crate::domain::ExtraProperties;

pub(super) const FACTS: ChannelFacts = ChannelFacts {
    title: "verification call",
    doc: "A verification call: the last four digits of the caller's number are a one-time code. Cannot be combined \
        with other channels.",
    fields: &[ChannelField::extra()],
    single: true,
    personal: true,
    price_example: "0.60",
    price_doc: "The price of a verification call.",
    ..ChannelFacts::PLAIN
};

/// A code call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallOtp {
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl CallOtp {
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
