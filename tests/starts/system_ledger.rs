//! The system ledger, which a server and the members of its group share: no command sends with a second ledger.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::{Finished, Folder, Gateway, Process, campaign, in_files, phone};

/// The variable with the folder of the system ledger, which only the test program reads.
const SYSTEM_FOLDER: &str = "CAMPAIGN_SYSTEM_FOLDER";

/// A command in a shell on a machine with this system folder. The user of the shell names no state folder.
fn shell_command(sale: &Folder, system: &str, arguments: &[&str]) -> Command {
    let mut command = sale.command(arguments);
    command.env_remove("CAMPAIGN_STATE_DIR").env(SYSTEM_FOLDER, sale.path(system));
    command
}

fn run_in_shell(sale: &Folder, system: &str, arguments: &[&str]) -> Finished {
    Process::start(shell_command(sale, system, arguments)).finish()
}

/// Creates the folder of a system ledger that the user of the tests can change.
fn create_system_folder(sale: &Folder) {
    fs::create_dir(sale.path("system")).expect("a folder");
    fs::set_permissions(sale.path("system"), Permissions::from_mode(0o2770)).expect("its mode");
}

/// Creates a system folder that not even the superuser can open: a symbolic link to itself.
fn create_closed_folder(sale: &Folder) {
    std::os::unix::fs::symlink("closed", sale.path("closed")).expect("a link");
}

/// The default state folder of the user.
fn own_folder(sale: &Folder) -> std::path::PathBuf {
    sale.path("home/.local/state/campaign")
}

#[test]
fn shell_and_server_share_one_system_ledger() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    create_system_folder(&sale);
    run_in_shell(&sale, "system", &["run", "sale.yaml", "--limit", "1"]).exits(0);
    assert!(sale.path("system/ledger.sqlite").exists() && !own_folder(&sale).exists());
    // The server's systemd unit sets the state folder.
    let run_as_server = |arguments: &[&str]| {
        let mut command = shell_command(&sale, "system", arguments);
        command.env("CAMPAIGN_STATE_DIR", sale.path("system"));
        Process::start(command).finish()
    };
    run_as_server(&["run", "sale.yaml"]).exits(0).says("3 accepted");
    run_in_shell(&sale, "system", &["run", "sale.yaml"]).exits(0).says("no recipients are left");
    assert_eq!(gateway.phones(), (2..5).map(phone).collect::<Vec<_>>());
    run_in_shell(&sale, "system", &["suppress", "add", "+380501234567"]).exits(0);
    assert!(run_as_server(&["suppress", "list"]).exits(0).stdout.contains("380501234567"));
}

#[test]
fn nothing_is_sent_without_access_to_the_system_ledger() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).top("timezone: Europe/Kyiv").write();
    create_closed_folder(&sale);
    for arguments in [
        &["run", "sale.yaml"][..],
        &["run", "sale.yaml", "--new-ledger"],
        &["plan", "sale.yaml"],
        &["test", "sale.yaml", "--to", "+380501234567"],
        &["schedule", "add", "sale.yaml"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["worker"],
        &["connector", "--listen", "127.0.0.1:0"],
        &["connector", "--listen", "127.0.0.1:0", "--allow-send"],
        &["gateway", "lookup", "+380501234567"],
        &["gateway", "balance"],
        &["suppress", "add", "+380501234567"],
        &["forget", "+380501234567", "--yes"],
        &["ledger", "restore", "backup"],
    ] {
        let refused = run_in_shell(&sale, "closed", arguments).exits(2);
        refused.says("this machine has a system ledger").says("adduser NAME campaign").says("--state-dir DIR");
    }
    assert!(gateway.requests().is_empty() && !own_folder(&sale).exists());
    let status = run_in_shell(&sale, "closed", &["status"]).exits(0);
    status.says("this is your own ledger").says("only members of the `campaign` group");
    run_in_shell(&sale, "closed", &["run", "sale.yaml", "--dry-run"]).exits(0);
    run_in_shell(&sale, "closed", &["run", "sale.yaml", "--gateway", "sandbox"]).exits(0).says("rehearsal");
    run_in_shell(&sale, "closed", &["run", "sale.yaml", "--state-dir", "named"]).exits(0).says("2 accepted");
}

#[test]
fn retry_is_refused_without_access_to_the_system_ledger() {
    let _files = in_files();
    let gateway =
        Gateway::always(crate::support::Answer::items(|operation| crate::support::rejected(operation, "No route")));
    let sale = campaign().to(2).through(&gateway).write();
    run_in_shell(&sale, "missing", &["run", "sale.yaml"]).exits(3);
    create_closed_folder(&sale);
    run_in_shell(&sale, "closed", &["retry", "sale", "--yes"]).exits(2).says("this machine has a system ledger");
    assert_eq!(gateway.phones().len(), 2);
}

#[test]
fn run_in_an_earlier_user_ledger_is_not_sent_again() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    run_in_shell(&sale, "missing", &["run", "sale.yaml", "--gateway", "sandbox"]).exits(0);
    create_system_folder(&sale);
    run_in_shell(&sale, "system", &["test", "sale.yaml", "--to", "+380501234567"]).exits(0);
    run_in_shell(&sale, "missing", &["run", "sale.yaml", "--limit", "1"]).exits(0);
    for arguments in [&["run", "sale.yaml"][..], &["plan", "sale.yaml"]] {
        let refused = run_in_shell(&sale, "system", arguments).exits(2);
        refused.says("your earlier ledger in").says("sale@").says("--state-dir");
    }
    assert_eq!(gateway.phones().len(), 2, "the test and the first recipient");
    run_in_shell(&sale, "system", &["suppress", "add", "+380501234567"]).exits(0);
    let own = own_folder(&sale);
    let own = own.to_str().expect("UTF-8");
    run_in_shell(&sale, "system", &["run", "sale.yaml", "--state-dir", own]).exits(0).says("3 accepted");
    assert_eq!(gateway.phones().len(), 4, "each recipient got one message");
    fs::rename(own, sale.path("earlier")).expect("the folder is renamed");
    // The results still show that messages were sent from another ledger.
    run_in_shell(&sale, "system", &["run", "sale.yaml"]).exits(74).says("does not contain all messages");
    assert_eq!(gateway.phones().len(), 4);
}

/// The paths and modes of everything in a folder.
fn list_modes(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let mode = fs::metadata(&path).expect("its mode").permissions().mode() & 0o7777;
        found.push((path.display().to_string(), mode));
        if path.is_dir() {
            found.extend(list_modes(&path));
        }
    }
    found
}

#[test]
fn group_can_change_everything_in_a_shared_state_folder() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    for umask in ["umask 077", "umask 022"] {
        let sale = campaign().to(3).through(&gateway).write();
        create_system_folder(&sale);
        fs::create_dir(sale.path("results")).expect("a folder");
        fs::set_permissions(sale.path("results"), Permissions::from_mode(0o2770)).expect("its mode");
        // The process dies and leaves the ledger's log and index in its folder.
        let mut command = sale.command_after(umask, &["run", "sale.yaml", "--limit", "1"]);
        command.env("CAMPAIGN_STATE_DIR", sale.path("system")).env("CAMPAIGN_FAILPOINT", "intent.kept:1");
        Process::start(command).finish();
        for end in ["", "-wal", "-shm"] {
            assert!(sale.path(&format!("system/ledger.sqlite{end}")).exists(), "ledger.sqlite{end}");
        }
        let mut command = sale.command_after(umask, &["run", "sale.yaml", "--no-wait"]);
        command.env("CAMPAIGN_STATE_DIR", sale.path("system"));
        Process::start(command).finish();
        let mut command = sale.command_after(umask, &["serve", "link", "--for", "Olena"]);
        command.env("CAMPAIGN_STATE_DIR", sale.path("system"));
        Process::start(command).finish();
        let modes = list_modes(&sale.path("system"));
        assert!(modes.iter().any(|(path, _)| path.ends_with("recipients.csv")), "{modes:?}");
        for (path, mode) in modes.into_iter().chain(list_modes(&sale.path("results"))) {
            let expected = if Path::new(&path).is_dir() { 0o2770 } else { 0o660 };
            assert_eq!(mode, expected, "{path}: {mode:o} after {umask}");
        }
    }
}
