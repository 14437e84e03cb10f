//! The regions of campaigns, for a national number that is typed without a campaign file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Error, list_campaign_files};
use crate::delivery::FrozenInputs;
use crate::domain::Region;
use crate::ledger::{Ledger, Run, RunFilter};
use crate::manifest::{CampaignDay, load_campaign};

/// The regions of the numbers of some campaigns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CampaignRegions {
    /// The campaigns of each region, by their names.
    pub campaigns: Vec<(Region, BTreeSet<String>)>,
    /// The campaign files that cannot be read, so that their region is unknown.
    pub unreadable: BTreeSet<String>,
}

impl CampaignRegions {
    /// The region that a national number has, unless campaigns differ or one of them cannot be read.
    #[must_use]
    pub fn only_region(&self) -> Option<Region> {
        match &self.campaigns[..] {
            [(only, _)] if self.unreadable.is_empty() => Some(*only),
            _ => None,
        }
    }

    fn add_campaign(&mut self, region: Option<Region>, campaign: &str) {
        let Some(region) = region else { return };
        match self.campaigns.iter_mut().find(|(known, _)| *known == region) {
            Some((_, campaigns)) => drop(campaigns.insert(campaign.to_owned())),
            None => self.campaigns.push((region, BTreeSet::from([campaign.to_owned()]))),
        }
    }
}

/// The regions of the campaigns in a folder and of the latest runs in the ledger; with a name, of that campaign alone. Campaigns
/// without a region count for none: all of their numbers have a country code.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_campaign_regions(
    ledger: Option<&dyn Ledger>,
    folder: &Path,
    name: Option<&str>,
    today: CampaignDay,
) -> Result<CampaignRegions, Error> {
    let mut found = CampaignRegions::default();
    for file in list_campaign_files(folder).unwrap_or_default() {
        let shown = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match load_campaign(&file, today).value {
            Some(campaign) if name.is_none_or(|name| name == campaign.brief.name) => {
                found.add_campaign(campaign.brief.region, &campaign.brief.name);
            }
            Some(_) => {}
            // Without a name, or with the name of its file, it might be the campaign.
            None if name.is_none_or(|name| file.file_stem().is_some_and(|stem| stem == name)) => {
                found.unreadable.insert(shown);
            }
            None => {}
        }
    }
    let Some(ledger) = ledger else { return Ok(found) };
    let filter = name.map_or_else(RunFilter::all, RunFilter::for_campaign);
    let runs = ledger.list_runs(filter).await?.into_iter().filter(|run| !run.shared && run.purged_at.is_none());
    let latest: BTreeMap<String, Run> = runs.map(|run| (run.campaign.clone(), run)).collect();
    for run in latest.into_values() {
        match FrozenInputs::load_for_run(ledger, &run).await {
            Ok(frozen) => found.add_campaign(frozen.brief.region, &run.campaign),
            Err(_) => drop(found.unreadable.insert(run.name())),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(of: &[(&str, &str)]) -> CampaignRegions {
        let mut found = CampaignRegions::default();
        of.iter().for_each(|(region, name)| found.add_campaign(Some(region.parse().unwrap()), name));
        found
    }

    #[test]
    fn only_region_exists_unless_campaigns_differ() {
        assert_eq!(regions(&[]).only_region(), None);
        let ukraine = regions(&[("UA", "spring"), ("UA", "autumn")]);
        assert_eq!(ukraine.only_region(), Some("UA".parse().unwrap()));
        assert_eq!(regions(&[("UA", "spring"), ("PL", "autumn")]).only_region(), None);
        let unreadable = BTreeSet::from(["broken.yaml".to_owned()]);
        assert_eq!(CampaignRegions { unreadable, ..ukraine }.only_region(), None, "its region might be another");
    }
}
