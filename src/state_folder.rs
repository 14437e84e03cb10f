//! The choice of the state folder, which contains the ledger.
//!
//! A machine with a server has one ledger for all users: its system ledger, which the server and the members of a group
//! share. A second ledger would not know what the first one sent. Only this module knows where the system ledger is.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::exit::CommandFailure;
use campaign_core::finding::quote_for_shell;
use campaign_manifest::Destination;

/// The folder of the system ledger. Packages create it for the user and the group `campaign`.
pub(super) const SYSTEM_FOLDER: &str = "/var/lib/campaign";

/// The purpose for which a command opens the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LedgerPurpose {
    /// A rehearsal in the built-in sandbox, which other ledgers do not affect.
    Rehearsal,
    /// Records that apply to all runs on this machine, such as opt-outs, approvals and the rate of an account.
    SharedRecords,
    /// Messages to recipients, now or later.
    Sending,
}

impl LedgerPurpose {
    /// The purpose of a run, a plan or a single message that goes to `destination`.
    pub(super) fn from_destination(destination: &Destination) -> Self {
        if destination.is_live() { Self::Sending } else { Self::Rehearsal }
    }
}

/// The state folder of a command, and how it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StateFolder {
    /// The folder that an option or the environment names.
    Named(PathBuf),
    /// The user's own folder, on a machine without a system ledger.
    Own(PathBuf),
    /// The system ledger, which this user can change.
    System {
        /// The folder of the system ledger.
        system: PathBuf,
        /// The folder that this user would have without a system ledger.
        own: Option<PathBuf>,
    },
    /// The user's own folder, on a machine with a system ledger that this user cannot change.
    BesideSystem {
        /// The user's folder.
        own: PathBuf,
        /// The folder of the system ledger.
        system: PathBuf,
    },
}

impl StateFolder {
    /// Chooses the state folder. Returns `None` if no folder is named and this user has no home folder.
    pub(super) fn choose(named: Option<PathBuf>, system: &Path, own: Option<PathBuf>) -> Option<Self> {
        if let Some(named) = named {
            return Some(Self::Named(named));
        }
        let system = system.to_owned();
        match examine_system_folder(&system) {
            SystemFolder::Missing => own.map(Self::Own),
            SystemFolder::Usable => Some(Self::System { system, own }),
            SystemFolder::Closed => own.map(|own| Self::BesideSystem { own, system }),
        }
    }

    /// The path of the folder.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Own(path) => path,
            Self::System { system, .. } => system,
            Self::BesideSystem { own, .. } => own,
        }
    }
}

/// The user's own folder on this system.
pub(super) fn own_folder() -> Option<PathBuf> {
    dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("campaign"))
}

/// Whether the machine has a system ledger.
enum SystemFolder {
    Missing,
    /// This user can change the system ledger.
    Usable,
    /// This user cannot change the system ledger, or cannot see whether it exists.
    Closed,
}

/// Checks whether the system folder exists and this user can change it. The ledger is not examined: the folder can
/// exist before the ledger, and other users cannot look into the folder.
fn examine_system_folder(folder: &Path) -> SystemFolder {
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => SystemFolder::Missing,
        Ok(metadata) if !metadata.is_dir() => SystemFolder::Missing,
        Ok(_) if can_change(folder) => SystemFolder::Usable,
        Ok(_) | Err(_) => SystemFolder::Closed,
    }
}

/// Whether this process can list and change a folder.
#[cfg(unix)]
fn can_change(folder: &Path) -> bool {
    use rustix::fs::{Access, access};

    access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn can_change(_: &Path) -> bool {
    false
}

/// Creates the failure of a command that would use the user's own ledger beside the system ledger. The help names both
/// alternatives.
pub(super) fn second_ledger_failure(system: &Path) -> CommandFailure {
    let system = system.display();
    CommandFailure::invalid(format!(
        "this machine has a system ledger in `{system}` that you cannot use; if you use your own ledger, recipients \
         might get messages twice; nothing was sent or changed"
    ))
    .with_help(
        "to use the system ledger, ask an administrator to run `adduser NAME campaign`, then log in again; to use a \
         separate ledger that ignores the system ledger, add `--state-dir DIR`",
    )
}

/// Creates the failure of a command that would use the system ledger although the user's own ledger has live runs. The
/// help names both alternatives.
pub(super) fn earlier_ledger_failure(system: &Path, own: &Path, run: &str) -> CommandFailure {
    let (system, own, quoted) = (system.display(), own.display(), quote_for_shell(own));
    CommandFailure::invalid(format!(
        "your earlier ledger in `{own}` contains live runs, such as {run}, that the system ledger in `{system}` might not \
         contain; recipients might get messages twice; nothing was sent"
    ))
    .with_help(format!(
        "to continue with your earlier ledger, add `--state-dir {quoted}`; to send with the system ledger, move these \
         runs there with `ledger backup` and `ledger restore`, or accept that it does not contain them; in either \
         case, rename `{own}`"
    ))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn own_folder() -> PathBuf {
        PathBuf::from("/home/olena/.local/state/campaign")
    }

    #[test]
    fn named_folder_wins_over_the_system_ledger() {
        let system = tempfile::tempdir().unwrap();
        let named = PathBuf::from("elsewhere");
        let chosen = StateFolder::choose(Some(named.clone()), system.path(), Some(own_folder()));
        assert_eq!(chosen, Some(StateFolder::Named(named)));
    }

    #[test]
    fn user_folder_is_used_without_a_system_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("campaign");
        assert_eq!(StateFolder::choose(None, &missing, Some(own_folder())), Some(StateFolder::Own(own_folder())));
        std::fs::write(&missing, "").unwrap();
        assert_eq!(
            StateFolder::choose(None, &missing, Some(own_folder())),
            Some(StateFolder::Own(own_folder())),
            "a file"
        );
        assert_eq!(StateFolder::choose(None, &missing, None), None);
    }

    #[test]
    fn system_ledger_is_used_only_with_write_access() {
        let system = tempfile::tempdir().unwrap();
        let usable = StateFolder::System { system: system.path().to_owned(), own: None };
        assert_eq!(StateFolder::choose(None, system.path(), None), Some(usable));
        set_permissions(system.path(), Permissions::from_mode(0o500)).unwrap();
        // The superuser can change every folder.
        if !rustix::process::geteuid().is_root() {
            let beside = StateFolder::BesideSystem { own: own_folder(), system: system.path().to_owned() };
            assert_eq!(StateFolder::choose(None, system.path(), Some(own_folder())), Some(beside));
            assert_eq!(StateFolder::choose(None, system.path(), None), None);
        }
    }
}
