//! The command line, used by people and by programs.

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
