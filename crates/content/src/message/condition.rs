//! Conditions that select rows: one expression over the columns, `vars` and `data` tables of a campaign.

use std::borrow::Cow;

use tera::Context;

use super::TextProblem;
use super::comparisons::{ColumnName, ConditionCheck, ConditionKind, find_checks_in_condition, suggest_conversion};
use super::compile::{Compilation, shared_context};
use super::library::template_key;
use super::names::{NameMeaning, NameScope, TemplateNames};
use super::render::{RenderError, TemplateCells, fill_template, to_render_error_in};
use super::slips::SyntaxSlips;
use super::tokens::{TokenKind, tokenize};
use campaign_core::domain::{NamedTemplate, Row, compose_accents};
use campaign_core::finding::rules;

/// The delimiters that turn a condition into a tera expression.
const OPEN: &str = "{{ ";
const CLOSE: &str = " }}";

/// A compiled condition, which is true or false for each row.
pub struct Condition {
    compiled: Compilation,
    name: String,
    context: Context,
    cells: TemplateCells,
}

/// Evaluates a condition for many rows. It holds the cells of the last row.
pub struct RowFilter<'c> {
    condition: &'c Condition,
    context: Context,
    buffer: Vec<u8>,
}

/// Compiles an expression, and checks the names in it against the columns, vars and tables of the campaign.
///
/// # Errors
/// All problems of the expression, each at its location in the expression.
pub fn compile_condition(expression: &NamedTemplate, names: &TemplateNames) -> Result<Condition, Vec<TextProblem>> {
    // Cells are compared in composed form (NFC). If the composed expression does not compile, for example because a
    // header is in decomposed form, the expression is compiled as written.
    let source = compose_accents(&expression.source);
    if source != expression.source {
        let composed = NamedTemplate { name: expression.name.clone(), source: source.into_owned() };
        if let Ok(condition) = compile_source(&composed, names) {
            return Ok(condition);
        }
    }
    compile_source(expression, names)
}

fn compile_source(expression: &NamedTemplate, names: &TemplateNames) -> Result<Condition, Vec<TextProblem>> {
    let NamedTemplate { name, source } = expression;
    let whole = NamedTemplate { name: name.clone(), source: format!("{OPEN}{source}{CLOSE}") };
    if !is_single_expression(&whole.source) {
        let message = "a condition must be a single expression without tags".to_owned();
        let problem = TextProblem::new(name, source, 0..source.len(), &rules::TEXT_SYNTAX, message);
        return Err(vec![problem.with_help("remove the braces, as in `plan == \"gold\"`".to_owned())]);
    }
    let mut load = |_: &str| Err("a condition cannot use other templates".to_owned());
    let compiled = Compilation::compile(&[&whole], names, NameScope::Recipient, &mut load);
    let type_mistakes: Vec<TextProblem> = find_type_mistakes(&whole, names, compiled.is_err());
    match compiled {
        Ok(compiled) if type_mistakes.is_empty() => {
            let (context, cells) =
                (shared_context(names, &compiled.needs), TemplateCells::from_needs(names, &compiled.needs));
            Ok(Condition { compiled, name: name.clone(), context, cells })
        }
        // Problems in `vars` are reported with the recipients' texts.
        compiled => {
            let problems = compiled.err().unwrap_or_default().into_iter().filter(|problem| problem.text == *name);
            Err(problems
                .map(reword_without_braces)
                .chain(type_mistakes)
                .map(|problem| shift_into_expression(problem, source))
                .collect())
        }
    }
}

impl Condition {
    /// Creates a filter that can be applied to many rows.
    pub fn row_filter(&self) -> RowFilter<'_> {
        RowFilter { condition: self, context: self.context.clone(), buffer: Vec::new() }
    }

    /// The column that an expression names, if the condition uses it.
    pub fn find_named_column(&self, column: &ColumnName) -> Option<usize> {
        self.cells.find_column(column)
    }

    /// The columns that the condition uses.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.cells.columns()
    }
}

impl RowFilter<'_> {
    /// Whether the condition is true for the row. `field` returns the cell of a column, or "".
    ///
    /// # Errors
    /// The condition cannot be evaluated for this row.
    pub fn matches<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> Result<bool, RenderError> {
        let Self { condition, context, buffer } = self;
        let Condition { compiled, name, cells, .. } = condition;
        let composed = cells.columns().filter_map(|column| match compose_accents(field(column)) {
            Cow::Borrowed(_) => None,
            Cow::Owned(cell) => Some((column, cell)),
        });
        let composed: Vec<(usize, String)> = composed.collect();
        let find_composed = |column| composed.iter().find(|(known, _)| *known == column);
        let cell = |column| find_composed(column).map_or_else(|| field(column), |(_, cell)| cell.as_str());
        cells.fill_context(context, row, cell)?;
        match fill_template(&compiled.tera, &template_key(0), context, buffer) {
            Ok(answer) if answer == "true" => Ok(true),
            Ok(answer) if answer == "false" => Ok(false),
            Ok(_) => Err(RenderError::NoAnswer { text: name.clone() }),
            Err(error) => Err(match to_render_error_in(&error, name, &compiled.metered, cells) {
                RenderError::TemplateFails(mut problem) => {
                    problem.column = shift_column(problem.line, problem.column);
                    RenderError::TemplateFails(problem)
                }
                other => other,
            }),
        }
    }
}

/// Whether the source is a single expression in a single tag.
fn is_single_expression(expression: &str) -> bool {
    let tokens = tokenize(expression);
    let ends = tokens.iter().filter(|token| matches!(token.kind, TokenKind::End { .. })).count();
    // If the tokens end early, tera reports the syntax error.
    ends <= 1 && tokens.last().is_none_or(|last| last.span.end == expression.len() || ends == 0)
}

/// The problems at locations where a condition does not treat a cell as text, and would be true for all rows or for
/// none.
///
/// If tera cannot parse the condition, its corrected form is checked.
fn find_type_mistakes(condition: &NamedTemplate, names: &TemplateNames, failed_to_compile: bool) -> Vec<TextProblem> {
    let slips = if failed_to_compile { SyntaxSlips::find(&condition.source, names) } else { SyntaxSlips::default() };
    let corrected = slips.apply_corrections(&condition.source);
    let tokens = tokenize(&corrected);
    let [_, expression @ .., _] = tokens.as_slice() else { return Vec::new() };
    let is_column = |check: &ConditionCheck| match &check.column {
        ColumnName::Variable(name) => {
            matches!(names.find_meanings(name, NameScope::Recipient).as_slice(), [NameMeaning::Column(_)])
        }
        ColumnName::Header(header) => !names.find_columns(header).is_empty(),
    };
    let problem = |ConditionCheck { name, kind, span, .. }: ConditionCheck| {
        let (message, help) = match kind {
            // Whether the cells of the list have the form of the date is checked with the list.
            ConditionKind::IsText(_) | ConditionKind::IsDate { .. } => return None,
            ConditionKind::IsOrderedText { corrected } => (
                format!("`{name}` is ordered as text, in which `9` comes after `100`"),
                suggest_conversion(&name, &corrected),
            ),
            ConditionKind::IsTruthy => (
                format!("`{name}` is text, not a condition"),
                format!(
                    "compare it with a value from the list, as in `{name} == \"yes\"`; to test whether the cell has \
                     a value, write `{name} != \"\"`"
                ),
            ),
            ConditionKind::IsBool { word, corrected } => (
                format!("`{name}` is never `{word}`, because cells contain text"),
                format!("write `{corrected}`, with the value exactly as in the list"),
            ),
            ConditionKind::IsNumber { corrected, .. } => {
                (format!("`{name}` is text but is compared with a number"), suggest_conversion(&name, &corrected))
            }
        };
        let span = slips.original_offset(span.start)..slips.original_offset(span.end);
        Some(TextProblem::new(&condition.name, &condition.source, span, &rules::CONDITION, message).with_help(help))
    };
    find_checks_in_condition(expression, &corrected).into_iter().filter(is_column).filter_map(problem).collect()
}

/// Rewords a problem for an expression, which has no braces.
fn reword_without_braces(problem: TextProblem) -> TextProblem {
    if *problem.rule != rules::TEXT_SYNTAX {
        return problem;
    }
    let message = problem.message.replace("; expected `}}`", "");
    let help = match problem.help {
        Some(_) if message != problem.message => {
            Some("use `==` to compare values, and join conditions with `and` or `or`".to_owned())
        }
        help => help,
    };
    let key = problem.text.rsplit('.').next().unwrap_or_default();
    TextProblem { message: format!("{message} in `{key}`"), help, ..problem }
}

/// Moves the location of a problem from the whole tag to the expression inside.
fn shift_into_expression(problem: TextProblem, source: &str) -> TextProblem {
    let column = shift_column(problem.line, problem.column);
    let last_column = source.lines().nth(problem.line - 1).map_or(1, |line| line.chars().count() + 1);
    TextProblem { column: column.min(last_column), ..problem }
}

fn shift_column(line: usize, column: usize) -> usize {
    if line == 1 { column.saturating_sub(OPEN.len()).max(1) } else { column }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::{CELLS, names};

    fn compile_text(expression: &str) -> Result<Condition, Vec<TextProblem>> {
        compile_condition(&NamedTemplate { name: "recipients.where".into(), source: expression.into() }, &names())
    }

    fn evaluate(expression: &str, cells: [&str; 4]) -> Result<bool, String> {
        let condition = compile_text(expression).map_err(|problems| format!("{problems:?}"))?;
        condition.row_filter().matches(Row::new(7), |column| cells[column]).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn condition_matches_composed_and_decomposed_accents() {
        for (expression, cell) in [
            ("code == 'Orl\u{e9}ans'", "Orle\u{301}ans"),
            ("code == 'Orle\u{301}ans'", "Orl\u{e9}ans"),
            ("code in ['Orle\u{301}ans']", "Orle\u{301}ans"),
        ] {
            assert_eq!(evaluate(expression, [cell; 4]), Ok(true), "{expression}");
        }
    }

    #[test]
    fn condition_over_columns_and_vars_selects_rows() {
        let table = [
            ("code == '<A&B>'", true),
            ("code != '<A&B>'", false),
            ("first_name == 'Оля' and code is containing(pat='B')", true),
            ("not (first_name == 'Оля')", false),
            ("recipient[\"Ім'я\"] == 'Оля' or row > 100", true),
            ("shop == 'Olena & Co' and row == 7", true),
            ("Note | trim == ''", true),
            ("(phone | int) > 380501000000", true),
            ("code in ['a', '<A&B>']", true),
            ("code not in ['a', '<A&B>']", false),
            ("(code) in ['a', '<A&B>']", true),
            ("not (code) in ['a', 'b']", true),
            ("code == '}}'", false),
            ("first_name | length\n  == 3", true),
        ];
        for (expression, expected) in table {
            assert_eq!(evaluate(expression, CELLS), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn condition_error_does_not_reveal_cell_values() {
        let table = [
            ("(code | int) > 5", "the cell in `code` is not a number (`recipients.where`, line 1, column"),
            ("code ~ 'x'", "the result of `recipients.where` is neither true nor false"),
        ];
        for (expression, reason) in table {
            let error = evaluate(expression, CELLS).unwrap_err();
            assert!(error.contains(reason) && !error.contains("A&B"), "{expression}: {error}");
        }
    }

    #[test]
    fn all_mistakes_in_an_sql_condition_are_reported_at_once() {
        let problems = compile_text("first_name = 'Оля' AND code > 100 AND Note IS NOT NULL").err().unwrap_or_default();
        let reported: Vec<String> = problems
            .iter()
            .map(|problem| format!("{} {}", problem.message, problem.help.as_deref().unwrap_or("")))
            .collect();
        let expected = [
            "`=` is not a comparison operator in `where`",
            "`AND` is not an operator",
            "write `!= ''`",
            "`code | int > 100`",
        ];
        for (reported, expected) in reported.iter().zip(expected) {
            assert!(reported.contains(expected), "{reported}: no {expected}");
        }
        assert_eq!(reported.len(), expected.len(), "{reported:?}");
        let places: Vec<usize> = problems.iter().map(|problem| problem.column).collect();
        assert_eq!(places, [12, 20, 44, 24]);
    }

    #[test]
    fn expression_problem_is_reported_at_its_position() {
        let table = [
            ("cod == 'x'", "unknown-variable", 1, "did you mean `code`?"),
            ("code == 'x' and zzzzz", "unknown-variable", 17, "use one of these names"),
            ("code == ", "text-syntax", 9, ""),
            ("{{ code == 'x' }}", "text-syntax", 1, ""),
            ("code == 'x' }}{{ 'y'", "text-syntax", 1, "remove the braces"),
            ("code", "condition", 1, "code == \"yes\""),
            ("shop == 'x' or not Note", "condition", 20, "Note != \"\""),
            ("code == true", "condition", 1, "code == 'true'"),
            ("code > 5", "condition", 1, "code | int"),
            ("5 <= code", "condition", 1, "code | int"),
            ("recipient[\"Ім'я\"] != 5", "condition", 1, "recipient[\"Ім'я\"] | int != 5"),
            ("recipient[\"Ім'я\"]", "condition", 1, "recipient[\"Ім'я\"] == \"yes\""),
            ("code | trim != 5", "condition", 1, "code | trim | int != 5"),
            ("code | lower", "condition", 1, "code | lower == \"yes\""),
            ("code != -1", "condition", 1, "code | int != -1"),
            ("code != (5)", "condition", 1, "code | int != 5"),
            ("not code in [5, 0]", "condition", 5, "code | int in [5, 0]"),
            ("code not in [true]", "condition", 1, "code not in [\"true\"]"),
            ("code | lower != false", "condition", 1, "code | lower != 'false'"),
            ("code = 'x'", "text-syntax", 6, "write `==`, as in `code == 'x'`"),
            ("code 'x'", "text-syntax", 6, "use `==` to compare values"),
        ];
        for (expression, rule, column, help) in table {
            let problems = compile_text(expression).err().unwrap_or_default();
            let [problem] = problems.as_slice() else { panic!("{expression}: {problems:?}") };
            let remedy = problem.help.as_deref().unwrap_or("");
            assert_eq!((problem.rule.id, problem.line, problem.column), (rule, 1, column), "{expression}: {problem:?}");
            assert!(remedy.contains(help), "{expression}: {remedy}");
        }
    }
}
