//! Dates and identifiers of the gateway on a terminal.

use crate::cli::clock;
use crate::domain::MsgId;

/// A time of the gateway (ISO 8601 with offset) on the clock of this computer; another text as it is.
pub(super) fn moment(text: Option<&str>) -> String {
    clock::shown(text.unwrap_or_default())
}

/// An identifier for people; empty when there is none.
pub(super) fn id(id: Option<&MsgId>) -> String {
    id.map(MsgId::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_on_the_local_clock_and_other_text_as_it_is() {
        let shown = moment(Some("2026-11-21T10:00:00+02:00"));
        assert!(shown.starts_with("2026-11-2") && shown.len() == "2026-11-21 10:00:00".len(), "{shown}");
        for text in ["soon", "2026-11-21", ""] {
            assert_eq!(moment(Some(text)), text);
        }
        assert_eq!(moment(None), "");
    }
}
