//! A list that is piped into standard input.

use std::fs::File;
use std::io::Write as _;

use super::{fetched, kept};
use crate::support::{Finished, Folder, Gateway, Process, campaign, phone, until};

/// A campaign whose list is piped into it.
fn piped(draft: crate::support::Draft) -> Folder {
    fetched(draft, "file: \"-\"")
}

/// What a command comes to that reads this.
fn given(sale: &Folder, arguments: &[&str], list: &str) -> Finished {
    sale.write("piped", list);
    started(sale, arguments, File::open(sale.path("piped")).expect("a file")).finish()
}

fn started(sale: &Folder, arguments: &[&str], input: File) -> Process {
    let output = || File::options().append(true).create(true).open(sale.path("told")).expect("a file");
    Process::start_on(sale.command(arguments), [input, output(), output()])
}

fn told(sale: &Folder) -> String {
    std::fs::read_to_string(sale.path("told")).expect("what was told")
}

const LIST: &str = "phone,name\n380501000002,Ann\n380501000003,Bob\n";

#[test]
fn piped_list_is_sent_once_and_resumed_from_its_copy() {
    let gateway = Gateway::accepting();
    let sale = piped(campaign().batches_of(1).through(&gateway));
    given(&sale, &["run", "sale.yaml", "--no-wait", "--limit", "1"], LIST).exits(0);
    given(&sale, &["run", "sale.yaml", "--no-wait"], "").exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    assert_eq!((sale.results().states(), kept(&sale)), (vec!["accepted", "accepted"], 0));
}

#[test]
fn read_only_command_fetches_a_list_only_on_request() {
    let sale = piped(campaign().through(&Gateway::accepting()));
    given(&sale, &["check", "sale.yaml"], LIST).exits(0);
    assert!(told(&sale).contains("--fetch") && told(&sale).contains("standard input"), "{}", told(&sale));
    given(&sale, &["preview", "sale.yaml", "--fetch"], LIST).exits(0);
    assert!(told(&sale).contains("Hello, Bob"), "{}", told(&sale));
    given(&sale, &["run", "sale.yaml", "--dry-run"], LIST).exits(0);
}

#[test]
fn nothing_half_a_list_and_a_schedule_are_refused() {
    let gateway = Gateway::accepting();
    let sale = piped(campaign().through(&gateway));
    given(&sale, &["run", "sale.yaml"], "").exits(2);
    assert!(told(&sale).contains("not even a header"), "{}", told(&sale));
    given(&sale, &["run", "sale.yaml"], "phone,name\n380501000002,\"An").exits(2);
    let sale = piped(campaign().through(&gateway).top("timezone: UTC").top("schedule: { every: day 10:00 }"));
    for arguments in [&["check", "sale.yaml"][..], &["schedule", "add", "sale.yaml"]] {
        given(&sale, arguments, LIST).exits(2);
    }
    assert!(told(&sale).contains("cannot read the list from standard input"), "{}", told(&sale));
    assert!(gateway.requests().is_empty());
}

#[test]
fn interrupt_while_idle_ends_the_command() {
    let gateway = Gateway::accepting();
    let sale = piped(campaign().through(&gateway));
    let (input, output) = std::io::pipe().expect("a pipe");
    let mut output = File::from(std::os::fd::OwnedFd::from(output));
    output.write_all(LIST.as_bytes()).expect("a reader");
    let mut run = started(&sale, &["run", "sale.yaml"], File::from(std::os::fd::OwnedFd::from(input)));
    until("it reads", || kept(&sale) == 1);
    run.signal("INT");
    run.finish().exits(130);
    assert!(gateway.requests().is_empty());
}
