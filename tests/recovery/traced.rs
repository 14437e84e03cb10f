//! Order of fsyncs and sends in the system calls of a run, and failing fsyncs. Ignored by default: needs Linux and
//! `strace`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::witness::{Tally, Witness};
use crate::support::{Finished, Folder, Process, campaign, note_on_failure, phone};

/// The number of recipients of the campaign, in envelopes of 1, 4, 4 …
const RECIPIENTS: usize = 21;

/// Whether `strace` is installed and can trace; prints a message if not.
fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let is_available = tried.is_ok_and(|status| status.success());
    if !is_available {
        let _ = writeln!(std::io::stderr(), "skipped: this needs `strace`, and the right to trace");
    }
    is_available
}

fn write_sale(witness: &Witness) -> Folder {
    campaign().to(RECIPIENTS).batches_of(4).one_at_a_time().through(witness).write()
}

/// Runs the campaign under `strace` with these options; the trace is in `trace`.
fn run_traced(sale: &Folder, options: &[&str]) -> Finished {
    run_traced_with(sale, &[], options)
}

/// Runs the campaign with further arguments under `strace` with these options.
fn run_traced_with(sale: &Folder, arguments: &[&str], options: &[&str]) -> Finished {
    let run = sale.command(&[&["run", "sale.yaml", "--no-wait"], arguments].concat());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "65536", "-o", "trace"]).args(options).arg(run.get_program()).args(run.get_args());
    strace.current_dir(run.get_current_dir().expect("the folder")).env_clear().env("PATH", "/usr/bin:/bin");
    strace.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Process::start(strace).finish()
}

/// A traced call. Syncs are ordered by their ends, sends by their beginnings.
#[derive(Debug, PartialEq)]
enum Call {
    /// A write to the write-ahead log.
    Written,
    /// All previous log writes are on the disk.
    Synced,
    /// A request with messages begins.
    Sent,
}

/// The relevant calls in the trace of a run.
fn parse_calls(trace: &str) -> Vec<Call> {
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let (process, call) = line.split_once(' ').expect("a process and its call");
        let call = call.trim_start();
        let call_start = if let Some(call_start) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(process, call_start);
            call_start
        } else {
            call
        };
        let resumed = call.starts_with("<...").then(|| unfinished.remove(process).unwrap_or_default());
        let ended = resumed.or((call_start == call).then_some(call));
        let is_on_log = |call: &str| call.contains("ledger.sqlite-wal>");
        match ended {
            Some(ended) if ended.starts_with("fdatasync") || ended.starts_with("fsync") => {
                calls.extend(is_on_log(ended).then_some(Call::Synced));
            }
            Some(ended) if ended.starts_with("pwrite64") || ended.starts_with("write") && is_on_log(ended) => {
                calls.extend(is_on_log(ended).then_some(Call::Written));
            }
            _ => {}
        }
        let is_send = ["sendto(", "write(", "writev(", "sendmsg("].iter().any(|name| call_start.starts_with(name));
        calls.extend((resumed.is_none() && is_send && call_start.contains(r#"\"sms_message\""#)).then_some(Call::Sent));
    }
    calls
}

#[test]
#[ignore = "needs strace"]
fn intent_is_synced_before_its_request_is_sent() {
    if !can_trace() {
        return;
    }
    let witness = Witness::start();
    let sale = write_sale(&witness);
    let trace = "trace=fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg";
    run_traced(&sale, &["-e", trace]).exits(0);
    let calls = parse_calls(&std::fs::read_to_string(sale.path("trace")).expect("a trace"));
    let (mut is_written, mut is_synced, mut requests) = (false, false, 0);
    for call in &calls {
        match call {
            Call::Written => (is_written, is_synced) = (true, false),
            Call::Synced => is_synced = is_written,
            Call::Sent => {
                assert!(is_synced, "request {} went out with an unsynced log: {calls:?}", requests + 1);
                requests += 1;
                // The next request needs another commit.
                (is_written, is_synced) = (false, false);
            }
        }
    }
    assert_eq!(requests, 6);
}

#[test]
#[ignore = "needs strace"]
fn failed_fsync_stops_the_run_and_loses_nothing() {
    if !can_trace() {
        return;
    }
    let (mut stopped, mut codes) = (0, BTreeSet::new());
    for when in 1..60 {
        let _case = note_on_failure(format!("case: fsync {when} fails"));
        let witness = Witness::start();
        let sale = write_sale(&witness);
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={when}");
        let run = run_traced(&sale, &["-e", "trace=fsync,fdatasync", "-e", &inject]);
        let was_injected = std::fs::read_to_string(sale.path("trace")).expect("a trace").contains("(INJECTED)");
        codes.insert(run.code());
        if run.code() == Some(74) {
            stopped += 1;
        } else {
            assert_eq!(run.code(), Some(0), "{}", run.details());
        }
        let has_ended = (0..3).any(|_| matches!(sale.run(&[]).code(), Some(0 | 3 | 4)));
        assert!(has_ended, "the run did not end in three starts");
        assert_eq!(witness.tally(&sale, (2..RECIPIENTS + 2).map(phone)), Tally::default());
        witness.doubts(&sale);
        if !was_injected {
            break;
        }
    }
    assert!(stopped > 12, "only {stopped} failures stopped a run; codes {codes:?}");
}

/// Paths in a trace: created or renamed, opened, synced, and the line of the first request.
#[derive(Debug, Default)]
struct TracedPaths {
    /// Created folders and renamed files, with their lines in the trace.
    created: Vec<(usize, PathBuf)>,
    /// Files opened by SQLite.
    opened: Vec<(usize, PathBuf)>,
    /// Synced folders and files.
    synced: Vec<(usize, PathBuf)>,
    first_request: usize,
}

impl TracedPaths {
    fn of(trace: &str, sale: &Folder) -> Self {
        let mut paths = Self { first_request: usize::MAX, ..Self::default() };
        for (line, call) in trace.lines().enumerate() {
            let call = call.split_once(' ').expect("a process and its call").1.trim_start();
            let quoted: Vec<&str> = call.split('"').skip(1).step_by(2).collect();
            let path = |name: &&str| (line, sale.path(name));
            // Calls from other threads can split the trace line of a call.
            let has_succeeded = call.ends_with(" = 0") || call.ends_with("<unfinished ...>");
            if (call.starts_with("mkdir") || call.starts_with("rename")) && has_succeeded {
                paths.created.extend(quoted.last().map(path));
            } else if call.starts_with("open") && call.contains("O_CREAT") && call.contains("ledger.sqlite") {
                paths.opened.extend(quoted.last().map(path));
            } else if call.starts_with("fsync") || call.starts_with("fdatasync") {
                let synced = call.split(['<', '>']).nth(1).expect("a path");
                paths.synced.push((line, PathBuf::from(synced)));
            } else if call.contains(r#"\"sms_message\""#) {
                paths.first_request = paths.first_request.min(line);
            }
        }
        paths
    }

    /// Whether the parent folder of the path was synced between these lines.
    fn is_synced_between(&self, path: &Path, lines: std::ops::Range<usize>) -> bool {
        let parent = path.parent().expect("a folder").canonicalize().expect("a folder");
        self.synced.iter().any(|(line, synced)| lines.contains(line) && *synced == parent)
    }
}

#[test]
#[ignore = "needs strace"]
fn files_of_a_run_are_synced_before_its_first_request() {
    if !can_trace() {
        return;
    }
    let witness = Witness::start();
    let sale = write_sale(&witness);
    let state = sale.path("deep/er/state");
    let trace = "trace=mkdir,mkdirat,rename,renameat,renameat2,open,openat,fsync,fdatasync,write,writev,sendto,sendmsg";
    run_traced_with(&sale, &["--state-dir", state.to_str().expect("UTF-8")], &["-e", trace]).exits(0);
    let paths = TracedPaths::of(&std::fs::read_to_string(sale.path("trace")).expect("a trace"), &sale);
    let is_created = |name: &str| paths.created.iter().any(|(_, path)| path.ends_with(name));
    for name in ["deep", "deep/er", "deep/er/state", "state/runs", "runs/sale@1", "state/locks", "state/ledger.mark"] {
        assert!(is_created(name), "{name}: {paths:?}");
    }
    for (line, path) in
        paths.created.iter().filter(|(line, path)| *line < paths.first_request && path.starts_with(sale.path("deep")))
    {
        // Temporary files are renamed later.
        if !path.to_string_lossy().contains("/.new-") && !path.to_string_lossy().contains("ledger.mark") {
            assert!(paths.is_synced_between(path, *line..paths.first_request), "{}: {paths:?}", path.display());
        }
    }
    let (named, _) = paths.created.iter().find(|(_, path)| path.ends_with("runs/sale@1")).expect("the run's folder");
    for copy in ["recipients.csv", "frozen.json"] {
        let is_synced = paths.synced.iter().any(|(line, path)| line < named && path.ends_with(copy));
        assert!(is_synced, "{copy} is not synced before its folder is renamed: {paths:?}");
    }
    assert!(paths.opened.iter().any(|(_, path)| path.ends_with("ledger.sqlite-wal")), "{paths:?}");
    for (line, path) in &paths.opened[..1] {
        assert!(paths.is_synced_between(path, *line..paths.first_request), "{}: {paths:?}", path.display());
    }
    let (line, results) = paths.created.iter().rfind(|(_, path)| path.ends_with("sale.csv")).expect("results");
    assert!(paths.is_synced_between(results, *line..usize::MAX), "{paths:?}");
}
