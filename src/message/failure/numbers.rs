//! Cells that are not a number, an amount or a date.

use super::spot::{FailurePlace, FailureSubject};
use super::{RenderFailure, describe_type};

impl FailurePlace<'_> {
    /// A cell that `int` or `float` cannot read. The explanation does not quote it.
    pub(super) fn explain_number(&self, message: &str) -> RenderFailure {
        let text = message.trim_start_matches("The string `").split("` cannot be").next().unwrap_or("");
        let FailureSubject { title, written } = self.find_subject();
        let filter = self.own_filter.filter(|name| ["int", "float"].contains(name)).unwrap_or("int");
        let is_plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
        let is_grouped =
            text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | '\'') || c.is_whitespace());
        match text {
            "" => RenderFailure::new(
                format!("{title} is empty and cannot be converted to a number"),
                format!(
                    "write `{written} | default(value=0, boolean=true) | {filter}`, or put this part of the message \
                        between `{{% if {written} %}}` and `{{% endif %}}`"
                ),
            ),
            _ if is_plain && filter == "int" => self.explain_fraction(),
            _ if is_grouped => RenderFailure::new(
                format!("{title} contains a number with a comma or spaces"),
                suggest_plain_digits(text, written),
            ),
            _ => RenderFailure::new(
                format!("{title} is not a number"),
                format!("correct the cell in the list, or remove `| {filter}` to keep it as text"),
            ),
        }
    }

    pub(super) fn explain_amount(&self, why: &str) -> RenderFailure {
        let FailureSubject { title, written } = self.find_subject();
        match why {
            "empty" => RenderFailure::new(
                format!("{title} is empty and cannot be shown as an amount"),
                format!(
                    "write `{written} | default(value=0, boolean=true) | money`, or put this part of the message \
                        between `{{% if {written} %}}` and `{{% endif %}}`"
                ),
            ),
            "unclear" => RenderFailure::new(
                format!("{title} has an ambiguous comma or point, which could separate thousands or decimals"),
                "write such amounts as `1200.50` or `1200` in the list",
            ),
            _ => RenderFailure::new(
                format!("{title} is not an amount"),
                "write only the amount in the list, for example `1200.50`, and put the currency in the message",
            ),
        }
    }

    pub(super) fn explain_date(&self, why: &str) -> RenderFailure {
        let FailureSubject { title, written } = self.find_subject();
        match why {
            "empty" => RenderFailure::new(
                format!("{title} is empty and cannot be shown as a date"),
                format!("put this part of the message between `{{% if {written} %}}` and `{{% endif %}}`"),
            ),
            "format" => RenderFailure::new(
                "the `format` of the filter `date` is not valid",
                "write, for example, `format=\"%d.%m.%Y\"`",
            ),
            _ => RenderFailure::new(
                format!("{title} is not a valid date"),
                "write dates in the list as `2026-12-05` or `05.12.2026`",
            ),
        }
    }

    pub(super) fn explain_fraction(&self) -> RenderFailure {
        let FailureSubject { title, written } = self.find_subject();
        RenderFailure::new(
            format!("{title} is not a whole number"),
            format!("write `{written} | float`, or `{written} | float | round` for a whole number"),
        )
    }

    pub(super) fn explain_not_a_number(&self, message: &str) -> RenderFailure {
        let found = message.trim_start_matches("Value of type ").split(' ').next().unwrap_or("");
        match found {
            "undefined" | "none" => self.explain_undefined(""),
            found => RenderFailure::new(
                format!("{} is {}, which is not a number", self.find_subject().title, describe_type(found)),
                "use `| int` and `| float` only on cells and numbers",
            ),
        }
    }
}

/// The remedy for a number with commas or spaces. It does not quote a number as long as a phone number.
fn suggest_plain_digits(text: &str, written: &str) -> String {
    const SHOWN: usize = 8;
    let is_short = text.chars().filter(char::is_ascii_digit).count() <= SHOWN;
    let in_list = match to_plain_number(text).filter(|_| is_short) {
        Some(plain) => {
            format!("write `{plain}` instead of `{}` in the list, without spaces and with a decimal point", text.trim())
        }
        None => "write numbers such as `1200.50` in the list, without spaces and with a decimal point".to_owned(),
    };
    let mut filters = String::new();
    if text.contains(' ') {
        filters += " | replace(from=\" \", to=\"\")";
    }
    if text.contains(',') && text.contains('.') {
        let thousands = if text.rfind(',') < text.rfind('.') { ',' } else { '.' };
        filters += &format!(" | replace(from=\"{thousands}\", to=\"\")");
    }
    if text.contains(',') && text.rfind(',') > text.rfind('.') {
        filters += " | replace(from=\",\", to=\".\")";
    }
    format!("{in_list}; or, if all cells use this format, write `{written}{filters} | float`")
}

/// A number in plain digits, if its decimal separator is certain.
fn to_plain_number(text: &str) -> Option<String> {
    let mut plain: String = text.chars().filter(|c| !c.is_whitespace() && *c != '\'').collect();
    let (commas, points) = (plain.matches(',').count(), plain.matches('.').count());
    match (commas, points) {
        (_, 1) if commas > 0 && plain.rfind(',') < plain.rfind('.') => plain = plain.replace(',', ""),
        (1, _) if points > 0 => plain = plain.replace('.', "").replace(',', "."),
        (1, 0) => {
            // `1,250` may be a fraction, or a thousand and more.
            let fraction = plain.len() - plain.find(',')? - 1;
            if fraction == 3 {
                return None;
            }
            plain = plain.replace(',', ".");
        }
        (0, 0 | 1) => {}
        _ => return None,
    }
    plain.parse::<f64>().ok().filter(|number| number.is_finite()).map(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_shown_in_plain_digits_if_certain() {
        for (text, plain) in [
            ("1 250,50", Some("1250.50")),
            ("90,00", Some("90.00")),
            ("2 000", Some("2000")),
            ("1\u{a0}250,5", Some("1250.5")),
            ("1,250.50", Some("1250.50")),
            ("1.250,50", Some("1250.50")),
            ("1'250.50", Some("1250.50")),
            ("-5,5", Some("-5.5")),
            ("1,250", None),
            ("1,250,000", None),
            ("1.2.3", None),
            (",", None),
            ("1 - 2", None),
        ] {
            assert_eq!(to_plain_number(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn number_as_long_as_a_phone_number_is_not_shown() {
        let help = suggest_plain_digits("38 050 123 45 67", "code");
        assert!(help.contains("`1200.50`") && !help.contains("123"), "{help}");
        let help = suggest_plain_digits("1 250,50", "sum");
        assert!(help.starts_with("write `1250.50` instead of `1 250,50` in the list"), "{help}");
        assert!(
            help.contains("`sum | replace(from=\" \", to=\"\") | replace(from=\",\", to=\".\") | float`"),
            "{help}"
        );
    }
}
