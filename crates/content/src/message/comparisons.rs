//! Conditions that test a cell or compare it with a literal.
//!
//! Tera does not expose its syntax tree, so this module parses expressions from their tokens. The parser follows Tera's
//! operator precedence, and distinguishes only cells, text literals, numbers and booleans.

use std::ops::Range;

use super::engine::{is_iso_date, to_iso_date};
use super::tokens::{TemplateToken, TokenKind, tokenize};
use campaign_core::domain::NamedTemplate;

/// The maximum nesting of an expression.
const MAX_DEPTH: usize = 64;
/// Filters that return text for a cell.
const TEXT_FILTERS: [&str; 11] =
    ["capitalize", "lower", "replace", "safe", "str", "title", "trim", "trim_end", "trim_start", "truncate", "upper"];
/// Filters that return a number for a cell.
const NUMBER_FILTERS: [&str; 5] = ["abs", "float", "int", "length", "wordcount"];

/// The kind of a condition on a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// Tests whether the cell has a value: `{% if vip %}`.
    IsTruthy,
    /// Compares the cell with this text: `{% if plan == "gold" %}`.
    IsText(String),
    /// Compares the cell with `true` or `false` without quotes, which no cell equals.
    IsBool {
        /// The value.
        word: bool,
        /// The corrected text of the comparison, in which the value is text.
        corrected: String,
    },
    /// Compares the cell with a number without quotes, which no cell equals.
    IsNumber {
        /// The corrected text of the comparison, in which the cell is converted to a number.
        corrected: String,
        /// Whether the operator is `<`, `<=`, `>` or `>=`, which fails for text.
        is_ordered: bool,
    },
    /// Orders the cell as text, although the other text is a number or a date, so `9` comes after `100`.
    IsOrderedText {
        /// The corrected text of the comparison.
        corrected: String,
    },
    /// Compares the cell with `today` or another date of the form `2026-12-05`, so it needs a cell of the same form.
    IsDate {
        /// The text of the comparison in which a cell of any other form is converted to this form.
        corrected: String,
    },
}

/// A column in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnName {
    /// A bare name: `points`. The name can also have another meaning.
    Variable(String),
    /// A header: `recipient["Points"]` or `recipient.Points`.
    Header(String),
}

/// A condition on a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionCheck {
    /// The cell as the source writes it, with the filters that change its text.
    pub name: String,
    /// The column of the cell.
    pub column: ColumnName,
    /// The kind of the check.
    pub kind: ConditionKind,
    /// The byte range in the source.
    pub span: Range<usize>,
}

/// A text that tests a condition, such as that of `recipients.where`.
pub fn enclose_condition(condition: &NamedTemplate) -> NamedTemplate {
    NamedTemplate { name: condition.name.clone(), source: format!("{{% if {} %}}{{% endif %}}", condition.source) }
}

/// The conditions in a text that test a cell.
pub fn find_condition_checks(text: &NamedTemplate) -> Vec<ConditionCheck> {
    let tokens = tokenize(&text.source);
    let mut checks = Vec::new();
    for tag in tokens.split_inclusive(|token| matches!(token.kind, TokenKind::End { .. })) {
        let [start, expression @ .., _] = tag else { continue };
        let (expression, is_condition) = match (&start.kind, expression) {
            (TokenKind::Print, expression) => (expression, false),
            (TokenKind::Tag, [TemplateToken { kind: TokenKind::Name("if" | "elif"), .. }, condition @ ..]) => {
                (condition, true)
            }
            (TokenKind::Tag, [TemplateToken { kind: TokenKind::Name("set"), .. }, _, _, value @ ..]) => (value, false),
            _ => continue,
        };
        checks.extend(ExpressionParser::new(expression, &text.source).find_checks(is_condition));
    }
    checks
}

/// The checks of cells in the expression of a condition.
pub(super) fn find_checks_in_condition(condition: &[TemplateToken<'_>], source: &str) -> Vec<ConditionCheck> {
    ExpressionParser::new(condition, source).find_checks(true)
}

/// The comparisons of a cell with a number by `<`, `<=`, `>` or `>=`, which always fail because no cell is a number.
pub fn find_number_comparisons(text: &NamedTemplate) -> Vec<ConditionCheck> {
    let is_ordered = |check: &ConditionCheck| matches!(check.kind, ConditionKind::IsNumber { is_ordered: true, .. });
    find_condition_checks(text).into_iter().filter(is_ordered).collect()
}

/// The remedy for a cell whose comparison needs a conversion. `corrected` is the correct comparison.
pub fn suggest_conversion(name: &str, corrected: &str) -> String {
    format!("write `{corrected}`, or `{name} != '' and {corrected}` if some cells are empty")
}

/// The result of an expression.
struct ParsedValue {
    kind: ValueKind,
    /// The byte range in the source, without parentheses around it.
    span: Range<usize>,
}

enum ValueKind {
    Cell(ColumnName),
    /// A text that filters produce from a cell.
    CellText(ColumnName),
    /// A date of a cell in a format whose order is not that of the dates.
    FormattedDate(ColumnName),
    /// An amount of a cell as recipients see it.
    FormattedAmount(ColumnName),
    /// A text that `~` joins from a cell and another value.
    JoinedText(ColumnName),
    /// Texts that are parts of a cell.
    CellParts(ColumnName),
    Text(String),
    Number,
    Bool(bool),
    List(Vec<ParsedValue>),
    Unknown,
}

impl ParsedValue {
    /// The column of a text that consists of a cell or was made from one.
    fn text_column(&self) -> Option<&ColumnName> {
        match &self.kind {
            ValueKind::Cell(column)
            | ValueKind::CellText(column)
            | ValueKind::FormattedDate(column)
            | ValueKind::FormattedAmount(column)
            | ValueKind::JoinedText(column) => Some(column),
            _ => None,
        }
    }
}

/// Whether a text is a number without leading zeros. A code such as `0042` can be ordered as text.
fn is_plain_number(text: &str) -> bool {
    let digits = text.trim().trim_start_matches('-');
    let (whole, fraction) = digits.split_once(['.', ',']).unwrap_or((digits, "0"));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole) && are_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

/// An operator between two values, with its binding powers on the left and on the right.
struct BinaryOperator<'s> {
    symbol: &'s str,
    powers: (u8, u8),
    /// The number of tokens of the operator.
    tokens: usize,
}

/// The binding power of `not`.
const NOT_POWER: u8 = 5;
/// The binding power of the unary minus.
const MINUS_POWER: u8 = 20;

struct ExpressionParser<'t, 's> {
    tokens: &'t [TemplateToken<'s>],
    at: usize,
    source: &'s str,
    depth: usize,
    /// Whether the parser is inside a condition.
    in_condition: bool,
    checks: Vec<ConditionCheck>,
    /// The columns in the expression, once for each use.
    uses: Vec<ColumnName>,
}

impl<'t, 's> ExpressionParser<'t, 's> {
    fn new(tokens: &'t [TemplateToken<'s>], source: &'s str) -> Self {
        Self { tokens, at: 0, source, depth: 0, in_condition: false, checks: Vec::new(), uses: Vec::new() }
    }

    fn find_checks(mut self, is_condition: bool) -> Vec<ConditionCheck> {
        self.in_condition = is_condition;
        // If tera cannot parse the expression, tera reports the error. The checks found before the error are still
        // useful.
        if let Some(value) = self.parse_expression(0)
            && self.at == self.tokens.len()
        {
            self.record_truth_test(&value);
        }
        let Self { checks, uses, .. } = self;
        let use_count = |column: &ColumnName| uses.iter().filter(|used| *used == column).count();
        // An author who also converts the value, as in `points and points | int > 0`, knows that cells are text.
        let is_needed = |check: &ConditionCheck| check.kind != ConditionKind::IsTruthy || use_count(&check.column) == 1;
        checks.into_iter().filter(is_needed).collect()
    }

    fn peek(&self) -> Option<&'t TokenKind<'s>> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn skip_symbol(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), Some(TokenKind::Symbol(next)) if *next == symbol);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let is_next = matches!(self.peek(), Some(TokenKind::Name(next)) if *next == name);
        self.at += usize::from(is_next);
        is_next
    }

    /// The byte range from `start` to the end of the last token.
    fn span_from(&self, start: usize) -> Range<usize> {
        start..self.tokens[self.at - 1].span.end
    }

    /// Parses an expression whose operators bind at least as tightly as `power`. `None` if the syntax is wrong.
    fn parse_expression(&mut self, power: u8) -> Option<ParsedValue> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let value = self.parse_operators(power);
        self.depth -= 1;
        value
    }

    fn parse_operators(&mut self, power: u8) -> Option<ParsedValue> {
        let start = self.tokens.get(self.at)?.span.start;
        let mut value = self.parse_operand()?;
        loop {
            if self.skip_symbol("[") || self.skip_symbol("?[") {
                self.skip_brackets()?;
                let kind = match value.kind {
                    ValueKind::CellParts(column) => ValueKind::CellText(column),
                    _ => ValueKind::Unknown,
                };
                value = ParsedValue { kind, span: self.span_from(start) };
            } else if power == 0 && self.skip_name("if") {
                self.parse_ternary()?;
                return Some(ParsedValue { kind: ValueKind::Unknown, span: self.span_from(start) });
            } else if let Some(operator) = self.peek_operator().filter(|operator| operator.powers.0 >= power) {
                self.at += operator.tokens;
                let kind = match operator.symbol {
                    "|" => self.parse_filter(value.kind)?,
                    "is" => self.parse_test()?,
                    symbol => {
                        let right = self.parse_expression(operator.powers.1)?;
                        self.check_operation(&value, symbol, &right, &self.span_from(start))
                    }
                };
                value = ParsedValue { kind, span: self.span_from(start) };
            } else {
                return Some(value);
            }
        }
    }

    fn peek_operator(&self) -> Option<BinaryOperator<'s>> {
        let next_name = |name| matches!(self.tokens.get(self.at + 1), Some(next) if next.kind == TokenKind::Name(name));
        let (symbol, powers, tokens) = match self.peek()? {
            TokenKind::Name(name @ "or") => (*name, (1, 2), 1),
            TokenKind::Name(name @ "and") => (*name, (3, 4), 1),
            TokenKind::Name("not") if next_name("in") => ("not in", (5, 6), 2),
            TokenKind::Name(name @ "in") => (*name, (5, 6), 1),
            TokenKind::Name(name @ "is") => (*name, (5, 6), if next_name("not") { 2 } else { 1 }),
            TokenKind::Symbol(symbol) => {
                let powers = match *symbol {
                    "==" | "!=" | "<" | "<=" | ">" | ">=" => (7, 8),
                    "+" | "-" => (11, 12),
                    "*" | "/" | "%" | "//" | "~" => (13, 14),
                    "**" => (16, 15),
                    "|" => (17, 18),
                    _ => return None,
                };
                (*symbol, powers, 1)
            }
            _ => return None,
        };
        Some(BinaryOperator { symbol, powers, tokens })
    }

    fn parse_operand(&mut self) -> Option<ParsedValue> {
        let token = self.tokens.get(self.at)?;
        let start = token.span.start;
        self.at += 1;
        let kind = match &token.kind {
            TokenKind::Number => ValueKind::Number,
            TokenKind::Text(text) => ValueKind::Text(text.clone()),
            TokenKind::Name("true" | "True") => ValueKind::Bool(true),
            TokenKind::Name("false" | "False") => ValueKind::Bool(false),
            TokenKind::Name("none" | "None" | "null") => ValueKind::Unknown,
            TokenKind::Name("not") => {
                let value = self.parse_expression(NOT_POWER)?;
                self.record_truth_test(&value);
                ValueKind::Unknown
            }
            TokenKind::Name(name) => self.parse_name(name)?,
            TokenKind::Symbol("-") => match self.parse_expression(MINUS_POWER)?.kind {
                ValueKind::Number => ValueKind::Number,
                _ => ValueKind::Unknown,
            },
            TokenKind::Symbol("(") => {
                let value = self.parse_expression(0)?;
                return self.skip_symbol(")").then_some(value);
            }
            TokenKind::Symbol("[") => self.parse_list()?,
            TokenKind::Symbol("{") => {
                self.skip_brackets()?;
                ValueKind::Unknown
            }
            _ => return None,
        };
        Some(ParsedValue { kind, span: self.span_from(start) })
    }

    /// Parses the fields and calls that follow a name.
    fn parse_name(&mut self, name: &str) -> Option<ValueKind> {
        let mut kind = ValueKind::Cell(ColumnName::Variable(name.to_owned()));
        let mut is_recipient = name == "recipient";
        loop {
            let field = if self.skip_symbol(".") || self.skip_symbol("?.") {
                let Some(TokenKind::Name(field)) = self.peek() else { return None };
                self.at += 1;
                Some((*field).to_owned())
            } else if is_recipient && (self.skip_symbol("[") || self.skip_symbol("?[")) {
                match self.tokens.get(self.at..self.at + 2) {
                    Some(
                        [
                            TemplateToken { kind: TokenKind::Text(header), .. },
                            TemplateToken { kind: TokenKind::Symbol("]"), .. },
                        ],
                    ) => {
                        self.at += 2;
                        Some(header.clone())
                    }
                    _ => {
                        self.skip_brackets()?;
                        None
                    }
                }
            } else if self.skip_symbol("(") {
                self.skip_brackets()?;
                None
            } else {
                break;
            };
            kind = match field {
                Some(header) if is_recipient => ValueKind::Cell(ColumnName::Header(header)),
                _ => ValueKind::Unknown,
            };
            is_recipient = false;
        }
        if let ValueKind::Cell(column) = &kind {
            self.uses.push(column.clone());
        }
        Some(kind)
    }

    fn parse_list(&mut self) -> Option<ValueKind> {
        let mut items = Vec::new();
        while !self.skip_symbol("]") {
            items.push(self.parse_expression(0)?);
            if !self.skip_symbol(",") && !matches!(self.peek(), Some(TokenKind::Symbol("]"))) {
                return None;
            }
        }
        Some(ValueKind::List(items))
    }

    /// Skips the rest of an expression in brackets, and records the names in it.
    fn skip_brackets(&mut self) -> Option<()> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.peek()? {
                TokenKind::Symbol("(" | "[" | "?[" | "{") => depth += 1,
                TokenKind::Symbol(")" | "]" | "}") => depth -= 1,
                TokenKind::Name(name) => self.uses.push(ColumnName::Variable((*name).to_owned())),
                _ => {}
            }
            self.at += 1;
        }
        Some(())
    }

    /// Parses the rest of `value if condition else other`.
    fn parse_ternary(&mut self) -> Option<()> {
        let was_in_condition = std::mem::replace(&mut self.in_condition, true);
        let condition = self.parse_expression(0)?;
        self.record_truth_test(&condition);
        self.in_condition = was_in_condition;
        if !self.skip_name("else") {
            return None;
        }
        self.parse_expression(0).map(|_| ())
    }

    /// Parses a filter, and returns its result for a value of this kind.
    fn parse_filter(&mut self, value: ValueKind) -> Option<ValueKind> {
        let Some(TokenKind::Name(filter)) = self.peek() else { return None };
        self.at += 1;
        let arguments = self.at;
        if self.skip_symbol("(") {
            self.skip_brackets()?;
        }
        let has_argument =
            |name| self.tokens[arguments..self.at].iter().any(|token| token.kind == TokenKind::Name(name));
        Some(match value {
            _ if NUMBER_FILTERS.contains(filter) => ValueKind::Number,
            ValueKind::Cell(column) | ValueKind::CellText(column) if TEXT_FILTERS.contains(filter) => {
                ValueKind::CellText(column)
            }
            // A cell is always defined, so `default` can replace it only with `boolean`.
            ValueKind::Cell(column) | ValueKind::CellText(column)
                if *filter == "default" && !has_argument("boolean") =>
            {
                ValueKind::CellText(column)
            }
            ValueKind::Cell(column) | ValueKind::CellText(column) if *filter == "split" => ValueKind::CellParts(column),
            ValueKind::Cell(column) | ValueKind::CellText(column) if *filter == "money" => {
                ValueKind::FormattedAmount(column)
            }
            ValueKind::Cell(column) | ValueKind::CellText(column) if *filter == "date" => {
                // In these formats, dates have the same order as texts.
                let is_iso = |format: &str| ["%Y-%m-%d", "%F"].iter().any(|iso| format.starts_with(iso));
                let has_iso_format = self.tokens[arguments..self.at].iter().any(|token| match &token.kind {
                    TokenKind::Text(format) => is_iso(format),
                    _ => false,
                });
                match has_iso_format {
                    true => ValueKind::Unknown,
                    false => ValueKind::FormattedDate(column),
                }
            }
            ValueKind::CellParts(column) if matches!(*filter, "first" | "last" | "nth" | "join") => {
                ValueKind::CellText(column)
            }
            _ => ValueKind::Unknown,
        })
    }

    fn parse_test(&mut self) -> Option<ValueKind> {
        let Some(TokenKind::Name(_)) = self.peek() else { return None };
        self.at += 1;
        if self.skip_symbol("(") {
            self.skip_brackets()?;
        }
        Some(ValueKind::Unknown)
    }

    /// Checks an operation, and returns the kind of its result.
    fn check_operation(
        &mut self,
        left: &ParsedValue,
        symbol: &str,
        right: &ParsedValue,
        span: &Range<usize>,
    ) -> ValueKind {
        match symbol {
            "and" | "or" => {
                self.record_truth_test(left);
                self.record_truth_test(right);
                ValueKind::Unknown
            }
            "in" | "not in" => {
                self.check_membership(left, symbol, right, span);
                ValueKind::Unknown
            }
            "~" => match left.text_column().or_else(|| right.text_column()) {
                Some(column) => ValueKind::JoinedText(column.clone()),
                None => ValueKind::Unknown,
            },
            "==" | "!=" | "<" | "<=" | ">" | ">=" => {
                self.check_comparison(left, symbol, right, span);
                ValueKind::Unknown
            }
            _ => ValueKind::Number,
        }
    }

    /// Records the use of a value as a condition.
    fn record_truth_test(&mut self, value: &ParsedValue) {
        if let ValueKind::Cell(_) | ValueKind::CellText(_) = value.kind {
            self.record_check(value, ConditionKind::IsTruthy, &value.span);
        }
    }

    fn check_comparison(&mut self, left: &ParsedValue, symbol: &str, right: &ParsedValue, span: &Range<usize>) {
        let is_ordered = !matches!(symbol, "==" | "!=");
        for (cell, other) in [(left, right), (right, left)] {
            let correct = |cell_source: String, other_source: &str| match cell.span == left.span {
                true => format!("{cell_source} {symbol} {other_source}"),
                false => format!("{other_source} {symbol} {cell_source}"),
            };
            let as_date = || format!("{} | date(format=\"%Y-%m-%d\")", &self.source[cell.span.clone()]);
            let other_source = &self.source[other.span.clone()];
            let kind = match (&cell.kind, &other.kind) {
                (ValueKind::Cell(_) | ValueKind::CellText(_), ValueKind::Cell(ColumnName::Variable(name)))
                    if name == "today" =>
                {
                    ConditionKind::IsDate { corrected: correct(as_date(), other_source) }
                }
                (ValueKind::Cell(_) | ValueKind::CellText(_), ValueKind::Text(text)) if is_ordered => {
                    match to_iso_date(text) {
                        Some(_) if is_iso_date(text) => {
                            ConditionKind::IsDate { corrected: correct(as_date(), other_source) }
                        }
                        Some(date) => {
                            ConditionKind::IsOrderedText { corrected: correct(as_date(), &format!("\"{date}\"")) }
                        }
                        None if is_plain_number(text) => {
                            let number = text.trim().replace(',', ".");
                            let filter = if number.contains('.') { "float" } else { "int" };
                            let cell_source = format!("{} | {filter}", &self.source[cell.span.clone()]);
                            ConditionKind::IsOrderedText { corrected: correct(cell_source, &number) }
                        }
                        None => continue,
                    }
                }
                // Only a cell of the same form equals a date.
                (ValueKind::Cell(_), ValueKind::Text(text)) if is_iso_date(text) => {
                    ConditionKind::IsDate { corrected: correct(as_date(), other_source) }
                }
                (ValueKind::Cell(_), ValueKind::Text(text)) if !is_ordered => ConditionKind::IsText(text.clone()),
                (ValueKind::FormattedDate(_), _) if is_ordered => {
                    let date = format!("{} | date(format=\"%Y-%m-%d\")", self.source_before_filter(cell));
                    match &other.kind {
                        ValueKind::Text(text) if let Some(other) = to_iso_date(text) => {
                            ConditionKind::IsOrderedText { corrected: correct(date, &format!("\"{other}\"")) }
                        }
                        ValueKind::Cell(ColumnName::Variable(name)) if name == "today" => {
                            ConditionKind::IsOrderedText { corrected: correct(date, other_source) }
                        }
                        _ => continue,
                    }
                }
                (ValueKind::FormattedAmount(_), ValueKind::Text(text)) if is_ordered => {
                    let number: String = text.replace(',', ".").split_whitespace().collect();
                    if !is_plain_number(&number) {
                        continue;
                    }
                    let amount = format!("{} | float", self.source_before_filter(cell));
                    ConditionKind::IsOrderedText { corrected: correct(amount, &number) }
                }
                (_, ValueKind::Bool(word)) if !is_ordered => {
                    let cell_source = self.source[cell.span.clone()].to_owned();
                    ConditionKind::IsBool { word: *word, corrected: correct(cell_source, &format!("'{word}'")) }
                }
                (_, ValueKind::Number) => {
                    let corrected = correct(self.number_source(cell, other), other_source);
                    ConditionKind::IsNumber { corrected, is_ordered }
                }
                _ => continue,
            };
            self.record_check(cell, kind, span);
        }
    }

    /// Records the check if `cell in list` or `value in cell` involves a number or a boolean, which the text of a cell
    /// never equals.
    fn check_membership(&mut self, left: &ParsedValue, symbol: &str, right: &ParsedValue, span: &Range<usize>) {
        let (cell, values, is_list) = match &right.kind {
            ValueKind::List(items) => (left, items.as_slice(), true),
            ValueKind::Cell(_) | ValueKind::CellText(_) => (right, std::slice::from_ref(left), false),
            _ => return,
        };
        let Some(mistyped) = values.iter().find(|value| matches!(value.kind, ValueKind::Number | ValueKind::Bool(_)))
        else {
            return;
        };
        let kind = match mistyped.kind {
            ValueKind::Bool(word) => ConditionKind::IsBool { word, corrected: self.quote_values(values, span) },
            _ => {
                let are_numbers = values.iter().all(|value| matches!(value.kind, ValueKind::Number));
                let corrected = match is_list && are_numbers {
                    true => {
                        format!("{} {symbol} {}", self.number_source(cell, mistyped), &self.source[right.span.clone()])
                    }
                    false => self.quote_values(values, span),
                };
                ConditionKind::IsNumber { corrected, is_ordered: false }
            }
        };
        self.record_check(cell, kind, span);
    }

    /// The source of a cell that is converted to the same kind of number as `number`.
    fn number_source(&self, cell: &ParsedValue, number: &ParsedValue) -> String {
        let filter = if self.source[number.span.clone()].contains('.') { "float" } else { "int" };
        let source = &self.source[cell.span.clone()];
        match cell.kind {
            ValueKind::JoinedText(_) => format!("({source}) | {filter}"),
            _ => format!("{source} | {filter}"),
        }
    }

    /// The source of a value without its last filter.
    fn source_before_filter(&self, value: &ParsedValue) -> &str {
        let source = &self.source[value.span.clone()];
        source.rsplit_once('|').map_or(source, |(before, _)| before.trim_end())
    }

    /// The source in `span` with the numbers and booleans of `values` in quotes.
    fn quote_values(&self, values: &[ParsedValue], span: &Range<usize>) -> String {
        let (mut quoted, mut end) = (String::new(), span.start);
        for value in values.iter().filter(|value| matches!(value.kind, ValueKind::Number | ValueKind::Bool(_))) {
            quoted += &self.source[end..value.span.start];
            quoted += &format!("\"{}\"", &self.source[value.span.clone()]);
            end = value.span.end;
        }
        quoted + &self.source[end..span.end]
    }

    /// Records a check of a cell if the expression is a condition. Checks of other values are ignored.
    fn record_check(&mut self, cell: &ParsedValue, kind: ConditionKind, span: &Range<usize>) {
        let Some(column) = cell.text_column().filter(|_| self.in_condition) else { return };
        let name = self.source[cell.span.clone()].to_owned();
        self.checks.push(ConditionCheck { name, column: column.clone(), kind, span: span.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_checks(source: &str) -> Vec<ConditionCheck> {
        find_condition_checks(&NamedTemplate { name: "t".into(), source: source.into() })
    }

    fn list_check_kinds(source: &str) -> Vec<(String, ConditionKind)> {
        find_checks(source).into_iter().map(|check| (check.name, check.kind)).collect()
    }

    #[test]
    fn simple_condition_checks_are_found() {
        let is_truthy = |name: &str| (name.to_owned(), ConditionKind::IsTruthy);
        let is_text = |name: &str, text: &str| (name.to_owned(), ConditionKind::IsText(text.to_owned()));
        assert_eq!(
            list_check_kinds("{% if vip %}a{% elif not old and plan == \"gold\" %}b{% endif %}"),
            [is_truthy("vip"), is_truthy("old"), is_text("plan", "gold"),]
        );
        assert_eq!(
            list_check_kinds("{% if 'x' != a or b == true %}{% endif %}"),
            [
                is_text("a", "x"),
                ("b".to_owned(), ConditionKind::IsBool { word: true, corrected: "b == 'true'".to_owned() }),
            ]
        );
        for other in [
            "{{ a == 'x' }}",
            "{% if a | length > 3 %}",
            "{% if a.b %}",
            "{% if a is defined %}",
            "{% for a in b %}",
            "{% if a and a | int > 0 %}",
            "{% if a not in ['x'] and (b) in ['y', 'z'] %}",
            "{% if a | int in [1, 2] or 'x' in b %}",
            "{% if a | default(value=0, boolean=true) == 0 %}",
            "{% if tables[a].price > 5 or f(a) == 5 %}",
            "{% if a b %}",
        ] {
            assert_eq!(list_check_kinds(other), [], "{other}");
        }
    }

    #[test]
    fn comparison_with_another_type_is_found_in_any_form() {
        for (condition, name, corrected) in [
            ("pts != 12", "pts", "pts | int != 12"),
            ("12.5 <= pts", "pts", "12.5 <= pts | float"),
            ("recipient[\"pts\"] != 12", "recipient[\"pts\"]", "recipient[\"pts\"] | int != 12"),
            ("recipient.pts != 12", "recipient.pts", "recipient.pts | int != 12"),
            ("pts | trim != 12", "pts | trim", "pts | trim | int != 12"),
            ("pts | replace(from=\"(\", to=\"\") | lower < 12", "pts | replace(from=\"(\", to=\"\") | lower", ""),
            ("pts | split(pat=\",\") | first == 12", "pts | split(pat=\",\") | first", ""),
            ("pts != -1", "pts", "pts | int != -1"),
            ("(pts) != (12)", "pts", "pts | int != 12"),
            ("pts ~ '' == 1 + 2", "pts ~ ''", "(pts ~ '') | int == 1 + 2"),
            ("not pts in [12, 0]", "pts", "pts | int in [12, 0]"),
            ("pts not in [12, 0]", "pts", "pts | int not in [12, 0]"),
            ("pts in [12, \"x\"]", "pts", "pts in [\"12\", \"x\"]"),
            ("12 in pts", "pts", "\"12\" in pts"),
            ("a == 'x' and not (b == 'y' or (pts == 5))", "pts", "pts | int == 5"),
        ] {
            let found = find_checks(&format!("{{% if {condition} %}}{{% endif %}}"));
            let Some(ConditionCheck {
                name: found_name, kind: ConditionKind::IsNumber { corrected: found, .. }, ..
            }) = found.last()
            else {
                panic!("{condition}: {found:?}")
            };
            assert_eq!(found_name, name, "{condition}");
            assert!(found.contains(corrected), "{condition}: {found}");
        }
        for (condition, expected) in [
            ("vip != false", "vip != 'false'"),
            ("vip | lower != false", "vip | lower != 'false'"),
            ("not vip in [false]", "vip in [\"false\"]"),
            ("false == recipient['vip']", "'false' == recipient['vip']"),
        ] {
            let kinds: Vec<_> = list_check_kinds(&format!("{{{{ 'x' if {condition} else 'y' }}}}"));
            let [(_, ConditionKind::IsBool { word: false, corrected })] = kinds.as_slice() else {
                panic!("{condition}: {kinds:?}")
            };
            assert_eq!(corrected, expected, "{condition}");
        }
    }

    #[test]
    fn ordered_comparison_of_text_is_found_with_its_conversion() {
        let ordered = |corrected: &str| ConditionKind::IsOrderedText { corrected: corrected.to_owned() };
        let date = |corrected: &str| ConditionKind::IsDate { corrected: corrected.to_owned() };
        for (condition, kind) in [
            ("pts > '100'", ordered("pts | int > 100")),
            ("due | date >= today", ordered("due | date(format=\"%Y-%m-%d\") >= today")),
            (
                "due | trim | date(format='%d.%m.%Y') >= '15.11.2026'",
                ordered("due | trim | date(format=\"%Y-%m-%d\") >= \"2026-11-15\""),
            ),
            ("sum | money > '1 000,50'", ordered("sum | float > 1000.50")),
            ("'9,5' <= pts", ordered("9.5 <= pts | float")),
            ("day >= '01.12.2026'", ordered("day | date(format=\"%Y-%m-%d\") >= \"2026-12-01\"")),
            ("day > '2026-12-01'", date("day | date(format=\"%Y-%m-%d\") > '2026-12-01'")),
            ("day == today", date("day | date(format=\"%Y-%m-%d\") == today")),
            ("today < recipient['Day']", date("today < recipient['Day'] | date(format=\"%Y-%m-%d\")")),
        ] {
            let kinds: Vec<_> = list_check_kinds(&format!("{{% if {condition} %}}{{% endif %}}"));
            assert_eq!(kinds.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>(), [kind], "{condition}");
        }
        for fine in ["code > '0100'", "name < 'M'", "pts | int > 100", "day | date(format=\"%Y-%m-%d\") > today"] {
            assert_eq!(list_check_kinds(&format!("{{% if {fine} %}}{{% endif %}}")), [], "{fine}");
        }
    }

    #[test]
    fn deeply_nested_condition_does_not_exhaust_the_stack() {
        for nested in ["(", "[", "not (", "-("] {
            assert_eq!(list_check_kinds(&format!("{{% if {} a %}}", nested.repeat(100_000))), [], "{nested}");
        }
    }
}
