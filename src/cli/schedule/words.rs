//! The words for what runs by itself.

use jiff::Timestamp;

use crate::calendar::{InvertedZone, Occurrence};
use crate::cli::suggested::{RepeatedOptions, shell_path};

/// An occurrence for a person. A zone such as `Etc/GMT+2` has its offset and the time that it is there now, because the sign of
/// its name is inverted.
pub(in crate::cli) fn format_occurrence(occurrence: &Occurrence) -> String {
    let shown = occurrence.local_time();
    let words = shown.strftime("%a %-d %b %Y, %H:%M");
    let instead = match shown.datetime() == occurrence.nominal {
        true => String::new(),
        false => format!(", instead of {}, which the clock change skips", occurrence.format_nominal()),
    };
    let zone = occurrence.zone_name();
    let inverted = InvertedZone::from_name(zone)
        .map(|zone| format!(", which is {}, now {}", zone.format_offset(), zone.format_local_time(Timestamp::now())));
    format!("{words} ({zone}{}){instead}", inverted.unwrap_or_default())
}

/// How a campaign is armed.
pub(in crate::cli) fn activation_command(campaign: &std::path::Path, options: &RepeatedOptions) -> String {
    options.command(format!("schedule add {}", shell_path(campaign)))
}
