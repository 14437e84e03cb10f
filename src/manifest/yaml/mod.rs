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

pub(crate) use core::{node_to_json, scalar_to_json};
pub(crate) use node::{MapEntry, Node, NodeContent, Scalar, Style};
pub(crate) use read::read_tree;
pub(crate) use slips::find_slips;
