//! Services for a single number, which cannot be combined with other channels: lookups (HLR) and verification calls.

use serde::{Deserialize, Serialize};

use super::field::{FieldValueIter, present_values};
use super::{ChannelFacts, ChannelField, StageValues};
use crate::domain::ExtraProperties;

pub(super) const HLR_FACTS: ChannelFacts = ChannelFacts {
    title: "lookup",
    doc: "Looks up the number. Sends no message, and cannot be combined with other channels.",
    fields: &[ChannelField::extra()],
    single: true,
    price_example: "0.05",
    price_doc: "The price of a lookup.",
    ..ChannelFacts::PLAIN
};

pub(super) const CALL_OTP_FACTS: ChannelFacts = ChannelFacts {
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

/// A verification call.
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
