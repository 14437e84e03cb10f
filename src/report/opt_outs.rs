//! Who is on the suppression list, as CSV that can be imported, and for programs.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::cell::escape_formula;
use crate::domain::FORGOTTEN;
use crate::ledger::{Ledger, LedgerError, OptOut};

/// The columns of an export; an import knows them again.
pub const OPT_OUT_COLUMNS: [&str; 6] = ["phone", "scope", "reason", "source", "at", "gateways"];

/// How many are read at once.
const PAGE_SIZE: u32 = 10_000;

/// Why a list is not written.
#[derive(Debug, thiserror::Error)]
pub enum OptOutExportError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What is written to takes no more.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Hands out who is on the list, in the order in which they came: all, or those who opted out of this campaign alone.
///
/// # Errors
/// When the ledger cannot be read, or the first error of `each`.
pub async fn for_each_opt_out(
    ledger: &dyn Ledger,
    campaign: Option<&str>,
    mut each: impl FnMut(&OptOut) -> io::Result<()>,
) -> Result<u64, OptOutExportError> {
    let (mut behind, mut told) = (None, 0);
    loop {
        let part = ledger.list_opt_outs(behind, PAGE_SIZE).await?;
        let meant = |opt_out: &&OptOut| campaign.is_none() || opt_out.scope.campaign() == campaign;
        for opt_out in part.entries.iter().filter(meant) {
            each(opt_out)?;
            told += 1;
        }
        match part.next {
            Some(next) => behind = Some(next),
            None => return Ok(told),
        }
    }
}

/// Writes who is on the list as CSV, but for those whose numbers were forgotten; tells how many are written.
///
/// # Errors
/// When the ledger cannot be read, or `out` cannot be written.
pub async fn export_opt_outs(
    ledger: &dyn Ledger,
    campaign: Option<&str>,
    out: impl Write,
) -> Result<u64, OptOutExportError> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(OPT_OUT_COLUMNS).map_err(io::Error::from)?;
    let mut told = 0;
    for_each_opt_out(ledger, campaign, |OptOut { who, scope, reach, reason, source, at }| {
        let Some(phone) = who.phone() else { return Ok(()) };
        told += 1;
        let (phone, scope, at) = (format!("+{phone}"), scope.to_string(), format!("{at:.3}"));
        let (reason, source) = (escape_formula(reason), escape_formula(source));
        csv.write_record([&phone, &scope, &*reason, &*source, &at, reach.name()]).map_err(io::Error::from)
    })
    .await?;
    csv.flush()?;
    Ok(told)
}

/// Somebody on the list, for a program.
#[must_use]
pub fn opt_out_json(opt_out: &OptOut) -> Value {
    let OptOut { who, scope, reach, reason, source, at } = opt_out;
    let phone = who.phone().map_or_else(|| FORGOTTEN.to_owned(), |phone| phone.to_string());
    json!({
        "phone": phone, "scope": scope.to_string(), "reason": **reason, "source": **source,
        "at": format!("{at:.3}"), "gateways": reach.name(),
    })
}
