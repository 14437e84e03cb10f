//! Whoever opted out gets no marketing: by hand or from a file, before a run, while it sends, and when it tries again.

mod files;
mod importing;
mod in_flight;
mod list;
mod planned;
mod regions;
mod removing;
mod review;
mod words;

use crate::support::{Folder, phone};

/// Puts the number of a row on the list.
fn opt_out(sale: &Folder, row: usize, more: &[&str]) {
    let number = format!("+{}", phone(row));
    sale.campaign(&[&["suppress", "add", number.as_str()], more].concat())
        .exits(0)
        .says("no more marketing messages from");
}

/// Who is on the list.
fn entries(sale: &Folder) -> Vec<serde_json::Value> {
    let told = sale.campaign(&["suppress", "list", "--json"]).exits(0).json_list();
    told.as_array().expect("a list").clone()
}
