//! Message texts: templates become the text of each recipient.
//!
//! [`compile_messages`] finds all problems of the texts before the first message is sent. A [`Renderer`] then fills the
//! [`CompiledMessages`] row by row and returns a message that every channel accepts, or the reason why the row has
//! none.
//!
//! The path of a text: `tokens` reads its tags, `outline` finds what they use, `library` loads its includes and inserts
//! the limits of `engine`, `names` checks the names, and `render` fills it. `empty_cells` finds empty cells that a
//! message shows, `markers` the parts that came from a row, and `inspection` what rules look for. `condition` compiles
//! the condition that selects rows. This module opens no file, reads no clock or environment, and escapes nothing.

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
mod problem;
mod render;
mod slips;
mod syntax_errors;
mod tables;
#[cfg(test)]
mod tests;
mod tokens;

pub use compile::{compile_messages, render_constant};
pub use condition::{Condition, RowFilter, compile_condition};
pub use empty_cells::{EmptyCellFinder, EmptyCellPlace, EmptyCellUse, find_defined_names};
pub use engine::{FILTERS, filter_arguments};
pub use inspection::{
    ConditionCheck, ConditionKind, FilterCall, Mentions, constant_parts, find_condition_checks, find_filter_calls,
    find_looped_names, find_mentions, find_number_comparisons, mask_tags, suggest_number_comparison,
};
pub use markers::{BranchFinder, MarkedText, Marker};
pub use names::TemplateNames;
pub use notice::{Notice, render_notice};
pub use problem::{TextProblem, problem_at};
pub use render::{CompiledMessages, FilledMessage, RenderError, Renderer};
pub use slips::{cyrillic_lookalike, latin_lookalike};
pub use tables::{LookupTable, load_tables};
