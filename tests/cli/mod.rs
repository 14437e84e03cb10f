//! The command line, used by people and by programs.

mod codes;
mod colours;
mod commands;
#[cfg(unix)]
mod exposure;
mod help;
mod json;
mod previewing;
mod schema;
mod selecting;
mod suggested_commands;
mod terminal;
mod unwritten;
