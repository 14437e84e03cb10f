//! The country of a national number that is typed: `--region`, otherwise the region of the campaigns.

use std::path::Path;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

use super::context::Context;
use super::failure::CommandFailure;
use super::number::{parse_number, parse_region};
use crate::audience::{PhoneProblem, parse_phone_number};
use crate::domain::{Phone, Region};
use crate::finding::join_names;
use crate::manifest::CampaignDay;
use crate::runs::{CampaignRegions, find_campaign_regions};

/// The typed number, as a national number of `--region`, otherwise of the region of the named campaign or of all campaigns.
///
/// # Errors
/// When it is not a phone number, or is national and its country is not certain.
pub(super) async fn parse_number_of_campaigns(
    context: &Context,
    typed: &SecretString,
    (given, campaign): (Option<&str>, Option<&str>),
) -> Result<Phone, CommandFailure> {
    let national = matches!(parse_phone_number(typed.expose_secret(), None), Err(PhoneProblem::National));
    if given.is_some() || !national {
        return parse_number(typed, given);
    }
    let regions = load_regions(context, campaign).await?;
    match regions.only_region() {
        Some(region) => {
            context.output.print_note(&describe_used_region(&regions, region, "the number gets"));
            parse_number(typed, Some(&region.to_string()))
        }
        None => Err(CommandFailure::invalid("the number has no country code").with_help(unknown_region_help(&regions))),
    }
}

/// The region of the national numbers in a file: `--region`, otherwise that of the named campaign or of all campaigns.
///
/// # Errors
/// When there is no such region, or the ledger cannot be read.
pub(super) async fn choose_region_of_file(
    context: &Context,
    (given, campaign): (Option<&str>, Option<&str>),
) -> Result<Option<Region>, CommandFailure> {
    if given.is_some() {
        return parse_region(given);
    }
    let regions = load_regions(context, campaign).await?;
    if let Some(region) = regions.only_region() {
        context.output.print_note(&describe_used_region(&regions, region, "numbers without a country code get"));
    }
    Ok(regions.only_region())
}

async fn load_regions(context: &Context, campaign: Option<&str>) -> Result<CampaignRegions, CommandFailure> {
    let ledger = context.open_existing_ledger().await?;
    let today = CampaignDay::Of(Timestamp::now());
    Ok(find_campaign_regions(ledger.as_deref(), Path::new("."), campaign, today).await?)
}

/// The note about a region that nobody typed.
fn describe_used_region(regions: &CampaignRegions, region: Region, what: &str) -> String {
    let names: Vec<&str> = regions.campaigns.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    match names[..] {
        [name] => format!("{what} the country code of {region}, the `region` of campaign {name}"),
        _ => format!("{what} the country code of {region}, the `region` of your {} campaigns", names.len()),
    }
}

/// What to do if the country is not certain.
fn unknown_region_help(regions: &CampaignRegions) -> String {
    const ADVICE: &str =
        "write the number with `+` and its country code, or add its country, for example `--region UA`";
    let codes: Vec<String> = regions.campaigns.iter().map(|(region, _)| region.to_string()).collect();
    match (codes.len(), regions.unreadable.first()) {
        (0 | 1, Some(file)) => format!("{ADVICE}; the region of `{file}` is unknown, because the file cannot be read"),
        (0 | 1, None) => ADVICE.to_owned(),
        _ => {
            format!("{ADVICE}; your campaigns have different regions: {}", join_names(codes.iter().map(String::as_str)))
        }
    }
}
