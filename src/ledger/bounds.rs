//! What a campaign has to keep within while it is sent.

use std::time::Duration;

use jiff::Zoned;

use super::{LedgerFuture, NumberSet};
use crate::calendar::DailyLimits;
use crate::domain::{Amount, Budget, FrequencyCap, Phone};

/// Why a row is skipped whose number got as many messages as it may.
pub const CAPPED: &str = "cap";

/// The bounds that each intent of a start has to keep within.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The most that all runs of its edition may use together.
    pub budget: Budget,
    /// How often any number may be written to.
    pub caps: Vec<FrequencyCap>,
    /// How many messages of its edition leave on a day.
    pub per_day: Option<DailyLimits>,
}

/// A bound that holds back the next message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// As many messages went out as may.
    Recipients {
        /// How many may.
        limit: u64,
    },
    /// The next message would cost more than is left.
    Cost {
        /// How much all may cost.
        limit: Amount,
        /// How much of it is used.
        used: Amount,
    },
    /// As many messages left today as may.
    Day {
        /// How many may.
        limit: u64,
        /// When the next day begins.
        until: Zoned,
        /// How long that is from now.
        wait: Duration,
    },
}

/// When numbers got messages of campaigns, as a part of the ledger.
pub trait ContactHistory: Send + Sync {
    /// The numbers that caps hold back now from what goes through gateways on loopback, or through others.
    fn load_capped_numbers<'a>(&'a self, caps: &'a [FrequencyCap], loopback: bool) -> LedgerFuture<'a, NumberSet>;

    /// Whether caps hold this number back now.
    fn is_number_capped<'a>(
        &'a self,
        phone: Phone,
        caps: &'a [FrequencyCap],
        loopback: bool,
    ) -> LedgerFuture<'a, bool> {
        Box::pin(async move { Ok(!caps.is_empty() && self.load_capped_numbers(caps, loopback).await?.contains(phone)) })
    }
}
