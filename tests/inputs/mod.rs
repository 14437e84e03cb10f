//! Invalid and changed inputs: rejected before anything is sent, with the position and a remedy.

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

/// Checks that the run is rejected with these words, exit code 2, and no request.
#[track_caller]
fn assert_refused(sale: &Folder, gateway: &Gateway, words: &[&str]) {
    let mut run = sale.run(&["--yes"]).exits(2);
    for word in words {
        run = run.says(word);
    }
    assert!(gateway.requests().is_empty(), "messages were sent");
    assert!(!sale.results_file().exists(), "results were written");
}
