//! Message texts: templates become the text for each recipient.
//!
//! [`compile_messages`] finds every [`TextProblem`] before the first message is sent. A [`Renderer`] then fills the
//! [`CompiledMessages`] row by row and returns a message that every channel accepts, or the reason why the row has
//! none.
//!
//! The path of a text: `tokens` reads its tags, `outline` finds what they use, and `library` loads its includes and
//! inserts the limits of `engine`. Then `names` checks the names, and `render` fills the text. `empty_cells` finds
//! empty cells that a message shows, `markers` the parts that came from a row, and `inspection` what rules look for.
//! `condition` compiles the condition that selects rows. This module does not open files,
//! read the clock or the environment, or escape text.

mod comparisons;
mod compile;
mod condition;
mod empty_cells;
mod engine;
mod failure;
mod inspection;
mod library;
mod markers;
mod names;
mod notice;
mod outline;
mod render;
mod slips;
mod syntax_errors;
mod tables;
#[cfg(test)]
mod tests;
mod tokens;

use std::ops::Range;

use campaign_core::domain::NamedTemplate;
use campaign_core::finding::Rule;

pub use comparisons::{
    ColumnName, ConditionCheck, ConditionKind, enclose_condition, find_condition_checks, find_number_comparisons,
    suggest_conversion,
};
pub use compile::{compile_messages, render_constant};
pub use condition::{Condition, RowFilter, compile_condition};
pub use empty_cells::{EmptyCellFinder, EmptyCellPlace, EmptyCellUse, find_defined_names};
pub use engine::{FILTERS, filter_arguments, to_iso_date};
pub use inspection::{
    FilterCall, Mentions, constant_parts, find_filter_calls, find_looped_names, find_mentions, mask_tags,
};
pub use markers::{BranchFinder, MarkedText, Marker};
pub use names::TemplateNames;
pub use notice::{Notice, render_notice};
pub use render::{CompiledMessages, FilledMessage, RenderError, Renderer};
pub use slips::{cyrillic_lookalike, latin_lookalike};
pub use tables::{LookupTable, load_tables};

/// A problem of one text, found before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextProblem {
    /// The text's name, as in [`NamedTemplate::name`] or as it is included.
    pub text: String,
    /// The line in the text, from 1.
    pub line: usize,
    /// The column in that line, from 1, in characters.
    pub column: usize,
    /// The number of characters, at least 1 and all in that line.
    pub length: usize,
    /// The rule that the text breaks.
    pub rule: &'static Rule,
    /// The problem: a lowercase fragment with names in backticks.
    pub message: String,
    /// The variable or column that the problem is about, if it is about one.
    pub subject: Option<String>,
    /// The remedy.
    pub help: Option<String>,
}

impl TextProblem {
    /// A problem with the bytes `span` of `source`.
    fn new(text: &str, source: &str, span: Range<usize>, rule: &'static Rule, message: String) -> Self {
        let start = floor_boundary(source, span.start);
        let marked = &source[start..floor_boundary(source, span.end).max(start)];
        let before = &source[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            text: text.to_owned(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_start..].chars().count(),
            length: marked.split('\n').next().unwrap_or("").chars().count().max(1),
            rule,
            message,
            subject: None,
            help: None,
        }
    }

    /// Adds a remedy to the problem, if one is known.
    fn with_help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }
}

/// The character boundary at or before `at`.
fn floor_boundary(source: &str, at: usize) -> usize {
    (0..=at.min(source.len())).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0)
}

/// Sorts problems by text and location, and removes duplicates. Problems in included texts come after the problems in
/// all other texts.
fn sort_problems(mut problems: Vec<TextProblem>, texts: &[&NamedTemplate]) -> Vec<TextProblem> {
    let position =
        |problem: &TextProblem| texts.iter().position(|text| text.name == problem.text).unwrap_or(texts.len());
    problems.sort_by_cached_key(|problem| (position(problem), problem.text.clone(), problem.line, problem.column));
    problems.dedup();
    problems
}

/// A problem with the bytes `span` of a text.
pub fn problem_at(
    text: &NamedTemplate,
    span: Range<usize>,
    rule: &'static Rule,
    message: String,
    help: &str,
) -> TextProblem {
    TextProblem::new(&text.name, &text.source, span, rule, message).with_help(help.to_owned())
}

#[cfg(test)]
mod problem_tests {
    use super::*;
    use campaign_core::finding::rules;

    #[test]
    fn place_counts_lines_and_characters() {
        let source = "Привіт\n{{ ім }} x\ny";
        let at = |start, end| {
            let problem = TextProblem::new("t", source, start..end, &rules::TEXT_FAILS, String::new());
            (problem.line, problem.column, problem.length)
        };
        assert_eq!(at(0, 2), (1, 1, 1));
        assert_eq!(at(13, 15), (2, 1, 2));
        assert_eq!(at(16, 20), (2, 4, 2));
        assert_eq!(at(16, source.len()), (2, 4, 7));
        assert_eq!(at(source.len(), source.len()), (3, 2, 1));
        // Out-of-range bounds are clamped and never panic.
        assert_eq!(at(17, 999), (2, 4, 7));
        assert_eq!(at(999, 5), (3, 2, 1));
    }
}
