//! Lists that are no files: what a program prints, an address or a database gives, or an earlier run left.

mod command;
mod database;
mod input;
mod past_run;
mod redirects;
mod web;

use crate::support::{Draft, Folder};

/// A campaign whose list comes from there instead of its file, by these lines under `recipients:`.
fn fetched(draft: Draft, source: &str) -> Folder {
    let folder = draft.write();
    folder.replace("sale.yaml", "  file: sale.csv\n", &format!("  {}\n", source.replace('\n', "\n  ")));
    std::fs::remove_file(folder.path("sale.csv")).expect("the list");
    folder
}

/// The files that fetched lists were kept in.
fn kept(folder: &Folder) -> usize {
    std::fs::read_dir(folder.path("state/lists")).map_or(0, Iterator::count)
}
