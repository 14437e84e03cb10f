//! The keys under `delivery`.

use std::time::Duration;

use crate::manifest::campaign::{Delivery, OnInDoubt, StopAfter};
use crate::manifest::section::Section;
use crate::manifest::value::Seconds;

/// How a campaign is sent; nothing where a value cannot be read, which the structure check told.
pub(super) fn delivery(section: Section<'_>) -> Option<Delivery> {
    let stop = section.section("stop_after");
    Some(Delivery {
        rate: section.parsed("rate"),
        batch: section.parsed("batch")?,
        in_flight: section.parsed("in_flight")?,
        timeout: duration(section, "timeout")?,
        on_in_doubt: match section.text("on_in_doubt")? {
            "hold" => OnInDoubt::Hold,
            "assume_sent" => OnInDoubt::AssumeSent,
            "resend_if_not_found" => OnInDoubt::ResendIfNotFound,
            _ => return None,
        },
        cap: section.cap("cap"),
        stop_after: StopAfter {
            doubtful_envelopes: stop.parsed("doubtful_envelopes")?,
            same_error_in_a_row: stop.parsed("same_error_in_a_row")?,
            rejected: stop.parsed("rejected")?,
            unreachable: if stop.has("unreachable") { Some(duration(stop, "unreachable")?) } else { None },
        },
    })
}

fn duration(section: Section<'_>, key: &str) -> Option<Duration> {
    section.parsed(key).map(|Seconds(seconds)| Duration::from_secs(seconds.into()))
}
