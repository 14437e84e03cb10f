//! Which process has the turn to write, as far as the system tells. It only looks.

use std::path::Path;

/// The process that has the turn to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteHolder {
    /// Its number.
    pub(super) process: u32,
    /// Whether it is suspended: it has the turn until somebody lets it go on.
    pub(super) suspended: bool,
}

/// The byte of the ledger's `-shm` file that is locked by who writes (SQLite, "The WAL-Index Format", 2.3).
const WRITE_LOCK: u64 = 120;

/// The process that has the turn to write the ledger at `path`; nothing where nobody has it, or the system does not tell.
#[cfg(target_os = "linux")]
pub(super) fn find_write_holder(path: &Path) -> Option<WriteHolder> {
    use std::os::unix::fs::MetadataExt as _;

    let mut shared = path.as_os_str().to_owned();
    shared.push("-shm");
    // Not opened: a process that closes a file loses its own locks on it.
    let inode = std::fs::metadata(Path::new(&shared)).ok()?.ino();
    let process = find_lock_owner(&std::fs::read_to_string("/proc/locks").ok()?, inode)?;
    let stopped = std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| is_suspended(&stat));
    Some(WriteHolder { process, suspended: stopped })
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn find_write_holder(_: &Path) -> Option<WriteHolder> {
    None
}

/// The process with the write lock on this inode: `1: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux lists its locks"))]
fn find_lock_owner(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        // A process that waits for a lock stands below it with an arrow.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", process, file, first, last] = words.as_slice() else { return None };
        let same = file.rsplit(':').next()?.parse() == Ok(inode);
        let last = if *last == "EOF" { u64::MAX } else { last.parse().ok()? };
        let held = (first.parse::<u64>().ok()?..=last).contains(&WRITE_LOCK);
        if same && held { process.parse().ok() } else { None }
    })
}

/// Whether a process is suspended, by its `/proc/N/stat`: `4711 (campaign) T …`; a name may hold brackets.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells"))]
fn is_suspended(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, after)| matches!(after.split_whitespace().next(), Some("T" | "t")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_lock_owner_is_found_in_proc_locks() {
        let locks = "\
1: FLOCK  ADVISORY  WRITE 99 fe:00:77 0 EOF
2: POSIX  ADVISORY  READ 12 fe:00:77 123 123
3: POSIX  ADVISORY  WRITE 13 fe:00:77 121 121
4: POSIX  ADVISORY  WRITE 14 fe:00:78 120 120
5: POSIX  ADVISORY  WRITE 4711 fe:00:77 120 120
5: -> POSIX  ADVISORY  WRITE 15 fe:00:77 120 120
6: POSIX  ADVISORY  WRITE 16 fe:00:79 0 EOF
";
        assert_eq!(find_lock_owner(locks, 77), Some(4711));
        assert_eq!(find_lock_owner(locks, 79), Some(16));
        assert_eq!(find_lock_owner(locks, 80), None);
        for (stat, stopped) in [("7 (campaign) T 1 7", true), ("7 (a) S) t 1", true), ("7 (T) S 1", false), ("", false)]
        {
            assert_eq!(is_suspended(stat), stopped, "{stat}");
        }
    }
}
