//! Cells that are no number, no amount or no date.

use super::spot::{Spot, Subject};
use super::{Failure, kind};

impl Spot<'_> {
    /// A text that `int` or `float` does not read. Its letters are looked at and not shown.
    pub(super) fn number(&self, message: &str) -> Failure {
        let text = message.trim_start_matches("The string `").split("` cannot be").next().unwrap_or("");
        let Subject { title, written } = self.subject();
        let filter = self.own_filter.filter(|name| ["int", "float"].contains(name)).unwrap_or("int");
        let is_plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
        let is_grouped =
            text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | '\'') || c.is_whitespace());
        match text {
            "" => Failure::new(
                format!("{title} is empty, so it is no number"),
                format!(
                    "write `{written} | default(value=0, boolean=true) | {filter}`, or put it between `{{% if {written} %}}` and `{{% endif %}}`"
                ),
            ),
            _ if is_plain && filter == "int" => self.fraction(),
            _ if is_grouped => Failure::new(
                format!("{title} has a comma or blanks in its number"),
                format!(
                    "write such numbers as `1200.50` in the list, or `{written} | replace(from=\",\", to=\".\") | float`"
                ),
            ),
            _ => Failure::new(
                format!("{title} is not a number"),
                format!("correct the cell in the list, or remove `| {filter}` if texts are meant"),
            ),
        }
    }

    pub(super) fn no_amount(&self, why: &str) -> Failure {
        let Subject { title, written } = self.subject();
        match why {
            "empty" => Failure::new(
                format!("{title} is empty, so it is no amount"),
                format!(
                    "write `{written} | default(value=0, boolean=true) | money`, or put it between `{{% if {written} %}}` and `{{% endif %}}`"
                ),
            ),
            "comma" => Failure::new(
                format!("the comma of {title} may stand before a fraction or between thousands"),
                "write such amounts as `1200.50` in the list",
            ),
            _ => Failure::new(
                format!("{title} is no amount"),
                "write the amount alone in the list, such as `1200.50`, and the currency in the text",
            ),
        }
    }

    pub(super) fn no_date(&self, why: &str) -> Failure {
        let Subject { title, written } = self.subject();
        match why {
            "empty" => Failure::new(
                format!("{title} is empty, so it is no date"),
                format!("put it between `{{% if {written} %}}` and `{{% endif %}}`"),
            ),
            "format" => {
                Failure::new("the `format` of the filter `date` cannot be read", "write it like `format=\"%d.%m.%Y\"`")
            }
            _ => Failure::new(
                format!("{title} is not a date such as `2026-12-05` or `05.12.2026`"),
                "write the dates in one of these forms in the list",
            ),
        }
    }

    pub(super) fn fraction(&self) -> Failure {
        let Subject { title, written } = self.subject();
        Failure::new(
            format!("{title} is not a whole number"),
            format!("write `{written} | float`, or `{written} | float | round` for a whole number"),
        )
    }

    pub(super) fn no_number(&self, message: &str) -> Failure {
        let found = message.trim_start_matches("Value of type ").split(' ').next().unwrap_or("");
        match found {
            "undefined" | "none" => self.undefined(""),
            found => Failure::new(
                format!("{} is {}, which is no number", self.subject().title, kind(found)),
                "use `| int` and `| float` with cells and numbers",
            ),
        }
    }
}
