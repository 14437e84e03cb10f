//! YAML as it was written: a tree whose every node knows its place.
//!
//! Nothing here knows what a campaign is. Values stay the text that was typed; only
//! [`core_json`] gives them the types of YAML 1.2's core schema.

mod core;
mod explain;
mod node;
mod read;
mod slips;

#[cfg(test)]
mod tests;

pub(crate) use core::{core_json, core_scalar};
pub(crate) use node::{Content, Entry, Node, Scalar, Style};
pub(crate) use read::read;
pub(crate) use slips::slips;
