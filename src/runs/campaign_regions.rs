//! The regions of campaigns, for a national number that is typed without a campaign file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Error, campaign_files};
use crate::delivery::FrozenInputs;
use crate::domain::Region;
use crate::ledger::{Ledger, Run, RunFilter};
use crate::manifest::{Day, load_campaign};

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
    pub fn only(&self) -> Option<Region> {
        match &self.campaigns[..] {
            [(only, _)] if self.unreadable.is_empty() => Some(*only),
            _ => None,
        }
    }

    fn add(&mut self, region: Option<Region>, campaign: &str) {
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
pub async fn campaign_regions(
    ledger: Option<&dyn Ledger>,
    folder: &Path,
    name: Option<&str>,
    today: Day,
) -> Result<CampaignRegions, Error> {
    let mut found = CampaignRegions::default();
    for file in campaign_files(folder).unwrap_or_default() {
        let shown = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match load_campaign(&file, today).value {
            Some(campaign) if name.is_none_or(|name| name == campaign.brief.name) => {
                found.add(campaign.brief.region, &campaign.brief.name);
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
    let filter = name.map_or_else(RunFilter::all, RunFilter::of_campaign);
    let runs = ledger.runs(filter).await?.into_iter().filter(|run| !run.shared && run.purged_at.is_none());
    let latest: BTreeMap<String, Run> = runs.map(|run| (run.campaign.clone(), run)).collect();
    for run in latest.into_values() {
        match FrozenInputs::of_run(ledger, &run).await {
            Ok(frozen) => found.add(frozen.brief.region, &run.campaign),
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
        of.iter().for_each(|(region, name)| found.add(Some(region.parse().unwrap()), name));
        found
    }

    #[test]
    fn campaign_regions_have_an_only_one_unless_they_differ() {
        assert_eq!(regions(&[]).only(), None);
        let ukraine = regions(&[("UA", "spring"), ("UA", "autumn")]);
        assert_eq!(ukraine.only(), Some("UA".parse().unwrap()));
        assert_eq!(regions(&[("UA", "spring"), ("PL", "autumn")]).only(), None);
        let unreadable = BTreeSet::from(["broken.yaml".to_owned()]);
        assert_eq!(CampaignRegions { unreadable, ..ukraine }.only(), None, "its region might be another");
    }
}
