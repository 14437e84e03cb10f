//! Dates and identifiers of the gateway on a terminal.

use crate::cli::clock;
use crate::domain::GatewayMessageId;

/// A time of the gateway (ISO 8601 with offset) on the clock of this computer; another text as it is.
pub(super) fn format_time(text: Option<&str>) -> String {
    clock::format_program_time(text.unwrap_or_default())
}

/// An identifier for people; empty when there is none.
pub(super) fn format_id(id: Option<&GatewayMessageId>) -> String {
    id.map(GatewayMessageId::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_time_is_shown_on_the_local_clock() {
        let shown = format_time(Some("2026-11-21T10:00:00+02:00"));
        assert!(shown.starts_with("2026-11-2") && shown.len() == "2026-11-21 10:00:00".len(), "{shown}");
        for text in ["soon", "2026-11-21", ""] {
            assert_eq!(format_time(Some(text)), text);
        }
        assert_eq!(format_time(None), "");
    }
}
