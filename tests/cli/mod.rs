//! The command line as programs and people use it.

mod codes;
mod commands;
#[cfg(unix)]
mod exposure;
mod json;
mod pasted;
mod schema;
mod terminal;
mod unwritten;
