//! Warnings about folders and files that every user of the machine can read or change.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Folder, Gateway, Server, campaign, in_files};

fn set_mode(sale: &Folder, path: &str, mode: u32) {
    fs::set_permissions(sale.path(path), Permissions::from_mode(mode)).expect("its mode");
}

/// Creates a campaign with a finished run.
fn sent_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().to(2).through(gateway).write();
    let first = sale.run(&[]).exits(0);
    assert!(!first.stderr.contains("everyone"), "{}", first.details());
    sale
}

#[test]
fn state_folder_open_to_everyone_causes_one_warning() {
    let gateway = Gateway::accepting();
    let sale = sent_campaign(&gateway);
    for (mode, words) in [
        (0o777, "everyone on this machine can read and change the state folder"),
        (0o755, "everyone on this machine can read the state folder"),
        (0o733, "everyone on this machine can change the state folder"),
    ] {
        set_mode(&sale, "state", mode);
        for command in [["check", "sale.yaml"].as_slice(), &["run", "sale.yaml", "--yes"], &["status", "sale"]] {
            let output =
                sale.campaign(command).exits(0).says(words).says("chmod 700").says(&format!("(mode {mode:04o})"));
            assert_eq!(output.stderr.matches("everyone").count(), 1, "{}", output.details());
        }
    }
    let quiet = sale.campaign(&["status", "sale", "--quiet"]).exits(0);
    assert_eq!(quiet.stderr, "");
    sale.campaign(&["status", "sale", "--json"]).exits(0).json();
    for (mode, repair) in [(0o2777, "chmod o= "), (0o1777, "--state-dir")] {
        set_mode(&sale, "state", mode);
        sale.campaign(&["status", "sale"]).exits(0).says(repair);
    }
    for mode in [0o700, 0o750, 0o770, 0o2770, 0o711] {
        set_mode(&sale, "state", mode);
        let output = sale.campaign(&["status", "sale"]).exits(0);
        assert!(!output.stderr.contains("everyone"), "{mode:o}: {}", output.details());
    }
}

#[test]
fn ledger_open_to_everyone_causes_a_warning() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = sent_campaign(&gateway);
    for (mode, words) in [(0o644, "can read the ledger"), (0o666, "can read and change the ledger")] {
        set_mode(&sale, "state/ledger.sqlite", mode);
        let output = sale.campaign(&["status", "sale"]).exits(0).says(words).says("chmod 600");
        assert_eq!(output.stderr.matches("everyone").count(), 1, "{}", output.details());
    }
    set_mode(&sale, "state/ledger.sqlite", 0o660);
    assert!(!sale.campaign(&["status", "sale"]).exits(0).stderr.contains("everyone"));
}

#[test]
fn world_writable_gateways_file_causes_a_warning() {
    let gateway = Gateway::accepting();
    let sale = sent_campaign(&gateway);
    for (mode, expects_warning) in [(0o666, true), (0o602, true), (0o644, false), (0o664, false)] {
        set_mode(&sale, "gateways.yaml", mode);
        let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
        let is_reported = output.stderr.contains("change the gateways file") && output.stderr.contains("chmod o-w");
        assert_eq!(is_reported, expects_warning, "{mode:o}: {}", output.details());
    }
}

#[test]
fn server_logs_that_its_state_folder_is_open_to_everyone() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    set_mode(&sale, "state", 0o777);
    let ended = Server::start(&sale, &[]).end("TERM").exits(0);
    assert_eq!(ended.stderr.matches("can read and change the state folder").count(), 1, "{}", ended.details());
}
