//! Phone numbers as command arguments, with `--region` or the region of the campaigns for national numbers.

use std::path::Path;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

use super::context::Context;
use super::exit::CommandFailure;
use campaign_content::audience::{PhoneProblem, parse_phone_number};
use campaign_core::domain::{Phone, Region};
use campaign_core::finding::join_names;
use campaign_manifest::CampaignDay;
use campaign_runs::{CampaignRegions, find_campaign_regions};

/// The format of a number that every command accepts.
const FORMAT_HINT: &str = "use the international format, for example `+380501234567`";

/// Parses a phone number, which can be a national number of the campaign's region.
pub(super) fn parse_campaign_number(typed: &SecretString, region: Option<Region>) -> Result<Phone, CommandFailure> {
    parse_phone_number(typed.expose_secret(), region).map_err(|problem| {
        CommandFailure::invalid(format!("PHONE is not a valid phone number: {problem}")).with_help(FORMAT_HINT)
    })
}

/// Parses a phone number, which can be national if the country is typed too.
pub(super) fn parse_number(typed: &SecretString, country: Option<&str>) -> Result<Phone, CommandFailure> {
    parse_phone_number(typed.expose_secret(), parse_region(country)?).map_err(|problem| {
        CommandFailure::invalid(match problem {
            PhoneProblem::National => {
                "the number has no country code; write it with `+` and its country code, or add its country, for \
                 example `--region UA`"
                    .to_owned()
            }
            problem => format!("PHONE is not a valid phone number: {problem}"),
        })
    })
}

/// Parses the country of national numbers.
pub(super) fn parse_region(typed: Option<&str>) -> Result<Option<Region>, CommandFailure> {
    typed.map(str::parse::<Region>).transpose().map_err(|error| CommandFailure::invalid(error.to_string()))
}

/// Parses a phone number. A national number belongs to the region in `--region`, or else to the only region of the
/// named campaign or of all campaigns.
///
/// # Errors
/// If the text is not a phone number, is a national number whose country is ambiguous, or the ledger cannot be read.
pub(super) async fn parse_number_with_campaign_region(
    context: &Context,
    typed: &SecretString,
    region_option: Option<&str>,
    campaign: Option<&str>,
) -> Result<Phone, CommandFailure> {
    let is_national = matches!(parse_phone_number(typed.expose_secret(), None), Err(PhoneProblem::National));
    if region_option.is_some() || !is_national {
        return parse_number(typed, region_option);
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

/// Chooses the region of the national numbers in a file: `--region`, or else the only region of the named campaign or
/// of all campaigns.
///
/// # Errors
/// If the region does not exist, or the ledger cannot be read.
pub(super) async fn choose_region_of_file(
    context: &Context,
    region_option: Option<&str>,
    campaign: Option<&str>,
) -> Result<Option<Region>, CommandFailure> {
    if region_option.is_some() {
        return parse_region(region_option);
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

/// Describes the region that was derived from the campaigns.
fn describe_used_region(regions: &CampaignRegions, region: Region, subject: &str) -> String {
    let names: Vec<&str> = regions.campaigns.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    match names[..] {
        [name] => format!("{subject} the country code of {region}, the `region` of campaign {name}"),
        _ => format!("{subject} the country code of {region}, the `region` of your {} campaigns", names.len()),
    }
}

/// The remedy for a phone number whose country is ambiguous.
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
