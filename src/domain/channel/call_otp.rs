//! Code calls: the last four digits of the calling number are a one-time code.

use serde::{Deserialize, Serialize};

use super::value::{FieldValues, filled};
use super::{Facts, Field, Values};
use crate::domain::Extra;

pub(super) const FACTS: Facts = Facts {
    title: "verification call",
    doc: "A verification call: the last four digits of the caller's number are a one-time code. Cannot be combined \
        with other channels.",
    fields: &[Field::extra()],
    single: true,
    personal: true,
    price_example: "0.60",
    price_doc: "The price of a verification call.",
    ..Facts::PLAIN
};

/// A code call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallOtp {
    /// Extra properties.
    pub fields: Extra,
}

impl CallOtp {
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
