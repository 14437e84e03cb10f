//! Shared helpers of the stories: campaigns in folders, processes, gateways, results.

mod browser;
mod chance;
#[cfg(target_os = "linux")]
mod clock;
mod cluster;
mod cutter;
mod draft;
mod failure_note;
mod folder;
mod gateway;
mod html;
mod judge;
mod ledger_access;
mod pooler;
mod process;
mod results;
mod sandbox;
mod server;
mod terminal;
mod wait;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

pub(crate) use browser::Browser;
pub(crate) use chance::Chance;
#[cfg(target_os = "linux")]
pub(crate) use clock::Clock;
pub(crate) use cluster::Cluster;
pub(crate) use cutter::{Cut, CuttingProxy};
pub(crate) use draft::{Draft, Reachable, campaign, live, unreachable_url};
pub(crate) use failure_note::note_on_failure;
pub(crate) use folder::{Folder, in_files};
pub(crate) use gateway::{Answer, Gateway, Request, accepted, accepted_envelope, denied, rejected};
pub(crate) use html::{Element, Html};
pub(crate) use judge::{judge_results, judge_results_in};
pub(crate) use ledger_access::{change_ledger, run_sql, with_ledger};
pub(crate) use pooler::Pooler;
pub(crate) use process::{Finished, Process};
pub(crate) use results::Results;
pub(crate) use sandbox::{JournalTail, SandboxProcess};
pub(crate) use server::{Server, http_get};
pub(crate) use terminal::Terminal;
pub(crate) use wait::{until, until_within};

/// The API key of every story.
pub(crate) const KEY: &str = "k3y-of-the-stories";
/// The environment variable with the API key.
pub(crate) const KEY_VARIABLE: &str = "STORY_KEY";

/// A send window that is closed now in every time zone, and the moment at which it opens in `zone`.
pub(crate) fn closed_window(zone: &str) -> (String, Zoned) {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let day = |days: i64| today + Span::new().days(days);
    let window = format!("{{ hours: 00:00-24:00, except: [{}, {}, {}] }}", day(-1), day(0), day(1));
    (window, day(2).in_tz(zone).expect("a zone"))
}

/// The phone number of the recipient in row `row`; the header is row 1.
pub(crate) fn phone(row: usize) -> u64 {
    380_501_000_000 + row as u64
}
