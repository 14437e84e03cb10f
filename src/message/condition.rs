//! The condition that says who of a list is meant.

use tera::Context;

use super::cells::Cells;
use super::compile::{Compilation, context};
use super::lex::{Kind, tokens};
use super::metered_text::key;
use super::names::{Meaning, Names, Reach};
use super::problem::TextProblem;
use super::reading::{Asked, Question, remedy_of_number, simple_questions};
use super::render::{Invalid, fill, invalid_in};
use super::slips::Slips;
use crate::domain::{Row, Text};
use crate::finding::rules;

/// What tera reads an expression between.
const OPEN: &str = "{{ ";
const CLOSE: &str = " }}";

/// One expression that is true or false of each row.
pub struct Condition {
    compiled: Compilation,
    name: String,
    context: Context,
    cells: Cells,
}

/// Asks a condition of one row after another; it holds the last row's cells.
pub struct Sieve<'c> {
    condition: &'c Condition,
    context: Context,
    buffer: Vec<u8>,
}

/// Compiles an expression against the names that the recipients and vars have.
///
/// # Errors
/// All its problems, at their places in the expression.
pub fn compile_condition(expression: &Text, names: &Names) -> Result<Condition, Vec<TextProblem>> {
    let Text { name, source } = expression;
    let whole = Text { name: name.clone(), source: format!("{OPEN}{source}{CLOSE}") };
    if !is_one_expression(&whole.source) {
        let message = "a condition must be one expression without tags".to_owned();
        let problem = TextProblem::new(name, source, 0..source.len(), &rules::TEXT_SYNTAX, message);
        return Err(vec![problem.help("remove the braces, as in `plan == \"gold\"`".to_owned())]);
    }
    let mut load = |_: &str| Err("a condition cannot use other templates".to_owned());
    let compiled = Compilation::of(&[&whole], names, Reach::Recipient, &mut load);
    let misread: Vec<TextProblem> = misreadings(&whole, names, compiled.is_err());
    match compiled {
        Ok(compiled) if misread.is_empty() => {
            let (context, cells) = (context(names, &compiled.needs), Cells::of(names, &compiled.needs));
            Ok(Condition { compiled, name: name.clone(), context, cells })
        }
        // What is wrong with the vars is told with the texts.
        compiled => {
            let problems = compiled.err().unwrap_or_default().into_iter().filter(|problem| problem.text == *name);
            Err(problems.map(without_braces).chain(misread).map(|problem| in_expression(problem, source)).collect())
        }
    }
}

impl Condition {
    /// Asks it of rows; make one for a run, not one for a row.
    #[must_use]
    pub fn sieve(&self) -> Sieve<'_> {
        Sieve { condition: self, context: self.context.clone(), buffer: Vec::new() }
    }

    /// The columns that it asks.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.cells.columns()
    }
}

impl Sieve<'_> {
    /// Whether the row is meant; `field` gives the cell of a column, "" where there is none.
    ///
    /// # Errors
    /// Why that cannot be said of this row.
    pub fn is_meant<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> Result<bool, Invalid> {
        let Self { condition, context, buffer } = self;
        let Condition { compiled, name, cells, .. } = condition;
        cells.bring(context, row, field)?;
        match fill(&compiled.tera, &key(0), context, buffer) {
            Ok(answer) if answer == "true" => Ok(true),
            Ok(answer) if answer == "false" => Ok(false),
            Ok(_) => Err(Invalid::NoAnswer { text: name.clone() }),
            Err(error) => Err(match invalid_in(&error, name, (&compiled.metered, cells)) {
                Invalid::Fails(mut problem) => {
                    problem.column = column_in_expression(problem.line, problem.column);
                    Invalid::Fails(problem)
                }
                other => other,
            }),
        }
    }
}

/// Whether nothing in it ends the expression and begins something else.
fn is_one_expression(whole: &str) -> bool {
    let tokens = tokens(whole);
    let ends = tokens.iter().filter(|token| matches!(token.kind, Kind::End { .. })).count();
    // Where tokens end early, tera says what it cannot read.
    ends <= 1 && tokens.last().is_none_or(|last| last.span.end == whole.len() || ends == 0)
}

/// Where the condition takes a cell for something else than a text, so that it would mean everybody or nobody.
///
/// If tera does not read the condition, what its author seems to mean is judged.
fn misreadings(whole: &Text, names: &Names, is_wrong: bool) -> Vec<TextProblem> {
    let slips = if is_wrong { Slips::of(&whole.source, names) } else { Slips::default() };
    let corrected = slips.corrected(&whole.source);
    let tokens = tokens(&corrected);
    let [_, expression @ .., _] = tokens.as_slice() else { return Vec::new() };
    let is_column = |question: &Question| {
        matches!(names.meanings(&question.name, Reach::Recipient).as_slice(), [Meaning::Column(_)])
    };
    let problem = |Question { name, asked, span }: Question| {
        let (message, help) = match asked {
            Asked::IsText(_) => return None,
            Asked::Whether => (
                format!("`{name}` is text, not a condition"),
                format!(
                    "compare it with a value from the list, as in `{name} == \"yes\"`; to test whether the cell is \
                     filled, write `{name} != \"\"`"
                ),
            ),
            Asked::IsBool(word) => (
                format!("`{name}` is never `{word}`, because cells contain text"),
                format!("write `{name} == \"{word}\"`, with the value exactly as in the list"),
            ),
            Asked::IsNumber(written) => {
                (format!("`{name}` is text but is compared with a number"), remedy_of_number(&name, &written))
            }
        };
        let span = slips.original(span.start)..slips.original(span.end);
        Some(TextProblem::new(&whole.name, &whole.source, span, &rules::CONDITION, message).help(help))
    };
    simple_questions(expression, &corrected).into_iter().filter(is_column).filter_map(problem).collect()
}

/// The problem in words for an expression that has no braces of its own.
fn without_braces(problem: TextProblem) -> TextProblem {
    if *problem.rule != rules::TEXT_SYNTAX {
        return problem;
    }
    let message = problem.message.replace("; expected `}}`", "");
    let help = match problem.help {
        Some(help) if help.contains("close the tag with") => {
            Some("write `==` to compare, and `and` or `or` between two conditions".to_owned())
        }
        help => help,
    };
    let of = problem.text.rsplit('.').next().unwrap_or_default();
    TextProblem { message: format!("{message} in `{of}`"), help, ..problem }
}

/// The problem of what stands between the braces, at its place in the expression alone.
fn in_expression(problem: TextProblem, source: &str) -> TextProblem {
    let column = column_in_expression(problem.line, problem.column);
    let room = source.lines().nth(problem.line - 1).map_or(1, |line| line.chars().count() + 1);
    TextProblem { column: column.min(room), ..problem }
}

fn column_in_expression(line: usize, column: usize) -> usize {
    if line == 1 { column.saturating_sub(OPEN.len()).max(1) } else { column }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::fixtures::{CELLS, names};

    fn compiled(expression: &str) -> Result<Condition, Vec<TextProblem>> {
        compile_condition(&Text { name: "recipients.where".into(), source: expression.into() }, &names())
    }

    fn asked(expression: &str, cells: [&str; 4]) -> Result<bool, String> {
        let condition = compiled(expression).map_err(|problems| format!("{problems:?}"))?;
        condition.sieve().is_meant(Row::new(7), |column| cells[column]).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn an_expression_over_columns_and_vars_says_who_is_meant() {
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
            ("code == '}}'", false),
            ("first_name | length\n  == 3", true),
        ];
        for (expression, meant) in table {
            assert_eq!(asked(expression, CELLS), Ok(meant), "{expression}");
        }
    }

    #[test]
    fn a_row_of_which_it_cannot_be_said_tells_why_and_shows_no_cell() {
        let table = [
            ("(code | int) > 5", "the cell in `code` is not a number (`recipients.where`, line 1, column"),
            ("code ~ 'x'", "the result of `recipients.where` is neither true nor false"),
        ];
        for (expression, reason) in table {
            let told = asked(expression, CELLS).unwrap_err();
            assert!(told.contains(reason) && !told.contains("A&B"), "{expression}: {told}");
        }
    }

    #[test]
    fn condition_in_sql_names_each_remedy_at_once() {
        let problems = compiled("first_name = 'Оля' AND code > 100 AND Note IS NOT NULL").err().unwrap_or_default();
        let told: Vec<String> = problems
            .iter()
            .map(|problem| format!("{} {}", problem.message, problem.help.as_deref().unwrap_or("")))
            .collect();
        let expected = [
            "`=` is not a comparison operator in `where`",
            "`AND` is not an operator",
            "write `!= ''`",
            "`code | int > 100`",
        ];
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.contains(expected), "{told}: no {expected}");
        }
        assert_eq!(told.len(), expected.len(), "{told:?}");
        let places: Vec<usize> = problems.iter().map(|problem| problem.column).collect();
        assert_eq!(places, [12, 20, 44, 24]);
    }

    #[test]
    fn what_is_wrong_with_an_expression_is_told_at_its_place() {
        let table = [
            ("cod == 'x'", "unknown-variable", 1, "did you mean `code`?"),
            ("code == 'x' and zzzzz", "unknown-variable", 17, "use one of these names"),
            ("code == ", "text-syntax", 9, ""),
            ("{{ code == 'x' }}", "text-syntax", 1, ""),
            ("code == 'x' }}{{ 'y'", "text-syntax", 1, "remove the braces"),
            ("code", "condition", 1, "code == \"yes\""),
            ("shop == 'x' or not Note", "condition", 20, "Note != \"\""),
            ("code == true", "condition", 1, "code == \"true\""),
            ("code > 5", "condition", 1, "code | int"),
            ("5 <= code", "condition", 1, "code | int"),
            ("code = 'x'", "text-syntax", 6, "write `==`, as in `code == 'x'`"),
            ("code 'x'", "text-syntax", 6, "write `==` to compare"),
        ];
        for (expression, rule, column, help) in table {
            let problems = compiled(expression).err().unwrap_or_default();
            let [problem] = problems.as_slice() else { panic!("{expression}: {problems:?}") };
            let told = problem.help.as_deref().unwrap_or("");
            assert_eq!((problem.rule.id, problem.line, problem.column), (rule, 1, column), "{expression}: {problem:?}");
            assert!(told.contains(help), "{expression}: {told}");
        }
    }
}
