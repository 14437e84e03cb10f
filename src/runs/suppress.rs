//! Putting numbers on the suppression list and taking them off, by hand or all that an import added.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::opt_out_file::file_name;
use super::{Error, current_person};
use crate::domain::{Phone, Region};
use crate::ledger::{Additions, EntryRemoval, Ledger, OptOut, OptOutReach, OptOutRemoval, OptOutScope, RunFilter};

/// How many entries are read at once.
const PAGE_SIZE: u32 = 10_000;

/// What a person says of who opts out.
#[derive(Clone, Debug, Default)]
pub struct OptOutTerms {
    /// One campaign, by its name; else everything.
    pub campaign: Option<String>,
    /// Why, in words.
    pub reason: Option<String>,
    /// The country of national numbers.
    pub region: Option<Region>,
    /// Who says so; the person at this computer where nobody is named.
    pub by: Option<String>,
}

/// Puts a number on the list, as somebody says; tells since when it stands there, if it did before.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn add_opt_out(
    ledger: &dyn Ledger,
    phone: Phone,
    terms: &OptOutTerms,
    now: Timestamp,
) -> Result<(OptOut, Additions), Error> {
    let opt_out = OptOut {
        who: phone.into(),
        scope: OptOutScope::from_campaign(terms.campaign.as_deref()),
        reach: OptOutReach::AllGateways,
        reason: terms.reason.as_deref().unwrap_or("by hand").into(),
        source: terms.by.clone().unwrap_or_else(current_person).into(),
        at: now,
    };
    let additions = ledger.add_opt_outs(vec![opt_out.clone()]).await?;
    Ok((opt_out, additions))
}

/// How a number is on the list: out of one campaign, or out of all that it opted out of.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn list_opt_outs(ledger: &dyn Ledger, phone: Phone, terms: &OptOutTerms) -> Result<Vec<OptOut>, Error> {
    let mut entries = ledger.find_opt_outs(phone).await?;
    entries.retain(|entry| terms.campaign.is_none() || entry.scope.campaign() == terms.campaign.as_deref());
    Ok(entries)
}

/// Takes a number off the list: out of one campaign, or out of all that it opted out of. Tells what was taken off.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn remove_opt_outs(ledger: &dyn Ledger, phone: Phone, terms: &OptOutTerms) -> Result<Vec<OptOut>, Error> {
    let scope = terms.campaign.as_deref().map(|name| OptOutScope::from_campaign(Some(name)));
    let why = terms.reason.as_deref().map(Arc::from);
    Ok(ledger.remove_opt_outs(OptOutRemoval { phone, scope, by: current_person().into(), why }).await?)
}

/// What imports of a file added to the list.
#[derive(Clone, Debug, Default)]
pub struct ImportedEntries {
    /// The entries that can be removed.
    pub entries: Vec<OptOut>,
    /// Entries of recipients who were forgotten since; they stay on the list.
    pub forgotten: u64,
    /// The sources of all imports on the list, each once, of this file or not.
    pub sources: BTreeSet<Arc<str>>,
}

impl ImportedEntries {
    /// Finds them by the path or name of the file, or by the source that the list shows.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn find(ledger: &dyn Ledger, source: &str, campaign: Option<&str>) -> Result<Self, Error> {
        let (name, mut found, mut behind) = (file_name(Path::new(source)), Self::default(), None);
        loop {
            let part = ledger.list_opt_outs(behind, PAGE_SIZE).await?;
            for entry in part.entries.into_iter().filter(OptOut::is_imported) {
                let is_meant = entry.is_from_import(source) || entry.is_from_import(&name);
                found.sources.insert(Arc::clone(&entry.source));
                match is_meant && (campaign.is_none() || entry.scope.campaign() == campaign) {
                    true if entry.who.phone().is_none() => found.forgotten += 1,
                    true => found.entries.push(entry),
                    false => {}
                }
            }
            match part.next {
                Some(next) => behind = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// Takes them off the list, as far as they are on it unchanged, and tells how many were.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub async fn remove(self, ledger: &dyn Ledger, why: Option<&str>) -> Result<u64, Error> {
        let removal = EntryRemoval { entries: self.entries, by: current_person().into(), why: why.map(Arc::from) };
        Ok(ledger.remove_entries(removal).await?)
    }
}

/// The names of the campaigns that have runs or an active schedule, if none of them is this one; nothing if one is.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn list_other_campaigns(ledger: &dyn Ledger, name: &str) -> Result<Option<BTreeSet<String>>, Error> {
    if !ledger.list_runs(RunFilter { latest: Some(1), ..RunFilter::for_campaign(name) }).await?.is_empty() {
        return Ok(None);
    }
    let runs = ledger.list_runs(RunFilter::all()).await?;
    let campaigns = runs.into_iter().filter(|run| !run.shared).map(|run| run.campaign);
    let schedules = ledger.list_schedules().await?.into_iter();
    let scheduled = schedules.map(|schedule| schedule.map_or_else(|damaged| damaged.name, |armed| armed.name));
    let names: BTreeSet<String> = campaigns.chain(scheduled).collect();
    Ok((!names.contains(name)).then_some(names))
}
