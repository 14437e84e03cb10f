//! End-to-end tests of the `campaign` binary, called stories.
//!
//! Each story runs the binary as a process with its own folder and ledger. It checks the output,
//! the exit code, the results, and the requests that a gateway on loopback received.

mod support;

mod account;
mod answers;
mod bounds;
mod checks;
mod cli;
mod connector;
mod consent;
mod countries;
mod delivery;
mod demo;
mod docs;
#[cfg(target_os = "linux")]
mod doctor;
mod doubt;
mod editor;
mod examples;
#[cfg(target_os = "linux")]
mod figures;
mod fuzzed;
mod house;
mod init_examples;
mod inputs;
mod looks;
mod mistakes;
mod once;
mod opt_outs;
mod outcome;
mod pages;
mod people;
mod phones;
mod plans;
mod receipts;
mod recovery;
mod rehearsal;
mod sandbox;
mod schedules;
mod selection;
mod serve;
mod shared;
mod sms;
mod sources;
mod starts;
mod tables;
#[cfg(unix)]
mod teams;
mod variants;
mod windows;
mod workbooks;
mod workers;
