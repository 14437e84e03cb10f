//! A phone number as a command argument.

use secrecy::{ExposeSecret as _, SecretString};

use super::failure::Failure;
use crate::audience::{PhoneProblem, parse};
use crate::domain::{Phone, Region};

/// How a number is written that any command understands.
const INTERNATIONAL: &str = "use the international format, for example `+380501234567`";

/// A number of the country whose numbers the campaign has.
pub(super) fn number_of(typed: &SecretString, region: Option<Region>) -> Result<Phone, Failure> {
    parse(typed.expose_secret(), region).map_err(|problem| {
        Failure::wrong(format!("PHONE is not a valid phone number: {problem}")).with_help(INTERNATIONAL)
    })
}

/// The number, national where its country was typed too.
pub(super) fn number(typed: &SecretString, country: Option<&str>) -> Result<Phone, Failure> {
    parse(typed.expose_secret(), region(country)?).map_err(|problem| {
        Failure::wrong(match problem {
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
pub(super) fn region(typed: Option<&str>) -> Result<Option<Region>, Failure> {
    typed.map(str::parse::<Region>).transpose().map_err(|error| Failure::wrong(error.to_string()))
}
