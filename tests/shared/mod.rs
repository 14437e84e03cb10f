//! Shared ledger in PostgreSQL: several machines, leases, database failures, upgrades and moves.

mod addresses;
mod backups;
mod broken_connections;
#[cfg(target_os = "linux")]
mod clocks;
mod composed;
mod copying;
mod database;
#[cfg(target_os = "linux")]
mod full_disk;
mod machines;
mod pooler;
#[cfg(target_os = "linux")]
mod serving;
mod shared_run;
#[cfg(target_os = "linux")]
mod sleeping;
mod unfamiliar;
mod versions;
mod workers;
mod workers_and_database;

use crate::support::{Cluster, Draft, Finished, Folder, Process};

/// Writes a campaign whose ledger is a new database of this server.
fn write_in_database(cluster: &Cluster, draft: Draft) -> Folder {
    draft.write().with_database(&cluster.create_database())
}

/// The address of a campaign's ledger database.
fn ledger_address(sale: &Folder) -> &str {
    sale.ledger().expect("a database")
}

/// Starts the binary with its own state folder, as on another machine.
fn start_elsewhere(sale: &Folder, arguments: &[&str]) -> Process {
    Process::start(sale.command(&[arguments, &["--state-dir", "elsewhere"]].concat()))
}

/// Runs the binary with its own state folder, as on another machine.
fn run_elsewhere(sale: &Folder, arguments: &[&str]) -> Finished {
    start_elsewhere(sale, arguments).finish()
}

/// Expires all leases, as if their holders were silent for too long.
fn expire_leases(cluster: &Cluster, sale: &Folder) {
    cluster.run_sql(ledger_address(sale), "UPDATE campaign.locks SET until = 0");
}

/// Expires the leases of workers but not that of the starter. Shard locks end with a number after the campaign's name.
fn expire_worker_leases(cluster: &Cluster, sale: &Folder) {
    let starter = "SELECT process FROM campaign.locks WHERE name !~ '[.][0-9]+$'";
    cluster.run_sql(
        ledger_address(sale),
        &format!("UPDATE campaign.locks SET until = 0 WHERE process NOT IN ({starter})"),
    );
}
