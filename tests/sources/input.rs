//! Lists piped to standard input.

use std::fs::File;
use std::io::Write as _;

use super::{campaign_with_source, count_copies};
use crate::support::{Finished, Folder, Gateway, Process, campaign, phone, until};

/// Creates a campaign that reads its list from standard input.
fn campaign_from_stdin(draft: crate::support::Draft) -> Folder {
    campaign_with_source(draft, "file: \"-\"")
}

/// Runs a command with this list on its standard input.
fn run_with_input(sale: &Folder, arguments: &[&str], list: &str) -> Finished {
    sale.write("piped", list);
    start_with_input(sale, arguments, File::open(sale.path("piped")).expect("a file")).finish()
}

fn start_with_input(sale: &Folder, arguments: &[&str], input: File) -> Process {
    let output = || File::options().append(true).create(true).open(sale.path("output")).expect("a file");
    Process::start_on(sale.command(arguments), [input, output(), output()])
}

fn read_output(sale: &Folder) -> String {
    std::fs::read_to_string(sale.path("output")).expect("the output")
}

const LIST: &str = "phone,name\n380501000002,Ann\n380501000003,Bob\n";

#[test]
fn piped_list_is_sent_once_and_resumed_from_its_copy() {
    let gateway = Gateway::accepting();
    let sale = campaign_from_stdin(campaign().batches_of(1).through(&gateway));
    run_with_input(&sale, &["run", "sale.yaml", "--no-wait", "--limit", "1"], LIST).exits(0);
    run_with_input(&sale, &["run", "sale.yaml", "--no-wait"], "").exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    assert_eq!((sale.results().states(), count_copies(&sale)), (vec!["accepted", "accepted"], 0));
}

#[test]
fn read_only_command_fetches_a_list_only_on_request() {
    let sale = campaign_from_stdin(campaign().through(&Gateway::accepting()));
    run_with_input(&sale, &["check", "sale.yaml"], LIST).exits(0);
    assert!(
        read_output(&sale).contains("--fetch") && read_output(&sale).contains("standard input"),
        "{}",
        read_output(&sale)
    );
    run_with_input(&sale, &["preview", "sale.yaml", "--fetch"], LIST).exits(0);
    assert!(read_output(&sale).contains("Hello, Bob"), "{}", read_output(&sale));
    run_with_input(&sale, &["run", "sale.yaml", "--dry-run"], LIST).exits(0);
}

#[test]
fn empty_or_truncated_stdin_and_schedules_are_refused() {
    let gateway = Gateway::accepting();
    let sale = campaign_from_stdin(campaign().through(&gateway));
    run_with_input(&sale, &["run", "sale.yaml"], "").exits(2);
    assert!(read_output(&sale).contains("not even a header"), "{}", read_output(&sale));
    run_with_input(&sale, &["run", "sale.yaml"], "phone,name\n380501000002,\"An").exits(2);
    let sale =
        campaign_from_stdin(campaign().through(&gateway).top("timezone: UTC").top("schedule: { every: day 10:00 }"));
    for arguments in [&["check", "sale.yaml"][..], &["schedule", "add", "sale.yaml"]] {
        run_with_input(&sale, arguments, LIST).exits(2);
    }
    assert!(read_output(&sale).contains("cannot read the list from standard input"), "{}", read_output(&sale));
    assert!(gateway.requests().is_empty());
}

#[test]
fn interrupt_while_reading_the_list_ends_the_run() {
    let gateway = Gateway::accepting();
    let sale = campaign_from_stdin(campaign().through(&gateway));
    let (input, output) = std::io::pipe().expect("a pipe");
    let mut output = File::from(std::os::fd::OwnedFd::from(output));
    output.write_all(LIST.as_bytes()).expect("a reader");
    let mut run = start_with_input(&sale, &["run", "sale.yaml"], File::from(std::os::fd::OwnedFd::from(input)));
    until("the run reads its input", || count_copies(&sale) == 1);
    run.signal("INT");
    run.finish().exits(130);
    assert!(gateway.requests().is_empty());
}
