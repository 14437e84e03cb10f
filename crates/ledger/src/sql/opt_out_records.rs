//! The records of the suppression list: their columns, their checksums, and the latest repetition of each opt-out.

use std::sync::Arc;

use serde_json::json;
use sqlx::Row as _;

use super::StatementError;
use super::dialect::Record;
use super::runs::{timestamp_from_micros, to_signed, to_unsigned};
use crate::encoding::Checksum;
use crate::{LedgerError, OptOut, OptOutEnd, OptOutReach, OptOutScope};
use campaign_core::domain::Addressee;

/// The scope of all messages in the column `campaign`. No campaign has this name.
const ALL_MESSAGES: &str = "*";

/// The value of the column `campaign` for a scope: empty for all marketing, as in earlier versions.
fn stored_scope(scope: &OptOutScope) -> &str {
    match scope {
        OptOutScope::Marketing => "",
        OptOutScope::All => ALL_MESSAGES,
        OptOutScope::Campaign(name) => name,
    }
}

/// Parses a scope from the value of the column `campaign`.
fn parse_stored_scope(campaign: &str) -> OptOutScope {
    match campaign {
        "" => OptOutScope::Marketing,
        ALL_MESSAGES => OptOutScope::All,
        name => OptOutScope::Campaign(name.into()),
    }
}

/// The columns that describe the opt-out of an entry. They change only if the number is forgotten.
pub(super) struct OptOutColumns<'a> {
    pub(super) phone: i64,
    campaign: &'a str,
    loopback: i64,
    pub(super) reason: &'a str,
    pub(super) source: &'a str,
    at: i64,
}

impl<'a> OptOutColumns<'a> {
    pub(super) fn from_row(row: &'a Record) -> Result<Self, StatementError> {
        Ok(Self {
            phone: row.try_get("phone")?,
            campaign: row.try_get("campaign")?,
            loopback: row.try_get("loopback")?,
            reason: row.try_get("reason")?,
            source: row.try_get("source")?,
            at: row.try_get("at")?,
        })
    }

    pub(super) fn from_opt_out(opt_out: &'a OptOut) -> Self {
        let OptOut { who, scope, reach, reason, source, at } = opt_out;
        Self {
            phone: to_signed(who.to_u64()),
            campaign: stored_scope(scope),
            loopback: i64::from(*reach == OptOutReach::LoopbackGateways),
            reason,
            source,
            at: at.as_microsecond(),
        }
    }

    pub(super) fn to_opt_out(&self) -> Result<OptOut, StatementError> {
        let Self { phone, campaign, loopback, reason, source, at } = *self;
        Ok(OptOut {
            who: Addressee::try_from(to_unsigned(phone)).map_err(|_| damaged_entry())?,
            scope: parse_stored_scope(campaign),
            reach: if loopback == 0 { OptOutReach::AllGateways } else { OptOutReach::LoopbackGateways },
            reason: Arc::from(reason),
            source: Arc::from(source),
            at: timestamp_from_micros(at)?,
        })
    }

    pub(super) fn checksum(&self) -> Checksum {
        let Self { phone, campaign, loopback, reason, source, at } = *self;
        let sum = Checksum::for_table("opt_outs")
            .with_number(phone)
            .with_text(campaign)
            .with_number(loopback)
            .with_text(reason)
            .with_text(source)
            .with_number(at);
        // A running process of an earlier version would mistake an opt-out from all messages for an opt-out from one
        // campaign. The different checksum makes it stop instead.
        if campaign == ALL_MESSAGES { sum.with_text("all messages") } else { sum }
    }

    /// The checksum of an entry that was removed.
    pub(super) fn checksum_with_end(&self, at: i64, by: &str, reason: &str) -> Checksum {
        self.checksum().with_number(at).with_text(by).with_text(reason)
    }
}

/// The time, author and reason of an entry's removal. `None` for an active entry.
pub(super) fn end_from_row(row: &Record) -> Result<Option<OptOutEnd>, StatementError> {
    let Some(at) = row.try_get::<Option<i64>, _>("removed_at")? else { return Ok(None) };
    Ok(Some(OptOutEnd {
        at: timestamp_from_micros(at)?,
        by: row.try_get("removed_by")?,
        why: row.try_get("removed_why")?,
    }))
}

fn damaged_entry() -> LedgerError {
    LedgerError::Damaged { what: "an entry in the suppression list".to_owned() }
}

/// Converts a record to an opt-out, after verifying the checksum.
pub(super) fn opt_out_from_row(row: &Record) -> Result<OptOut, StatementError> {
    let columns = OptOutColumns::from_row(row)?;
    let sum = match row.try_get::<Option<i64>, _>("removed_at")? {
        None => columns.checksum(),
        Some(at) => columns.checksum_with_end(at, row.try_get("removed_by")?, row.try_get("removed_why")?),
    };
    if !sum.matches(Some(row.try_get("sum")?)) {
        return Err(damaged_entry().into());
    }
    columns.to_opt_out()
}

/// A list entry as a JSON parameter.
pub(super) fn opt_out_to_json(opt_out: &OptOut) -> serde_json::Value {
    let columns = OptOutColumns::from_opt_out(opt_out);
    let sum = columns.checksum().finish();
    let OptOutColumns { phone, campaign, loopback, reason, source, at } = columns;
    json!([phone, campaign, loopback, reason, source, at, sum])
}

/// The latest repetition of an active entry.
///
/// Until the entry ends, the column `removed_why` holds the repetition as JSON. The repetition is not part of the
/// entry's checksum, so that processes of earlier versions can still read the entry.
pub(super) fn repetition_from_row(row: &Record) -> Result<Option<OptOut>, StatementError> {
    if row.try_get::<Option<i64>, _>("removed_at")?.is_some() {
        return Ok(None);
    }
    let Some(text) = row.try_get::<Option<String>, _>("removed_why")? else { return Ok(None) };
    let (phone, campaign, loopback, reason, source, at, sum): (i64, String, i64, String, String, i64, i64) =
        serde_json::from_str(&text).map_err(|_| damaged_entry())?;
    let columns = OptOutColumns { phone, campaign: &campaign, loopback, reason: &reason, source: &source, at };
    if !columns.checksum().matches(Some(sum)) {
        return Err(damaged_entry().into());
    }
    columns.to_opt_out().map(Some)
}
