//! A database whose disk is full: everybody who sends a run stops with a word, and goes on when there is room.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use super::crew::Crew;
use crate::support::{Cluster, until};

/// A small disk, as long as this is there.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// One that the database's server can use; nothing where nobody may make one, which is said.
    fn make() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let made = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).arg(&folder).output().is_ok_and(|made| made.status.success())
        };
        if rustix::process::getuid().is_root() && made("mount", &["-t", "tmpfs", "-o", "size=32m", "none"]) {
            assert!(made("chown", &["postgres"]));
            return Some(Self(folder));
        }
        let _ = std::fs::remove_dir(&folder);
        let _ = writeln!(std::io::stderr(), "skipped: this needs a small disk, which only the superuser may make");
        None
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Has somebody else fill it.
    fn fill(&self) {
        let zeros = std::fs::File::open("/dev/zero").expect("zeros");
        let mut filler = std::fs::File::create(self.filler()).expect("a file");
        assert!(std::io::copy(&mut std::io::Read::take(zeros, 1 << 30), &mut filler).is_err(), "it is full");
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("a file");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Its server may still be ending.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn full_database_disk_stops_all_workers_and_loses_nothing() {
    let Some(disk) = SmallDisk::make() else { return };
    let Some(cluster) = Cluster::start(&["max_connections=60"]) else { return };
    let ledger = cluster.database();
    cluster.say("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", disk.0.display()));
    let name = ledger.rsplit('/').next().expect("a name");
    cluster.say("postgres", &format!("ALTER DATABASE {name} SET TABLESPACE small"));
    let mut crew = Crew::begin(&ledger, 900, 2);
    crew.sends(60);
    disk.fill();
    let (code, told) = crew.ends(|_| {});
    assert!(code == Some(74) && told.contains("No space left on device"), "{told}");
    for worker in &mut crew.workers {
        until("the worker ends", || !worker.is_running());
    }
    let sent = crew.witness.arrived();
    crew.sale.run(&[]).exits(74).says("No space left on device");
    assert!(sent < crew.rows && crew.witness.arrived() == sent, "nothing leaves that is not recorded");
    disk.make_room();
    for worker in crew.workers.drain(..) {
        worker.finish().exits(74).says("No space left on device");
    }
    crew.judge(&cluster);
}
