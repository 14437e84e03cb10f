//! A declarative campaign runner for a multi-channel messaging gateway.
//!
//! A campaign file names recipients, channels and texts. Each recipient becomes one operation;
//! operations travel in envelopes; an intent is on the disk before an envelope leaves and its
//! outcome after the answer came. What is proven is accepted, rejected or not sent; everything
//! else is in doubt and is never sent again by itself.
//!
//! The rooms of the house, from the street to the cellar. A room uses only those below it, and
//! none beside it:
//!
//! | rooms | what they are for |
//! |---|---|
//! | [`cli`] | commands, output, exit codes; the only place that names SQLite, HTTP and the clock together |
//! | [`schedule`] | the daemon that starts what is armed |
//! | [`webhook`] [`web`] [`connector`] | the doors of `campaign serve`: delivery receipts in; whether it is well, what it counts; and the tools of AI assistants |
//! | [`runs`] | what a run does, for every surface: a request goes in, events and an outcome come out |
//! | [`notify`] | telling somebody how a run went |
//! | [`report`] | projections of the ledger: results, summary, previews, progress |
//! | [`delivery`] | the engine: intents, envelopes, pace, breaker, resuming |
//! | [`sandbox`] | the emulated gateway; shares nothing with the client but the vocabulary |
//! | [`check`] [`draft`] | the survey of everything that can be known before sending; the first files of a new campaign |
//! | [`manifest`] [`audience`] [`message`] [`gateway`] [`ledger`] | files, lists, texts, the platform's port, the durable truth |
//! | [`calendar`] [`domain`] [`finding`] | when something is due; the vocabulary; problems told to a person |
//! | `door` [`metrics`] | the doors of our servers: connections within limits, a graceful end; what a server counts |
//! | `failpoint` `http_client` `private` `quietly` `regular_file` | places at which tests have the process die; how requests leave; what only its owner can read; libraries that may panic; files that people name |

pub mod audience;
pub mod calendar;
pub mod check;
pub mod cli;
pub mod connector;
pub mod delivery;
pub mod domain;
mod door;
pub mod draft;
mod failpoint;
pub mod finding;
pub mod gateway;
mod http_client;
pub mod ledger;
pub mod manifest;
pub mod message;
pub mod metrics;
pub mod notify;
mod private;
mod quietly;
mod regular_file;
pub mod report;
pub mod runs;
pub mod sandbox;
pub mod schedule;
pub mod web;
pub mod webhook;
