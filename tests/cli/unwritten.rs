//! Write errors on standard output: the command fails, unless the reader closed the pipe.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::support::{Answer, Gateway, Process, campaign, note_on_failure, rejected};

#[test]
fn failed_write_to_standard_output_exits_74_in_every_command() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    for arguments in [
        &["status"][..],
        &["status", "sale"],
        &["status", "--json"],
        &["check", "sale.yaml"],
        &["check", "sale.yaml", "--json"],
        &["preview", "sale.yaml"],
        &["show", "sale", "--row", "2"],
        &["results", "sale"],
        &["results", "sale", "--out", "-"],
        &["results", "sale", "--out", "-", "--json"],
        &["replies", "sale"],
        &["run", "sale.yaml", "--dry-run"],
        &["sandbox", "--assumptions"],
        &["schema"],
        &["completions", "bash"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let _case = note_on_failure(format!("case: {arguments:?}"));
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
        let output = sale.command(arguments).stdin(Stdio::null()).stdout(full).output().expect("a clean end");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(74), "{stderr}");
        assert_eq!(stderr.matches("No space left").count(), 1, "{stderr}");
        Process::start_unread(sale.command(arguments)).finish().exits(0);
    }
}

#[test]
fn run_that_cannot_print_its_summary_keeps_its_results() {
    let rejecting = || Answer::items(|operation| rejected(operation, "No route"));
    for (answer, code) in [(Answer::Accept, 74), (rejecting(), 3)] {
        let gateway = Gateway::always(answer);
        let sale = campaign().through(&gateway).write();
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
        let mut command = sale.command(&["run", "sale.yaml", "--keep-going"]);
        let output = command.stdin(Stdio::null()).stdout(full).output().expect("a clean end");
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(sale.results().rows.len(), 3);
        sale.campaign(&["status", "sale"]).exits(if code == 74 { 0 } else { 3 }).says("finished");
    }
}
