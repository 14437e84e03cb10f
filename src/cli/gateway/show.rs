//! The gateway's words on a terminal: dates and identifiers.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::domain::MsgId;

/// The gateway's time (ISO 8601 with offset) as this computer's clock shows it; another text as it is.
pub(super) fn moment(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    match text.parse::<Timestamp>() {
        Ok(at) => at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// An identifier for people; empty when there is none.
pub(super) fn id(id: Option<&MsgId>) -> String {
    id.map(MsgId::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_with_its_offset_and_anything_else_as_it_is() {
        let shown = moment(Some("2026-11-21T10:00:00+02:00"));
        assert!(shown.starts_with("2026-11-2") && shown.len() == "2026-11-21 10:00:00 +02:00".len(), "{shown}");
        for text in ["soon", "2026-11-21", ""] {
            assert_eq!(moment(Some(text)), text);
        }
        assert_eq!(moment(None), "");
    }
}
