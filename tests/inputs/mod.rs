//! Wrong or changed inputs: refused before anything is sent, with the place and what to do.

mod campaigns;
mod changes;
mod corpus;
mod files;
mod forms;
mod list_places;
mod lists;
mod loopback;
#[cfg(target_os = "linux")]
mod memory;
mod messages;
mod mistaken;
mod other_tables;
mod outside;
mod pipes;
mod profiles;
mod replaced;
mod secrecy;
mod spoilt;

use crate::support::{Folder, Gateway};

/// Runs what must be refused: exit 2, the words said, and no request.
#[track_caller]
fn refused(sale: &Folder, gateway: &Gateway, words: &[&str]) {
    let mut run = sale.run(&["--yes"]).exits(2);
    for word in words {
        run = run.says(word);
    }
    assert!(gateway.requests().is_empty(), "something was sent");
    assert!(!sale.results_file().exists(), "there are results of nothing");
}
