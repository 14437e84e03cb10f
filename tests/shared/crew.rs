//! A crew: whoever began a shared run, and workers of other machines that send it too, judged by what arrived.

use super::database;
use crate::recovery::{Tally, Witness};
use crate::support::{Cluster, Folder, Process, campaign, phone, until, until_within};

use std::time::Duration;

/// Messages a second of everybody together, where nothing else is said.
pub(super) const RATE: usize = 100;
/// Operations of an envelope.
pub(super) const BATCH: usize = 5;
/// How long somebody may take who has to wait for a database as long as it is waited for.
pub(super) const LONG: Duration = Duration::from_secs(240);

/// Who sends a run together.
pub(super) struct Crew {
    pub(super) witness: Witness,
    pub(super) sale: Folder,
    pub(super) rows: usize,
    /// What a shell does before each worker starts.
    before: Vec<String>,
    pub(super) workers: Vec<Process>,
    pub(super) run: Process,
}

impl Crew {
    /// So many workers, each of a machine of its own, and whoever begins a run of so many rows; over this ledger.
    pub(super) fn begin(ledger: &str, rows: usize, workers: usize) -> Self {
        Self::begin_after(ledger, (rows, RATE), &vec!["true".to_owned(); workers])
    }

    /// The same at another rate, each worker started by a shell after it did this.
    pub(super) fn begin_after(ledger: &str, (rows, rate): (usize, usize), before: &[String]) -> Self {
        let witness = Witness::start();
        let draft = campaign().to(rows).batches_of(BATCH).delivery(&format!("rate: {rate}/s"));
        let sale = draft.through(&witness).write().over(ledger);
        let workers: Vec<Process> = (0..before.len()).map(|machine| start(&sale, machine, &before[machine])).collect();
        for worker in &workers {
            until("the worker looks for runs", || worker.stdout().contains("sends shards of runs"));
        }
        let run = sale.start(&["--shared"]);
        Self { witness, sale, rows, before: before.to_vec(), workers, run }
    }

    /// Waits until every worker takes shares, and so many messages arrived.
    pub(super) fn sends(&mut self, arrived: usize) {
        for at in 0..self.workers.len() {
            until("each worker takes shares", || self.workers[at].stdout().contains("joined the run"));
        }
        until("so many arrived", || self.witness.arrived() >= arrived || !self.run.is_running());
        assert!(self.run.is_running(), "it was through before: {}", self.run.stderr());
    }

    /// Kills a worker, and starts another one on its machine.
    pub(super) fn replace(&mut self, machine: usize) {
        let new = start(&self.sale, machine, &self.before[machine]);
        drop(std::mem::replace(&mut self.workers[machine], new).kill());
    }

    /// Starts each worker again that has ended, which it does for want of a ledger alone.
    pub(super) fn keep_up(&mut self) {
        for machine in 0..self.workers.len() {
            if !self.workers[machine].is_running() {
                let new = start(&self.sale, machine, &self.before[machine]);
                std::mem::replace(&mut self.workers[machine], new).finish().exits(74);
            }
        }
    }

    /// Waits for the end of the run, whatever has to be done meanwhile; its code, and what it told.
    pub(super) fn ends(&mut self, meanwhile: impl Fn(&mut Self)) -> (Option<i32>, String) {
        until_within(LONG, "the run ends", || {
            meanwhile(self);
            !self.run.is_running()
        });
        let nobody = Process::start(std::process::Command::new("true"));
        let ended = std::mem::replace(&mut self.run, nobody).finish();
        (ended.code(), ended.told())
    }

    /// Has the workers end, as they do when they are told to or their ledger is gone.
    pub(super) fn workers_end(&mut self) {
        for mut worker in self.workers.drain(..) {
            worker.signal("TERM");
            let ended = worker.finish_within(LONG);
            assert!(matches!(ended.code(), Some(0 | 74)), "{}", ended.told());
        }
    }

    /// Goes on with the run once more, with nobody else there: every row comes to an end that is true to what arrived.
    /// How many are in doubt then.
    pub(super) fn judge(&self, cluster: &Cluster) -> usize {
        super::let_leases_end(cluster, &self.sale);
        let last = self.sale.run(&[]);
        assert!(matches!(last.code(), Some(0 | 4)), "{}", last.told());
        assert_eq!(self.witness.tally(&self.sale, self.people()), Tally::default());
        self.witness.doubts(&self.sale).len()
    }

    fn people(&self) -> impl Iterator<Item = u64> {
        (2..self.rows + 2).map(phone)
    }

    /// What the database says, in the campaign's ledger.
    pub(super) fn say(&self, cluster: &Cluster, statements: &str) -> String {
        cluster.say(database(&self.sale), statements)
    }
}

/// Starts a worker as on a machine of its own.
fn start(sale: &Folder, machine: usize, before: &str) -> Process {
    Process::start(sale.command_after(before, &["worker", "--state-dir", &format!("machine-{machine}")]))
}
