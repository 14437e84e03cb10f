//! A declarative campaign runner for a multi-channel messaging gateway.
//!
//! A campaign file names recipients, channels and texts. Each recipient becomes one operation; operations travel in
//! envelopes. An intent is on the disk before an envelope is sent, and its outcome after the response. An outcome is
//! accepted, rejected or not sent if that is proven. Everything else is in doubt and is never sent again automatically.
//!
//! The layers, from the surfaces to the foundation. A module uses only modules of lower layers:
//!
//! | modules | purpose |
//! |---|---|
//! | [`cli`] | commands, output, exit codes; the only place that names SQLite, HTTP and the clock together |
//! | [`scheduler`] | the daemon that fires active schedules |
//! | [`webhook`] [`web`] [`connector`] | the endpoints of `campaign serve`: delivery receipts, dashboard and metrics, tools of AI assistants |
//! | [`runs`] | runs for every surface: a request goes in, events and an outcome come out |
//! | [`notify`] | notifications about runs |
//! | [`report`] | projections of the ledger: results, summary, previews, progress |
//! | [`delivery`] | the engine: intents, envelopes, rate, breaker, resuming |
//! | [`sandbox`] | the emulated gateway; shares only the vocabulary with the client |
//! | [`check`] [`draft`] | the survey before sending; the first files of a new campaign |
//! | [`manifest`] [`audience`] [`message`] [`gateway`] [`ledger`] | files, lists, texts, the gateway port, the durable record |
//! | [`calendar`] [`domain`] [`finding`] | schedules and windows; the vocabulary; findings |
//! | `net` [`metrics`] | servers: connection limits and graceful shutdown; counters |
//! | `failpoint` `http_client` `private` `panics` `regular_file` | failpoints for tests; the HTTP client; private files; caught panics; files that users name |

pub mod audience;
pub mod calendar;
pub mod check;
pub mod cli;
pub mod connector;
pub mod delivery;
pub mod domain;
pub mod draft;
mod failpoint;
pub mod finding;
pub mod gateway;
mod http_client;
pub mod ledger;
pub mod manifest;
pub mod message;
pub mod metrics;
mod net;
pub mod notify;
mod panics;
mod private;
mod regular_file;
pub mod report;
pub mod runs;
pub mod sandbox;
pub mod scheduler;
pub mod web;
pub mod webhook;
