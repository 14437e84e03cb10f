//! Times on a terminal: on the clock of this computer, without the signs of a program's format.

pub(super) use crate::report::{format_local_minute as minute, format_local_second as second};

/// A time that programs write, to the second; another text as it is.
pub(super) fn format_program_time(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_time_is_readable_and_other_text_is_kept() {
        let time = format_program_time("2026-11-26T17:02:31.123Z");
        assert!(time.len() == "2026-11-26 17:02:31".len() && !time.contains(['T', 'Z', '.']), "{time}");
        assert_eq!(format_program_time("soon"), "soon");
    }
}
