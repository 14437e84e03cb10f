//! Message texts: templates become what one recipient gets.
//!
//! [`compile`] finds everything that is wrong with the texts before the first message is sent;
//! [`Messages`] are then filled row by row by a [`Renderer`], which gives a message that every
//! channel takes, or says why the row has none.
//!
//! The way of a text: `lex` reads its tags, `outline` what it uses, `library` brings in what it
//! includes, `judge` compares that with the names there are, `meter` puts the limits of `engine`
//! into its source, and `render` has tera fill it, or `segments` where it is words and names alone. `empty_use` finds the
//! empty cells that a message shows, `branches` the conditions that chose its words. Nothing here opens a file, reads a clock or the environment, or escapes anything.

mod branches;
mod cells;
mod compile;
mod condition;
mod empty_use;
mod engine;
mod expression;
mod failure;
mod filled;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod hostile;
mod instrument;
mod judge;
mod lex;
mod library;
mod marked;
mod messages;
mod meter;
mod metered_text;
mod names;
mod notice;
mod outline;
mod problem;
mod reading;
mod refused;
mod regional;
mod render;
mod segments;
mod slips;
mod table;
mod unclosed;
mod words;

pub use branches::BranchFinder;
pub use compile::{compile_messages, render_constant};
pub use condition::{Condition, RowFilter, compile_condition};
pub use empty_use::{EmptyCellFinder, EmptyCellPlace, EmptyCellUse};
pub use filled::FilledMessage;
pub use instrument::find_defined_names;
pub use marked::{MarkedText, Marker};
pub use messages::CompiledMessages;
pub use names::TemplateNames;
pub use notice::{Notice, fill_notice};
pub use problem::TextProblem;
pub use reading::{
    ConditionCheck, ConditionKind, FilterCall, Mentions, constant_parts, find_condition_checks, find_filter_calls,
    find_looped_names, find_mentions, find_number_comparisons, mask_tags, number_remedy, problem_at,
};
pub use render::{RenderError, Renderer};
pub use slips::{cyrillic_lookalike, latin_lookalike};
pub use table::{LookupTable, load_tables};
