//! The keys under `delivery`.

use std::time::Duration;

use crate::manifest::campaign::{BreakerSettings, DeliverySettings, InDoubtPolicy};
use crate::manifest::section::ConfigSection;
use crate::manifest::value::Seconds;

/// How a campaign is sent; nothing where a value cannot be read, which the structure check told.
pub(super) fn read_delivery(section: ConfigSection<'_>) -> Option<DeliverySettings> {
    let stop = section.subsection("stop_after");
    Some(DeliverySettings {
        rate: section.parse_value("rate"),
        batch: section.parse_value("batch")?,
        in_flight: section.parse_value("in_flight")?,
        timeout: read_duration(section, "timeout")?,
        on_in_doubt: match section.text("on_in_doubt")? {
            "hold" => InDoubtPolicy::Hold,
            "assume_sent" => InDoubtPolicy::AssumeSent,
            "resend_if_not_found" => InDoubtPolicy::ResendIfNotFound,
            _ => return None,
        },
        cap: section.parse_cap("cap"),
        stop_after: BreakerSettings {
            doubtful_envelopes: stop.parse_value("doubtful_envelopes")?,
            same_error_in_a_row: stop.parse_value("same_error_in_a_row")?,
            rejected: stop.parse_value("rejected")?,
            unreachable: if stop.has_value("unreachable") { Some(read_duration(stop, "unreachable")?) } else { None },
        },
    })
}

fn read_duration(section: ConfigSection<'_>, key: &str) -> Option<Duration> {
    section.parse_value(key).map(|Seconds(seconds)| Duration::from_secs(seconds.into()))
}
