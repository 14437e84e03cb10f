//! One ledger for several machines, in a database: the same promises, whoever of them sends and whatever becomes of the others.

mod addresses;
mod backups;
mod broken_connections;
#[cfg(target_os = "linux")]
mod clocks;
mod composed;
mod copying;
mod crew;
mod database;
#[cfg(target_os = "linux")]
mod full;
mod machines;
mod pooler;
#[cfg(target_os = "linux")]
mod serving;
#[cfg(target_os = "linux")]
mod sleeping;
mod unfamiliar;
mod versions;
mod workers;
mod workers_and_database;

use crate::support::{Cluster, Draft, Finished, Folder, Process};

/// A campaign whose ledger is in a new database of a server.
fn over(cluster: &Cluster, draft: Draft) -> Folder {
    draft.write().over(&cluster.database())
}

/// The database of a campaign.
fn database(sale: &Folder) -> &str {
    sale.ledger().expect("a database")
}

/// Starts the binary as on another machine: with a state folder of its own.
fn start_elsewhere(sale: &Folder, arguments: &[&str]) -> Process {
    Process::start(sale.command(&[arguments, &["--state-dir", "elsewhere"]].concat()))
}

/// Runs the binary as on another machine.
fn elsewhere(sale: &Folder, arguments: &[&str]) -> Finished {
    start_elsewhere(sale, arguments).finish()
}

/// Has the lease of everything that is locked be over, as it is when nothing is heard of whoever has it.
fn let_leases_end(cluster: &Cluster, sale: &Folder) {
    cluster.say(database(sale), "UPDATE campaign.locks SET until = 0");
}

/// Has the leases of workers be over, and not that of whoever began the run: places of a campaign have a number behind its
/// name.
fn let_leases_end_of_workers(cluster: &Cluster, sale: &Folder) {
    let starter = "SELECT process FROM campaign.locks WHERE name !~ '[.][0-9]+$'";
    cluster.say(database(sale), &format!("UPDATE campaign.locks SET until = 0 WHERE process NOT IN ({starter})"));
}
