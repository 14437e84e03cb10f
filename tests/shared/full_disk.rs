//! Full disk of the database server: all senders of a run stop with a message, and the run can continue when space is
//! free.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use super::shared_run::SharedRun;
use crate::support::{Cluster, until};

/// A small file system, unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system for the database server; `None`, with a notice, without root permission.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let run = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).arg(&folder).output().is_ok_and(|output| output.status.success())
        };
        if rustix::process::getuid().is_root() && run("mount", &["-t", "tmpfs", "-o", "size=32m", "none"]) {
            assert!(run("chown", &["postgres"]));
            return Some(Self(folder));
        }
        let _ = std::fs::remove_dir(&folder);
        let _ = writeln!(std::io::stderr(), "skipped: mounting a small disk needs root permission");
        None
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Fills the disk with another file.
    fn fill(&self) {
        let zeros = std::fs::File::open("/dev/zero").expect("zeros");
        let mut filler = std::fs::File::create(self.filler()).expect("a file");
        assert!(std::io::copy(&mut std::io::Read::take(zeros, 1 << 30), &mut filler).is_err(), "the disk is full");
    }

    fn free_space(&self) {
        std::fs::remove_file(self.filler()).expect("a file");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server might still be shutting down.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn full_database_disk_stops_all_workers_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else { return };
    let Some(cluster) = Cluster::start(&["max_connections=60"]) else { return };
    let ledger = cluster.create_database();
    cluster.run_sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", disk.0.display()));
    let name = ledger.rsplit('/').next().expect("a name");
    cluster.run_sql("postgres", &format!("ALTER DATABASE {name} SET TABLESPACE small"));
    let mut shared = SharedRun::start(&ledger, 900, 2);
    shared.wait_for_messages(60);
    disk.fill();
    let (code, output) = shared.wait_for_end(|_| {});
    assert!(code == Some(74) && output.contains("No space left on device"), "{output}");
    for worker in &mut shared.workers {
        until("the worker ends", || !worker.is_running());
    }
    let sent = shared.witness.arrivals();
    shared.sale.run(&[]).exits(74).says("No space left on device");
    assert!(sent < shared.rows && shared.witness.arrivals() == sent, "nothing is sent without a record");
    disk.free_space();
    for worker in shared.workers.drain(..) {
        worker.finish().exits(74).says("No space left on device");
    }
    shared.check_outcome(&cluster);
}
