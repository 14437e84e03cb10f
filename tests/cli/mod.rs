//! The command line as programs and people use it.

mod codes;
mod colours;
mod commands;
#[cfg(unix)]
mod exposure;
mod help;
mod json;
mod pasted;
mod previewing;
mod schema;
mod selecting;
mod terminal;
mod unwritten;
