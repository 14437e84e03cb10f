//! Rows that cannot be sent to.

use super::rows;
use crate::finding::{Finding, Rule};
use crate::ledger::{LeftOut, State};

pub(super) static RULE: Rule = Rule::warning(
    "invalid-row",
    "A row without a valid number or without a message that its channel takes gets nothing; all others are sent.",
    "Mend the row in the list, or the text.",
);

/// The invalid rows by their reasons, the commonest first, as warnings; no more than 20 rows are named.
#[must_use]
pub fn invalid_rows(left_out: &LeftOut) -> Vec<Finding> {
    rows::findings(&RULE, "invalid", &rows::left_out(left_out, State::Invalid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::rows::{ALL_OF_THEM, invalid};

    fn messages(rows: &[(u32, &str)]) -> Vec<String> {
        invalid_rows(&invalid(rows)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn rows_are_named_with_their_reason_and_no_more_than_twenty() {
        assert_eq!(messages(&[]), Vec::<String>::new());
        assert_eq!(messages(&[(3, "a")]), ["row 3 is invalid: a"]);
        let several = [(3, "a"), (9, "b"), (5, "a"), (7, "a")];
        assert_eq!(messages(&several), ["rows 3, 5 and 7 are invalid: a", "row 9 is invalid: b"]);
        let mut many: Vec<(u32, &str)> = (2..102).map(|row| (row, "a")).collect();
        many.push((200, "b"));
        let told = messages(&many);
        assert!(told[0].starts_with("rows 2, 3, ") && told[0].ends_with(", 20 and 81 more are invalid: a"), "{told:?}");
        assert_eq!(told[1], "row 200 is invalid: b");
        assert_eq!(invalid_rows(&invalid(&many)).last().unwrap().help.as_deref(), Some(ALL_OF_THEM));
        let reasons: Vec<String> = (0..50).map(|number| format!("reason {number}")).collect();
        let each: Vec<(u32, &str)> = reasons.iter().zip(2..).map(|(reason, row)| (row, reason.as_str())).collect();
        let told = messages(&each);
        assert_eq!((told.len(), told[20].as_str()), (21, "30 more rows are invalid"));
    }
}
