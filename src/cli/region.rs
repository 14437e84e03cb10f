//! The country of a national number that is typed: `--region`, otherwise the region of the campaigns.

use std::path::Path;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

use super::context::Context;
use super::failure::Failure;
use super::number::{number, region};
use crate::audience::{PhoneProblem, parse};
use crate::domain::{Phone, Region};
use crate::finding::list_all;
use crate::manifest::Day;
use crate::runs::{CampaignRegions, campaign_regions};

/// The typed number, as a national number of `--region`, otherwise of the region of the named campaign or of all campaigns.
///
/// # Errors
/// When it is not a phone number, or is national and its country is not certain.
pub(super) async fn number_of_campaigns(
    context: &Context,
    typed: &SecretString,
    (given, campaign): (Option<&str>, Option<&str>),
) -> Result<Phone, Failure> {
    let national = matches!(parse(typed.expose_secret(), None), Err(PhoneProblem::National));
    if given.is_some() || !national {
        return number(typed, given);
    }
    let regions = regions(context, campaign).await?;
    match regions.only() {
        Some(region) => {
            context.output.note(&used(&regions, region, "the number gets"));
            number(typed, Some(&region.to_string()))
        }
        None => Err(Failure::wrong("the number has no country code").with_help(unknown(&regions))),
    }
}

/// The region of the national numbers in a file: `--region`, otherwise that of the named campaign or of all campaigns.
///
/// # Errors
/// When there is no such region, or the ledger cannot be read.
pub(super) async fn region_of_file(
    context: &Context,
    (given, campaign): (Option<&str>, Option<&str>),
) -> Result<Option<Region>, Failure> {
    if given.is_some() {
        return region(given);
    }
    let regions = regions(context, campaign).await?;
    if let Some(region) = regions.only() {
        context.output.note(&used(&regions, region, "numbers without a country code get"));
    }
    Ok(regions.only())
}

async fn regions(context: &Context, campaign: Option<&str>) -> Result<CampaignRegions, Failure> {
    let ledger = context.existing_ledger().await?;
    let today = Day::Of(Timestamp::now());
    Ok(campaign_regions(ledger.as_deref(), Path::new("."), campaign, today).await?)
}

/// The note about a region that nobody typed.
fn used(regions: &CampaignRegions, region: Region, what: &str) -> String {
    let names: Vec<&str> = regions.campaigns.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    match names[..] {
        [name] => format!("{what} the country code of {region}, the `region` of campaign {name}"),
        _ => format!("{what} the country code of {region}, the `region` of your {} campaigns", names.len()),
    }
}

/// What to do if the country is not certain.
fn unknown(regions: &CampaignRegions) -> String {
    const ADVICE: &str =
        "write the number with `+` and its country code, or add its country, for example `--region UA`";
    let codes: Vec<String> = regions.campaigns.iter().map(|(region, _)| region.to_string()).collect();
    match (codes.len(), regions.unreadable.first()) {
        (0 | 1, Some(file)) => format!("{ADVICE}; the region of `{file}` is unknown, because the file cannot be read"),
        (0 | 1, None) => ADVICE.to_owned(),
        _ => format!("{ADVICE}; your campaigns have different regions: {}", list_all(codes.iter().map(String::as_str))),
    }
}
