//! Recipient lists that are not files: program output, standard input, URLs, databases and earlier runs.

mod command;
mod database;
mod input;
mod past_run;
mod redirects;
mod web;

use crate::support::{Draft, Folder};

/// Creates a campaign with these lines under `recipients:` instead of a list file.
fn campaign_with_source(draft: Draft, source: &str) -> Folder {
    let folder = draft.write();
    folder.replace("sale.yaml", "  file: sale.csv\n", &format!("  {}\n", source.replace('\n', "\n  ")));
    std::fs::remove_file(folder.path("sale.csv")).expect("the list");
    folder
}

/// Counts the stored copies of fetched lists.
fn count_copies(folder: &Folder) -> usize {
    std::fs::read_dir(folder.path("state/lists")).map_or(0, Iterator::count)
}
