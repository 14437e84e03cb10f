//! A phone number as a command argument.

use secrecy::{ExposeSecret as _, SecretString};

use super::failure::CommandFailure;
use crate::audience::{PhoneProblem, parse_phone_number};
use crate::domain::{Phone, Region};

/// How a number is written that any command understands.
const FORMAT_HINT: &str = "use the international format, for example `+380501234567`";

/// A number of the country whose numbers the campaign has.
pub(super) fn parse_campaign_number(typed: &SecretString, region: Option<Region>) -> Result<Phone, CommandFailure> {
    parse_phone_number(typed.expose_secret(), region).map_err(|problem| {
        CommandFailure::invalid(format!("PHONE is not a valid phone number: {problem}")).with_help(FORMAT_HINT)
    })
}

/// The number, national where its country was typed too.
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

/// The country of national numbers, where one was typed.
pub(super) fn parse_region(typed: Option<&str>) -> Result<Option<Region>, CommandFailure> {
    typed.map(str::parse::<Region>).transpose().map_err(|error| CommandFailure::invalid(error.to_string()))
}
