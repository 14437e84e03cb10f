//! Explanations, with a remedy, for texts that cannot be rendered for a row.
//!
//! Tera's own messages are written for programmers, and some quote cell contents. These explanations name the column,
//! never the contents.

mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use tera::ErrorKind;

use super::engine::{MAX_BYTES, NO_AMOUNT, NO_DATE, OWN_MESSAGES, to_iso_date};
use super::tokens::{TemplateToken, TokenKind};
use place::{FailurePlace, FailureSubject};

/// A reason, and a remedy if one is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RenderFailure {
    pub(super) reason: String,
    /// The remedy.
    pub(super) help: Option<String>,
}

impl RenderFailure {
    fn new(reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self { reason: reason.into(), help: Some(help.into()) }
    }

    fn without_help(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), help: None }
    }
}

/// The explanation of a tera error at these bytes of a text, and the bytes of the whole expression. `is_column` says
/// whether a name is a column of the list.
pub(super) fn explain_failure(
    kind: &ErrorKind,
    source: &str,
    span: Range<usize>,
    is_column: &dyn Fn(&str) -> bool,
) -> (RenderFailure, Range<usize>) {
    let message = match kind {
        ErrorKind::Io(_) => {
            return (RenderFailure::without_help(format!("the message is longer than {MAX_BYTES} bytes")), span);
        }
        ErrorKind::RenderingError(report) | ErrorKind::SyntaxError(report) => report.message().to_owned(),
        other => other.to_string(),
    };
    let place = FailurePlace::new(source, span, is_column);
    (place.explain_message(&message), place.span)
}

/// The words in the first and in the second pair of backticks.
fn quoted_words(message: &str) -> [&str; 2] {
    let mut pieces = message.split('`');
    [pieces.nth(1).unwrap_or(""), pieces.nth(1).unwrap_or("")]
}

/// The name of a tera type in plain words.
fn describe_type(type_name: &str) -> &'static str {
    match type_name {
        "string" | "&str" => "text",
        "i64" | "u64" | "i128" | "u128" | "usize" | "i32" | "u32" => "a whole number",
        "f64" | "f32" | "Number" => "a number",
        "bool" => "true or false",
        "array" | "&[Value]" | "Vec<Value>" => "a list",
        "map/struct" | "Map" => "a map",
        "undefined" | "none" => "nothing",
        _ => "a value of another type",
    }
}

fn is_number_type(type_name: &str) -> bool {
    matches!(describe_type(type_name), "a whole number" | "a number")
}

impl<'s> FailurePlace<'s> {
    fn explain_message(&self, message: &str) -> RenderFailure {
        let [first, second] = quoted_words(message);
        let starts = |prefix: &str| message.starts_with(prefix);
        match message {
            _ if starts("Cannot compare ") => self.explain_comparison(first, second),
            _ if starts("Math operations can only") => self.explain_arithmetic(first),
            _ if starts("`+` requires both") => self.explain_sum(message),
            _ if starts("Cannot divide by 0") => self.explain_division(),
            _ if starts("Only numbers can be negated") => self.explain_negation(first),
            _ if starts("The string `") => self.explain_number(message),
            _ if starts(NO_AMOUNT) => self.explain_amount(&message[NO_AMOUNT.len()..]),
            _ if starts(NO_DATE) => self.explain_date(&message[NO_DATE.len()..]),
            _ if starts("The float ") => self.explain_fraction(),
            _ if starts("Value of type ") && message.contains("cannot be converted") => {
                self.explain_not_a_number(message)
            }
            _ if starts("Invalid type for the value") => self.explain_wrong_type(first, second),
            _ if starts("Missing keyword argument") => self.explain_missing_argument(first),
            _ if starts("pluralize filter requires an integer") => {
                self.explain_unsuitable_value("pluralize", "a whole number", first, "int")
            }
            _ if starts("This filter can only be used on a number") => {
                self.explain_unsuitable_value("abs", "a number", first, "float")
            }
            _ if starts("Iteration not possible") => self.explain_loop(first),
            _ if starts("Key/value iteration") => {
                let FailureSubject { title, .. } = self.find_subject();
                RenderFailure::new(
                    format!("a loop over keys and values needs a map, but {title} is {}", describe_type(first)),
                    "use one variable, as in `{% for item in items %}`",
                )
            }
            _ if starts("`in` cannot be used") => {
                let container = message.split("type `").nth(1).and_then(|rest| rest.split('`').next()).unwrap_or("");
                RenderFailure::new(
                    format!(
                        "`in` searches a list or text, but {} is {}",
                        self.find_subject().title,
                        describe_type(container)
                    ),
                    "write a list after `in`, as in `city in [\"Kyiv\", \"Lviv\"]`",
                )
            }
            _ if starts("Field `")
                || starts("Variable `")
                || starts("Tried to render a variable")
                || starts("Cannot index into an undefined")
                || starts("Cannot slice an undefined")
                || starts("Index expression is undefined") =>
            {
                self.explain_undefined(message)
            }
            _ if starts("Array index must be") || starts("String index must be") || starts("Slice ") => {
                RenderFailure::new(
                    format!(
                        "`{}` is {}, but a position in a list or text must be a whole number",
                        self.source_text(),
                        describe_type(first)
                    ),
                    format!("write `{} | int`; the first position is 0", self.source_text()),
                )
            }
            _ if starts("Slicing can only") => RenderFailure::new(
                format!(
                    "`[…]` selects parts of a list or text, but {} is {}",
                    self.find_subject().title,
                    describe_type(first)
                ),
                format!("write `({} | str)[…]`", self.source_text()),
            ),
            _ if starts("Slicing step") => RenderFailure::new(
                "the step, which is the third number between `[` and `]`, is 0",
                "use a different step",
            ),
            _ if message.contains(" has no length") || message.contains(" cannot be reversed") => RenderFailure::new(
                format!("the filter `{}` needs text or a list", self.own_filter.unwrap_or("length")),
                format!("write `{} | str | {}`", self.find_subject().source, self.own_filter.unwrap_or("length")),
            ),
            _ if message.contains("is a float; cannot") => RenderFailure::new(
                format!("{} has decimal places, but the test needs a whole number", self.find_subject().title),
                format!("write `{} | round`", self.find_subject().source),
            ),
            _ if starts("Map does not have a key") => RenderFailure::new(
                "the map does not contain the key used in this row",
                "write `get(key=…, default=\"…\")`",
            ),
            _ if starts("Map keys must be") || starts("Not a valid key") => RenderFailure::new(
                "a list or a decimal number cannot be a map key",
                "use text or a whole number as the key",
            ),
            _ if starts("Cannot sort") => RenderFailure::new(
                "a list that mixes text and numbers cannot be sorted",
                "convert all items to text, or all of them to numbers",
            ),
            _ if message.contains("does not have an attribute") => RenderFailure::new(
                format!(
                    "an item in the list does not have the attribute that `{}` needs",
                    self.own_filter.unwrap_or("sort")
                ),
                "remove `attribute`, or use an attribute that every item has",
            ),
            _ if starts("Invalid argument for `method`") => RenderFailure::new(
                "unknown `method` for `round`",
                "write `\"ceil\"` or `\"floor\"`, or remove `method`",
            ),
            _ if starts("int filter `base`") => {
                RenderFailure::new("the `base` of `int` must be a number from 2 to 36", "remove `base`")
            }
            _ if starts("Unable to perform")
                || starts("Operand ")
                || starts("Exponent ")
                || starts("Cannot negate ")
                || starts("Number `") =>
            {
                RenderFailure::new("the result of a calculation is too large", "check the numbers in the row")
            }
            _ if starts("Value `") && message.contains("is not a container") => RenderFailure::new(
                format!("{} is a number, but `containing` searches text or a list", self.find_subject().title),
                format!("write `{} | str is containing(pat=…)`", self.find_subject().source),
            ),
            _ if starts("Value `") => RenderFailure::new(
                match self.own_filter {
                    Some(filter) => format!("a number passed to `{filter}` is negative or too large"),
                    None => "a number passed to the filter is negative or too large".to_owned(),
                },
                "write a smaller, non-negative number",
            ),
            _ if starts("super() called") || starts("Tried to use super()") => {
                RenderFailure::new("`super()` has no parent block", "remove `super()`")
            }
            // Messages written by the author of the template or by this program.
            _ if self.source_text().starts_with("throw")
                || OWN_MESSAGES.iter().any(|prefix| message.starts_with(prefix)) =>
            {
                RenderFailure::without_help(message.trim_end_matches('.'))
            }
            _ => RenderFailure::new(
                "this part of the template fails for this row",
                "check the cells that the template uses",
            ),
        }
    }

    fn explain_comparison(&self, left_kind: &str, right_kind: &str) -> RenderFailure {
        let Some((left, operator, right)) = self.split_operands(&["<", ">", "<=", ">="]) else {
            return RenderFailure::new(
                format!("cannot compare {} with {}", describe_type(left_kind), describe_type(right_kind)),
                "compare values of the same type; `| int` converts a cell to a whole number",
            );
        };
        let (text, other) = match (left_kind, right_kind) {
            ("string", other) if is_number_type(other) => (&left, other),
            (other, "string") if is_number_type(other) => (&right, other),
            _ => {
                let [left_title, right_title] = [&left, &right].map(|side| side.find_subject().title);
                return RenderFailure::new(
                    format!(
                        "cannot compare {left_title}, which is {}, with {right_title}, which is {}",
                        describe_type(left_kind),
                        describe_type(right_kind)
                    ),
                    "compare values of the same type; `| int` converts a cell to a whole number",
                );
            }
        };
        let is_left = left_kind == "string";
        let other = if other == "f64" {
            other
        } else if is_left {
            right.source_text()
        } else {
            left.source_text()
        };
        let (first, second) = match is_left {
            true => (left.suggest_number(other), right.source_text().to_owned()),
            false => (left.source_text().to_owned(), right.suggest_number(other)),
        };
        RenderFailure::new(
            format!("{} is text but is compared with a number", text.find_subject().title),
            format!("write `{first} {operator} {second}`"),
        )
    }

    fn explain_arithmetic(&self, kind: &str) -> RenderFailure {
        let FailureSubject { title, .. } = self.find_subject();
        match kind {
            "undefined" | "none" => self.explain_undefined(""),
            "string" => RenderFailure::new(
                format!("{title} is text, but arithmetic needs numbers"),
                match self.inner_tokens() {
                    [TemplateToken { kind: TokenKind::Text(_), .. }] => format!("write `{}`", self.suggest_number("")),
                    _ => format!("write `{0} | int`, or `{0} | float` for decimal numbers", self.source_text()),
                },
            ),
            other => RenderFailure::new(
                format!("{title} is {}, but arithmetic needs numbers", describe_type(other)),
                "convert the value to a number first, as in `price | float`",
            ),
        }
    }

    fn explain_sum(&self, message: &str) -> RenderFailure {
        let operand_kinds = message.split("found ").nth(1).unwrap_or("");
        let [left_kind, right_kind] = quoted_words(operand_kinds);
        let Some((left, _, right)) = self.split_operands(&["+"]) else {
            return RenderFailure::new(
                "`+` adds numbers, but does not join text",
                "use `~` to join text, or `| int` to convert cells to numbers",
            );
        };
        let (left_source, right_source) = (left.source_text(), right.source_text());
        let is_quoted = |source: &str| source.starts_with(['"', '\'']);
        if [left_source, right_source].contains(&"today") {
            return RenderFailure::new("`+` adds numbers, but `today` is a date", NO_CALCULATION_WITH_DATES);
        }
        if is_quoted(left_source) || is_quoted(right_source) {
            return RenderFailure::new(
                "`+` adds numbers, but does not join text",
                format!("write `{left_source} ~ {right_source}` to join text"),
            );
        }
        let text = if is_number_type(left_kind) { &right } else { &left };
        let text_kind = if is_number_type(left_kind) { right_kind } else { left_kind };
        let numeric_source = |side: &FailurePlace<'_>, kind: &str, other: &str| match is_number_type(kind) {
            true => side.source_text().to_owned(),
            false => side.suggest_number(other),
        };
        let added = format!(
            "{} + {}",
            numeric_source(&left, left_kind, right.source_text()),
            numeric_source(&right, right_kind, left.source_text())
        );
        RenderFailure::new(
            format!("`+` adds numbers, but {} is {}", text.find_subject().title, describe_type(text_kind)),
            format!("write `{added}` to add numbers, or `{left_source} ~ {right_source}` to join text"),
        )
    }

    fn explain_division(&self) -> RenderFailure {
        let divisor = self.source_text();
        RenderFailure::new(
            format!("division by zero: `{divisor}` is 0"),
            format!("put the division between `{{% if {divisor} != 0 %}}` and `{{% endif %}}`"),
        )
    }

    fn explain_negation(&self, kind: &str) -> RenderFailure {
        let FailureSubject { title, source } = self.find_subject();
        RenderFailure::new(
            format!("{title} is {}, but `-` needs a number", describe_type(kind)),
            format!("write `0 - ({source} | int)`"),
        )
    }

    fn explain_wrong_type(&self, expected: &str, actual: &str) -> RenderFailure {
        let name = self.next_filter().unwrap_or("it");
        let is_test = super::engine::TESTS.contains(&name) && !super::engine::FILTERS.contains(&name);
        let kind = if is_test { "test" } else { "filter" };
        match expected {
            "usize" | "i32" | "u32" | "i64" | "i128" | "bool" => {
                return RenderFailure::new(
                    format!(
                        "an argument to the {kind} `{name}` is {}, but must be {}",
                        describe_type(actual),
                        describe_type(expected)
                    ),
                    "remove the quotes around numbers, as in `truncate(length=20)`",
                );
            }
            _ if matches!(actual, "undefined" | "none") => return self.explain_undefined(""),
            _ => {}
        }
        let operator = if is_test { "is" } else { "|" };
        let source = self.source_text();
        let help = match describe_type(expected) {
            "a number" => format!("write `{source} | float {operator} {name}`"),
            "a list" => format!("write `{source} | split(pat=\",\") {operator} {name}`"),
            "text" => format!("write `{source} | str {operator} {name}`"),
            _ => format!("remove `{operator} {name}`"),
        };
        RenderFailure::new(
            format!(
                "the {kind} `{name}` needs {}, but {} is {}",
                describe_type(expected),
                self.find_subject().title,
                describe_type(actual)
            ),
            help,
        )
    }

    fn explain_missing_argument(&self, argument: &str) -> RenderFailure {
        let function = self.inner_tokens().first().and_then(|token| match token.kind {
            TokenKind::Name(name) => Some(name),
            _ => None,
        });
        let name = self.own_filter.or(function).unwrap_or("it");
        RenderFailure::new(format!("`{name}` needs `{argument}`"), format!("write `{name}({argument}=…)`"))
    }

    fn explain_unsuitable_value(&self, filter: &str, needed: &str, kind: &str, with: &str) -> RenderFailure {
        if matches!(kind, "undefined" | "none") {
            return self.explain_undefined("");
        }
        let FailureSubject { title, source } = self.find_subject();
        RenderFailure::new(
            format!("the filter `{filter}` needs {needed}, but {title} is {}", describe_type(kind)),
            format!("write `{source} | {with} | {filter}`"),
        )
    }

    fn explain_loop(&self, kind: &str) -> RenderFailure {
        let FailureSubject { title, .. } = self.find_subject();
        RenderFailure::new(
            format!("a loop needs a list, but {title} is {}", describe_type(kind)),
            "split a cell into a list with `split`, as in `{% for item in items | split(pat=\",\") %}`",
        )
    }

    fn explain_undefined(&self, message: &str) -> RenderFailure {
        let source = match (self.source_text(), quoted_words(message)[0]) {
            (source, name) if !name.is_empty() && !source.contains(name) && !source.contains('[') => name,
            ("", name) => name,
            (source, _) => source,
        };
        let closed = if source.matches('[').count() > source.matches(']').count() {
            format!("{source}]")
        } else {
            source.to_owned()
        };
        let source = closed.as_str();
        // A key lookup in a table fails if the table has no row for the key.
        let key = source.trim_end_matches(']');
        let is_lookup = key.split_once('[').is_some_and(|(_, key)| key.trim().parse::<i64>().is_err());
        if is_lookup && !source.starts_with("recipient") {
            return RenderFailure::new(
                format!("`{key}]` has no value because the table has no row for this key"),
                "add the row to the table",
            );
        }
        let reason = if key.contains('[') && !is_lookup { "; the list has fewer items" } else { "" };
        RenderFailure::new(
            format!("`{source}` has no value in this row{reason}"),
            format!(
                "write `{source} | default(value=\"…\")`, or use `{{% if {source} is defined %}}` to test whether the value exists"
            ),
        )
    }
}

/// The remedy for a calculation with a date.
const NO_CALCULATION_WITH_DATES: &str =
    "templates cannot calculate with dates; put the date that you need in a column of the list or in `vars`";

impl FailurePlace<'_> {
    /// Explains why `int` or `float` cannot read a cell, without quoting the cell.
    fn explain_number(&self, message: &str) -> RenderFailure {
        let text = message.trim_start_matches("The string `").split("` cannot be").next().unwrap_or("");
        let FailureSubject { title, source } = self.find_subject();
        let filter = self.own_filter.filter(|name| ["int", "float"].contains(name)).unwrap_or("int");
        let is_plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
        let is_grouped =
            text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | '\'') || c.is_whitespace());
        match text {
            "" => RenderFailure::new(
                format!("{title} is empty and cannot be converted to a number"),
                format!(
                    "write `{source} | default(value=0, boolean=true) | {filter}`, or put this part of the message \
                        between `{{% if {source} %}}` and `{{% endif %}}`"
                ),
            ),
            _ if to_iso_date(text).is_some() => {
                RenderFailure::new(format!("{title} is a date, not a number"), NO_CALCULATION_WITH_DATES)
            }
            _ if is_plain && filter == "int" => self.explain_fraction(),
            _ if is_grouped => RenderFailure::new(
                format!("{title} contains a number with a comma or spaces"),
                suggest_plain_digits(text, source),
            ),
            _ => RenderFailure::new(
                format!("{title} is not a number"),
                format!("correct the cell in the list, or remove `| {filter}` to keep the value as text"),
            ),
        }
    }

    fn explain_amount(&self, reason: &str) -> RenderFailure {
        let FailureSubject { title, source } = self.find_subject();
        match reason {
            "empty" => RenderFailure::new(
                format!("{title} is empty and cannot be shown as an amount"),
                format!(
                    "write `{source} | default(value=0, boolean=true) | money`, or put this part of the message \
                        between `{{% if {source} %}}` and `{{% endif %}}`"
                ),
            ),
            "unclear" => RenderFailure::new(
                format!("{title} has a comma or point that could be either a thousands or a decimal separator"),
                "write the amount in the list as `1200.50` or `1200`",
            ),
            _ => RenderFailure::new(
                format!("{title} is not an amount"),
                "in the list, write only the amount, for example `1200.50`, and put the currency in the message",
            ),
        }
    }

    /// Whether the text is a condition of the campaign, as `enclose_condition` encloses it.
    fn is_condition(&self) -> bool {
        self.source.starts_with("{% if ") && self.source.ends_with(" %}{% endif %}")
    }

    fn explain_date(&self, reason: &str) -> RenderFailure {
        let FailureSubject { title, source } = self.find_subject();
        match reason {
            "empty" => RenderFailure::new(
                format!("{title} is empty and cannot be shown as a date"),
                match self.is_condition() {
                    true => format!("write `{source} != '' and …` before this comparison"),
                    false => format!("put this part of the message between `{{% if {source} %}}` and `{{% endif %}}`"),
                },
            ),
            "format" => RenderFailure::new(
                "the `format` of the `date` filter is not valid",
                "write, for example, `format=\"%d.%m.%Y\"`",
            ),
            _ => RenderFailure::new(
                format!("{title} is not a valid date"),
                "write dates in the list as `2026-12-05` or `05.12.2026`",
            ),
        }
    }

    fn explain_fraction(&self) -> RenderFailure {
        let FailureSubject { title, source } = self.find_subject();
        RenderFailure::new(
            format!("{title} is not a whole number"),
            format!("write `{source} | float`, or `{source} | float | round` for a whole number"),
        )
    }

    fn explain_not_a_number(&self, message: &str) -> RenderFailure {
        let kind = message.trim_start_matches("Value of type ").split(' ').next().unwrap_or("");
        match kind {
            "undefined" | "none" => self.explain_undefined(""),
            kind => RenderFailure::new(
                format!("{} is {}, which is not a number", self.find_subject().title, describe_type(kind)),
                "use `| int` and `| float` only on cells and numbers",
            ),
        }
    }
}

/// The remedy for a number with commas or spaces. Numbers as long as a phone number are not quoted.
fn suggest_plain_digits(text: &str, source: &str) -> String {
    const MAX_SHOWN_DIGITS: usize = 8;
    let is_short = text.chars().filter(char::is_ascii_digit).count() <= MAX_SHOWN_DIGITS;
    let in_list = match to_plain_number(text).filter(|_| is_short) {
        Some(plain) => {
            format!("write `{plain}` instead of `{}` in the list, without spaces and with a decimal point", text.trim())
        }
        None => "write numbers such as `1200.50` in the list, without spaces and with a decimal point".to_owned(),
    };
    let mut filters = String::new();
    let spaces: BTreeSet<char> = text.trim().chars().filter(|c| c.is_whitespace()).collect();
    for space in &spaces {
        filters += &format!(" | replace(from=\"{space}\", to=\"\")");
    }
    let (commas, points) = (text.matches(',').count(), text.matches('.').count());
    let (remove_commas, to_points) = (" | replace(from=\",\", to=\"\")", " | replace(from=\",\", to=\".\")");
    if commas == 1 && points == 0 && to_plain_number(text).is_none() {
        // `1,250` can mean 1.25 or 1250.
        return format!(
            "{in_list}; or, if all cells use this format, write `{source}{filters}{remove_commas} | float` if the comma \
             separates thousands, and `{source}{filters}{to_points} | float` if it separates decimals"
        );
    }
    if commas > 1 || commas == 1 && text.rfind(',') < text.rfind('.') {
        filters += remove_commas;
    }
    if points > 0 && text.rfind(',') > text.rfind('.') {
        filters += " | replace(from=\".\", to=\"\")";
    }
    if commas == 1 && text.rfind(',') > text.rfind('.') {
        filters += to_points;
    }
    format!("{in_list}; or, if all cells use this format, write `{source}{filters} | float`")
}

/// A number in plain digits, if its decimal separator is unambiguous.
fn to_plain_number(text: &str) -> Option<String> {
    let mut plain: String = text.chars().filter(|c| !c.is_whitespace() && *c != '\'').collect();
    let (commas, points) = (plain.matches(',').count(), plain.matches('.').count());
    match (commas, points) {
        (_, 1) if commas > 0 && plain.rfind(',') < plain.rfind('.') => plain = plain.replace(',', ""),
        (1, _) if points > 0 => plain = plain.replace('.', "").replace(',', "."),
        (1, 0) => {
            // `1,250` can mean 1.25 or 1250.
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
mod numbers_tests {
    use super::*;

    #[test]
    fn number_is_shown_in_plain_digits_if_unambiguous() {
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

    #[test]
    fn comma_that_can_separate_thousands_has_two_remedies() {
        let help = suggest_plain_digits("1,200", "points");
        let (thousands, decimals) =
            ("`points | replace(from=\",\", to=\"\") | float` if the comma", "from=\",\", to=\".\") | float` if it");
        assert!(help.contains(thousands) && help.contains(decimals), "{help}");
        assert!(
            suggest_plain_digits("1,200,300", "points").ends_with("`points | replace(from=\",\", to=\"\") | float`")
        );
        assert!(
            suggest_plain_digits("1.200,30", "points")
                .ends_with("from=\".\", to=\"\") | replace(from=\",\", to=\".\") | float`")
        );
    }
}
