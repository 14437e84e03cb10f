//! The stories: what a user sees of `campaign` through its public doors, one file per promise kept.
//!
//! Each starts the binary as a process with a folder and a ledger of its own, and judges it by its
//! output, its exit code, its results and by what a gateway on loopback saw.

mod support;

mod account;
mod answers;
mod bounds;
mod checks;
mod cli;
mod connector;
mod delivery;
mod docs;
mod doubt;
mod examples;
#[cfg(target_os = "linux")]
mod figures;
mod house;
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
mod variants;
mod windows;
mod workbooks;
mod workers;
