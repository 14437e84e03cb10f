//! Upgrade of a 0.1 ledger with fallback chains: states are recomputed with the current rule.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::{Folder, campaign, in_files};

/// A folder with the stored ledger of version 0.1, whose schema does not record pipeline channels.
fn stored_ledger() -> Folder {
    let folder = campaign().write();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledgers/0.1-chains");
    let state = folder.path("state");
    fs::create_dir_all(&state).expect("a folder");
    for name in ["ledger.sqlite", "ledger.mark"] {
        let (mut file, packed) = (Vec::new(), fs::File::open(from.join(format!("{name}.gz"))).expect("a stored file"));
        GzDecoder::new(packed).read_to_end(&mut file).expect("a packed file");
        fs::write(state.join(name), file).expect("a file");
    }
    for run in fs::read_dir(from.join("runs")).expect("copies") {
        let run = run.expect("a folder").path();
        let to = state.join("runs").join(run.file_name().expect("a name"));
        fs::create_dir_all(&to).expect("a folder");
        for name in ["frozen.json", "recipients.csv"] {
            fs::copy(run.join(name), to.join(name)).expect("a copy");
        }
    }
    folder
}

fn run_counts(folder: &Folder, run: &str) -> Value {
    folder.campaign(&["status", run, "--json"]).json()["counts"].clone()
}

#[test]
fn runs_of_version_0_1_are_recounted() {
    let _files = in_files();
    let folder = stored_ledger();
    // Version 0.1 reported 5 messages of `combined` as failed, 2 of `queued`, and all of `chosen`.
    assert_eq!(run_counts(&folder, "combined@1"), json!({"accepted": 2, "delivered": 2, "read": 2, "failed": 1}));
    assert_eq!(run_counts(&folder, "queued@1"), json!({"queued": 2, "failed": 1}));
    // One variant ends with `viber`; the other one falls back to `voice`.
    assert_eq!(run_counts(&folder, "chosen@1"), json!({"accepted": 7, "failed": 5}));
    assert_eq!(run_counts(&folder, "purged@1"), json!({"delivered": 1, "failed": 1}), "its rows are gone");
}

#[test]
fn figures_of_version_0_1_are_recomputed() {
    let _files = in_files();
    let folder = stored_ledger();
    let channels = folder.campaign(&["status", "combined@1", "--json"]).json()["channels"].clone();
    assert_eq!(channels["sms"]["counts"], json!({"delivered": 2, "read": 1, "failed": 1}));
    assert_eq!(channels["viber"]["counts"], json!({"accepted": 1, "read": 1}));
    folder.campaign(&["report", "combined@1", "--out", "report.html"]).exits(0);
    let results = folder.campaign(&["results", "chosen@1", "--out", "-"]).exits(0).stdout;
    assert_eq!(results.matches(",failed,pipeline,").count(), 5, "{results}");
    folder.campaign(&["ledger", "check"]).exits(0);
}
