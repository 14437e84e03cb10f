//! Whether a list that is waited for is there, and whole: its size and its time stand still for a while.

use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// How long nothing may have changed.
const STABLE_TIME: Duration = Duration::from_secs(5);

/// What was seen of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStat {
    size: u64,
    changed: Option<SystemTime>,
}

impl FileStat {
    /// What a file looks like now; nothing where there is none.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let seen = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self { size: seen.len(), changed: seen.modified().ok() })
    }

    /// When it came, as far as it tells.
    pub(super) fn modified_at(self) -> Option<Timestamp> {
        self.changed.and_then(|changed| Timestamp::try_from(changed).ok())
    }
}

/// What was seen of a file last, and since when it has looked like that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListWatch(Option<(FileStat, Timestamp)>);

impl ListWatch {
    /// Takes a look; whether the file is whole.
    pub(super) fn is_stable(&mut self, sight: Option<FileStat>, now: Timestamp) -> bool {
        let Some(sight) = sight else {
            self.0 = None;
            return false;
        };
        match self.0 {
            // A clock that went back begins anew.
            Some((known, since)) if known == sight && since <= now => {
                now.duration_since(since).unsigned_abs() >= STABLE_TIME
            }
            _ => {
                self.0 = Some((sight, now));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_complete_after_five_unchanged_seconds() {
        let now = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let sight =
            |size, second| Some(FileStat { size, changed: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second)) });
        let mut watch = ListWatch::default();
        for (second, seen, whole) in [
            (0, None, false),
            (1, sight(10, 1), false),
            (5, sight(10, 1), false),
            (6, sight(20, 1), false),
            (10, sight(20, 9), false),
            (14, sight(20, 9), false),
            (15, sight(20, 9), true),
            (16, None, false),
            (17, sight(20, 9), false),
            (3, sight(20, 9), false),
            (8, sight(20, 9), true),
        ] {
            assert_eq!(watch.is_stable(seen, now(second)), whole, "{second}");
        }
    }
}
