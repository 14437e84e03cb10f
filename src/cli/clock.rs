//! Times on a terminal: on the clock of this computer, without the signs of a program's format.

pub(super) use crate::report::{local_minute as minute, local_second as second};

/// A time that programs write, to the second; another text as it is.
pub(super) fn shown(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_no_sign_of_a_program_and_other_text_stays() {
        let time = shown("2026-11-26T17:02:31.123Z");
        assert!(time.len() == "2026-11-26 17:02:31".len() && !time.contains(['T', 'Z', '.']), "{time}");
        assert_eq!(shown("soon"), "soon");
    }
}
