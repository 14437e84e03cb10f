//! The answer of a lookup or a code call on a terminal.

use crate::finding::escape_to_one_line;
use crate::report::parse_answer_members;

/// The members of an answer, a line each.
pub(super) fn format_answer_members(answer: &str) -> String {
    let members = parse_answer_members(answer);
    let width = members.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, value)| format!("  {}\n", escape_to_one_line(&format!("{name:width$}  {value}")));
    members.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_members_align_and_lose_control_characters() {
        assert_eq!(format_answer_members(r#"{"price":0.50,"code":"0042"}"#), "  code   0042\n  price  0.50\n");
        let hostile = format_answer_members(r#"{"code":"\u001b[2J","\u0007":1}"#);
        assert_eq!(hostile.find(|c: char| c.is_control() && c != '\n'), None);
    }
}
