//! A shared run with its starter and workers on other machines, checked against the messages that arrived.

use super::ledger_address;
use crate::recovery::{Tally, Witness};
use crate::support::{Cluster, Folder, Process, campaign, phone, until, until_within};

use std::time::Duration;

/// The default rate of the shared runs in these tests, in messages per second.
pub(super) const RATE: usize = 100;
/// The number of operations per envelope.
pub(super) const BATCH: usize = 5;
/// The timeout for processes that wait for a database.
pub(super) const DATABASE_TIMEOUT: Duration = Duration::from_secs(240);

/// The starter and the workers of a shared run.
pub(super) struct SharedRun {
    pub(super) witness: Witness,
    pub(super) sale: Folder,
    pub(super) rows: usize,
    /// The shell commands that run before the workers, one for each machine.
    before: Vec<String>,
    pub(super) workers: Vec<Process>,
    pub(super) run: Process,
}

impl SharedRun {
    /// Starts workers on separate machines, then a shared run of `rows` rows over this ledger.
    pub(super) fn start(ledger: &str, rows: usize, workers: usize) -> Self {
        Self::start_after(ledger, rows, RATE, &vec!["true".to_owned(); workers])
    }

    /// Starts like [`Self::start`], with this rate. One worker starts after each of the shell commands in `before`.
    pub(super) fn start_after(ledger: &str, rows: usize, rate: usize, before: &[String]) -> Self {
        let witness = Witness::start();
        let draft = campaign().to(rows).batches_of(BATCH).delivery(&format!("rate: {rate}/s"));
        let sale = draft.through(&witness).write().with_database(ledger);
        let workers: Vec<Process> =
            (0..before.len()).map(|machine| start_worker(&sale, machine, &before[machine])).collect();
        for worker in &workers {
            until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
        }
        let run = sale.start(&["--shared"]);
        Self { witness, sale, rows, before: before.to_vec(), workers, run }
    }

    /// Waits until every worker has joined the run and `count` messages have arrived.
    pub(super) fn wait_for_messages(&mut self, count: usize) {
        for machine in 0..self.workers.len() {
            until("each worker joins the run", || self.workers[machine].stdout().contains("joined the run"));
        }
        until("enough messages have arrived", || self.witness.arrivals() >= count || !self.run.is_running());
        assert!(self.run.is_running(), "the run ended too early: {}", self.run.stderr());
    }

    /// Kills a worker and starts another one on the same machine.
    pub(super) fn replace_worker(&mut self, machine: usize) {
        let new = start_worker(&self.sale, machine, &self.before[machine]);
        drop(std::mem::replace(&mut self.workers[machine], new).kill());
    }

    /// Restarts workers that ended because the ledger was unavailable.
    pub(super) fn restart_ended_workers(&mut self) {
        for machine in 0..self.workers.len() {
            if !self.workers[machine].is_running() {
                let new = start_worker(&self.sale, machine, &self.before[machine]);
                std::mem::replace(&mut self.workers[machine], new).finish().exits(74);
            }
        }
    }

    /// Waits until the run ends, calling `meanwhile` repeatedly; returns its exit code and output.
    pub(super) fn wait_for_end(&mut self, meanwhile: impl Fn(&mut Self)) -> (Option<i32>, String) {
        until_within(DATABASE_TIMEOUT, "the run ends", || {
            meanwhile(self);
            !self.run.is_running()
        });
        let placeholder = Process::start(std::process::Command::new("true"));
        let ended = std::mem::replace(&mut self.run, placeholder).finish();
        (ended.code(), ended.details())
    }

    /// Stops all workers.
    pub(super) fn stop_workers(&mut self) {
        for mut worker in self.workers.drain(..) {
            worker.signal("TERM");
            let ended = worker.finish_within(DATABASE_TIMEOUT);
            assert!(matches!(ended.code(), Some(0 | 74)), "{}", ended.details());
        }
    }

    /// Resumes the run alone and asserts that every row agrees with the messages that arrived.
    /// Returns the number of rows in doubt.
    pub(super) fn check_outcome(&self, cluster: &Cluster) -> usize {
        super::expire_leases(cluster, &self.sale);
        let last = self.sale.run(&[]);
        assert!(matches!(last.code(), Some(0 | 4)), "{}", last.details());
        assert_eq!(self.witness.tally(&self.sale, self.recipients()), Tally::default());
        self.witness.doubts(&self.sale).len()
    }

    fn recipients(&self) -> impl Iterator<Item = u64> {
        (2..self.rows + 2).map(phone)
    }

    /// Runs statements in the ledger database and returns their output.
    pub(super) fn query_ledger(&self, cluster: &Cluster, statements: &str) -> String {
        cluster.run_sql(ledger_address(&self.sale), statements)
    }
}

/// Starts a worker with its own state folder.
fn start_worker(sale: &Folder, machine: usize, before: &str) -> Process {
    Process::start(sale.command_after(before, &["worker", "--state-dir", &format!("machine-{machine}")]))
}
