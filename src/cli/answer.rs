//! The answer of a lookup or a code call on a terminal.

use crate::finding::one_line;
use crate::report::answer_members;

/// The members of an answer, a line each.
pub(super) fn members(answer: &str) -> String {
    let members = answer_members(answer);
    let width = members.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, value)| format!("  {}\n", one_line(&format!("{name:width$}  {value}")));
    members.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_two_columns_and_command_nothing() {
        assert_eq!(members(r#"{"price":0.50,"code":"0042"}"#), "  code   0042\n  price  0.50\n");
        let hostile = members(r#"{"code":"\u001b[2J","\u0007":1}"#);
        assert_eq!(hostile.find(|c: char| c.is_control() && c != '\n'), None);
    }
}
