//! Opt-outs: a recipient on the suppression list gets no marketing messages, whether the opt-out was added before,
//! during or after a run.

mod files;
mod importing;
mod in_flight;
mod list;
mod opting_in;
mod planned;
mod regions;
mod rejections;
mod removing;
mod review;
mod scopes;
mod words;

use crate::support::{Folder, phone};

/// Adds the number of a row to the suppression list.
fn opt_out(sale: &Folder, row: usize, more: &[&str]) {
    let number = format!("+{}", phone(row));
    sale.campaign(&[&["suppress", "add", number.as_str()], more].concat())
        .exits(0)
        .says("no more marketing messages from");
}

/// The entries of the suppression list.
fn entries(sale: &Folder) -> Vec<serde_json::Value> {
    let listed = sale.campaign(&["suppress", "list", "--json"]).exits(0).json_list();
    listed.as_array().expect("a list").clone()
}
