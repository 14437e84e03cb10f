//! What the system sees: the order of fsyncs and sends, and fsyncs that fail. Linux with `strace` only, so ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::witness::{Tally, Witness};
use crate::support::{Finished, Folder, Process, campaign, phone, telling};

/// How many people the campaigns here go to, in envelopes of 1, 4, 4 …
const PEOPLE: usize = 21;

/// Whether `strace` is there and may trace; says so if not.
fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        let _ = writeln!(std::io::stderr(), "skipped: this needs `strace`, and the right to trace");
    }
    can
}

fn sale(witness: &Witness) -> Folder {
    campaign().to(PEOPLE).batches_of(4).one_at_a_time().through(witness).write()
}

/// The run under `strace` with these options, its trace in `trace`.
fn traced(sale: &Folder, options: &[&str]) -> Finished {
    let run = sale.command(&["run", "sale.yaml", "--no-wait"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "65536", "-o", "trace"]).args(options).arg(run.get_program()).args(run.get_args());
    strace.current_dir(run.get_current_dir().expect("the folder")).env_clear().env("PATH", "/usr/bin:/bin");
    strace.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Process::start(strace).finish()
}

/// A call that ended, in the order of the ends for what is synced and of the beginnings for what is sent.
#[derive(Debug, PartialEq)]
enum Call {
    /// The write-ahead log was written to.
    Written,
    /// All that was written to it before is on the disk.
    Synced,
    /// A request with messages begins to go out.
    Sent,
}

/// The calls that matter, of the trace of a run.
fn calls(trace: &str) -> Vec<Call> {
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let (process, call) = line.split_once(' ').expect("a process and its call");
        let call = call.trim_start();
        let begun = if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(process, begun);
            begun
        } else {
            call
        };
        let resumed = call.starts_with("<...").then(|| unfinished.remove(process).unwrap_or_default());
        let ended = resumed.or((begun == call).then_some(call));
        let log = |call: &str| call.contains("ledger.sqlite-wal>");
        match ended {
            Some(ended) if ended.starts_with("fdatasync") || ended.starts_with("fsync") => {
                calls.extend(log(ended).then_some(Call::Synced));
            }
            Some(ended) if ended.starts_with("pwrite64") || ended.starts_with("write") && log(ended) => {
                calls.extend(log(ended).then_some(Call::Written));
            }
            _ => {}
        }
        let sends = ["sendto(", "write(", "writev(", "sendmsg("].iter().any(|name| begun.starts_with(name));
        calls.extend((resumed.is_none() && sends && begun.contains(r#"\"sms_message\""#)).then_some(Call::Sent));
    }
    calls
}

#[test]
#[ignore = "needs strace"]
fn no_request_goes_out_before_the_fsync_of_its_intent() {
    if !can_trace() {
        return;
    }
    let witness = Witness::start();
    let sale = sale(&witness);
    let trace = "trace=fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg";
    traced(&sale, &["-e", trace]).exits(0);
    let calls = calls(&std::fs::read_to_string(sale.path("trace")).expect("a trace"));
    let (mut written, mut synced, mut requests) = (false, false, 0);
    for call in &calls {
        match call {
            Call::Written => (written, synced) = (true, false),
            Call::Synced => synced = written,
            Call::Sent => {
                assert!(synced, "request {} went out with an unsynced log: {calls:?}", requests + 1);
                requests += 1;
                // The next one needs a commit of its own.
                (written, synced) = (false, false);
            }
        }
    }
    assert_eq!(requests, 6);
}

#[test]
#[ignore = "needs strace"]
fn an_fsync_that_fails_stops_the_run_and_loses_nothing() {
    if !can_trace() {
        return;
    }
    let (mut stopped, mut codes) = (0, BTreeSet::new());
    for when in 1..60 {
        let _case = telling(format!("case: fsync {when} fails"));
        let witness = Witness::start();
        let sale = sale(&witness);
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={when}");
        let run = traced(&sale, &["-e", "trace=fsync,fdatasync", "-e", &inject]);
        let fired = std::fs::read_to_string(sale.path("trace")).expect("a trace").contains("(INJECTED)");
        codes.insert(run.code());
        if run.code() == Some(74) {
            stopped += 1;
        } else {
            assert_eq!(run.code(), Some(0), "{}", run.told());
        }
        let ended = (0..3).any(|_| matches!(sale.run(&[]).code(), Some(0 | 4 | 6)));
        assert!(ended, "not at its end after three starts");
        assert_eq!(witness.tally(&sale, (2..PEOPLE + 2).map(phone)), Tally::default());
        witness.doubts(&sale);
        if !fired {
            break;
        }
    }
    assert!(stopped > 12, "only {stopped} failures stopped a run; codes {codes:?}");
}
