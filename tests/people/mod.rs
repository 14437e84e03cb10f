//! What is kept of a person: found in all runs, forgotten when somebody asks for it.

mod finding;
mod forgetting;

use crate::support::{Finished, Folder, phone};

/// The number of a row as people write it.
fn number(row: usize) -> String {
    format!("+{}", phone(row))
}

/// What `find` tells of the number of a row.
fn find(folder: &Folder, row: usize) -> Finished {
    folder.campaign(&["find", &number(row), "--json"])
}
