//! `campaign doctor`: one planted fault per check, its remedy, and the exit code of the most serious fault.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::{
    Answer, Clock, Finished, Folder, Gateway, Process, Reachable as _, SandboxProcess, Terminal, campaign, denied,
    in_files, note_on_failure, run_sql, unreachable_url, with_ledger,
};

/// The path of the ledger in the folder of a test.
const LEDGER: &str = "state/ledger.sqlite";

/// A folder with a campaign that was sent through a sandbox.
fn sent_campaign(sandbox: &SandboxProcess) -> Folder {
    let sale = campaign().through(sandbox).write();
    sale.run(&[]).exits(0);
    sale
}

/// Whether no request to a gateway contains a recipient.
fn has_no_messages(gateway: &Gateway) -> bool {
    gateway.requests().iter().all(|request| request.phones().is_empty())
}

/// The result of one check.
fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let checks = report["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no check {name}: {report:#}"))
}

/// The `doctor` command in a known time zone.
fn doctor_command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = folder.command(&[&["doctor"], arguments].concat());
    command.env("TZ", "Europe/Kyiv");
    command
}

/// Runs `doctor` with JSON output.
fn run_doctor(folder: &Folder, arguments: &[&str]) -> Finished {
    Process::start(doctor_command(folder, &[arguments, &["--json"]].concat())).finish()
}

/// Runs `doctor` with JSON output in a shell, after the shell command `prepare`.
fn run_doctor_after(folder: &Folder, prepare: &str) -> Finished {
    Process::start(folder.command_after(&format!("export TZ=Europe/Kyiv; {prepare}"), &["doctor", "--json"])).finish()
}

/// Fails unless only this check reports a fault, with this status and a remedy, and the command exits with this code.
#[track_caller]
fn assert_only_fault(finished: &Finished, name: &str, status: &str, code: i32) {
    let report = finished.json();
    assert_eq!((finished.code(), &report["exit"]), (Some(code), &json!(code)), "{}", finished.details());
    let found = check(&report, name);
    assert_eq!(found["status"], status, "{}", finished.details());
    assert!(found["help"].as_str().is_some_and(|help| !help.is_empty()), "a remedy: {}", finished.details());
    let others = report["checks"].as_array().expect("checks").iter();
    let wrong: Vec<&Value> = others
        .filter(|other| {
            other["check"] != name && !["ok", "skipped"].contains(&other["status"].as_str().expect("a word"))
        })
        .collect();
    assert!(wrong.is_empty(), "only `{name}` has a fault: {wrong:#?}");
}

#[test]
fn healthy_setup_passes_every_check() {
    let _files = in_files();
    let sandbox = SandboxProcess::start();
    let sale = sent_campaign(&sandbox);
    let journal = sandbox.messages();
    let report = run_doctor(&sale, &[]).exits(0).json();
    for name in ["state-folder", "disk", "ledger", "clock", "gateway", "key", "time-zone", "permissions"] {
        assert_eq!(check(&report, name)["status"], "ok", "{report:#}");
    }
    assert_eq!(check(&report, "webhook")["status"], "skipped", "the profile has no hook");
    assert_eq!((&report["version"], check(&report, "key")["gateway"].as_str()), (&json!(1), Some("local")));
    assert_eq!(sandbox.messages(), journal, "the check sends no messages");
}

#[test]
fn doctor_creates_no_state_folder_and_no_ledger() {
    let _files = in_files();
    let folder = Folder::new(true);
    let report = run_doctor(&folder, &[]).exits(0).json();
    assert_eq!(check(&report, "ledger")["status"], "ok");
    assert_eq!(check(&report, "profiles")["status"], "skipped");
    let gateway = Gateway::accepting();
    folder.write(
        "gateways.yaml",
        &format!("local: {{ base_url: \"{}\", api_key: {{ env: STORY_KEY }} }}\n", gateway.base_url()),
    );
    let report = run_doctor(&folder, &[]).exits(0).json();
    assert_eq!(check(&report, "key")["status"], "ok", "{report:#}");
    assert!(!folder.path("state").exists() && !folder.path("home").exists());
    assert!(has_no_messages(&gateway));
}

#[test]
fn state_folder_or_disk_fault_exits_with_the_storage_code() {
    let folder = Folder::new(true);
    folder.write("a-file", "");
    assert_only_fault(&run_doctor(&folder, &["--state-dir", "a-file"]), "state-folder", "failed", 74);
    fs::create_dir(folder.path("state")).expect("a folder");
    fs::set_permissions(folder.path("state"), Permissions::from_mode(0o700)).expect("a mode");
    // A file-size limit acts like a full disk: 8 KiB are enough for the output.
    let full = run_doctor_after(&folder, "ulimit -f 16");
    assert_only_fault(&full, "disk", "failed", 74);
}

#[test]
fn ledger_fault_exits_with_the_storage_code_without_repairs() {
    let _files = in_files();
    let sandbox = SandboxProcess::start();
    let damage = |sale: &Folder| {
        let mut bytes = fs::read(sale.path(LEDGER)).expect("a ledger");
        let at = bytes.len() / 4;
        bytes[at..].fill(0xa5);
        fs::write(sale.path(LEDGER), bytes).expect("a ledger");
    };
    let delete = |sale: &Folder| fs::remove_file(sale.path(LEDGER)).expect("a ledger");
    let delete_mark = |sale: &Folder| fs::remove_file(sale.path("state/ledger.mark")).expect("a mark");
    let mark_as_newer = |sale: &Folder| {
        let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (999, 'newer', 1, x'00', 0)";
        with_ledger(sale, async |ledger| run_sql(ledger, newer).await);
    };
    type PlantFault<'a> = &'a dyn Fn(&Folder);
    let faults: [(&str, PlantFault<'_>); 4] = [
        ("damaged", &damage),
        ("deleted", &delete),
        ("without its mark", &delete_mark),
        ("of a newer version", &mark_as_newer),
    ];
    for (what, plant) in faults {
        let _case = note_on_failure(format!("a ledger {what}"));
        let sale = sent_campaign(&sandbox);
        plant(&sale);
        let before = fs::read(sale.path(LEDGER)).ok();
        let finished = run_doctor(&sale, &[]);
        assert_only_fault(&finished, "ledger", "failed", 74);
        let key = check(&finished.json(), "key")["status"].clone();
        assert_eq!(key, "skipped", "the trusted host is unknown");
        assert_eq!(fs::read(sale.path(LEDGER)).ok(), before, "nothing is repaired");
    }
}

#[test]
fn ledger_from_an_earlier_version_is_reported_and_not_upgraded() {
    let _files = in_files();
    let sandbox = SandboxProcess::start();
    let sale = sent_campaign(&sandbox);
    let older = "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)";
    with_ledger(&sale, async |ledger| run_sql(ledger, older).await);
    let before = fs::read(sale.path(LEDGER)).expect("a ledger");
    assert_only_fault(&run_doctor(&sale, &[]), "ledger", "warning", 0);
    assert_eq!(fs::read(sale.path(LEDGER)).expect("a ledger"), before);
}

#[test]
fn wrong_clock_is_detected_from_gateway_or_ledger_times() {
    let _files = in_files();
    let (sandbox, clock) = (SandboxProcess::start(), Clock::new());
    let sale = sent_campaign(&sandbox);
    let ahead = clock.set_to(Timestamp::now() + SignedDuration::from_mins(10));
    let finished = run_doctor_after(&sale, &ahead);
    assert_only_fault(&finished, "clock", "failed", 2);
    finished.says("ahead of the clock of local");
    let behind = clock.set_to(Timestamp::now() - SignedDuration::from_mins(10));
    let finished = run_doctor_after(&sale, &behind);
    assert_only_fault(&finished, "clock", "failed", 2);
    finished.says("according to the ledger, sale@1 began at");
}

#[test]
fn unknown_time_zone_is_a_warning() {
    let folder = Folder::new(true);
    let mut command = doctor_command(&folder, &["--json"]);
    command.env("TZ", "Europe/Nowhere");
    let finished = Process::start(command).finish();
    assert_only_fault(&finished, "time-zone", "warning", 0);
    finished.says("`Europe/Nowhere`, which is not a valid time zone");
}

#[test]
fn gateway_fault_has_the_exit_code_of_its_kind() {
    let _files = in_files();
    let refusing = Gateway::always(Answer::from_request(|_| denied()));
    let accepting = Gateway::accepting();
    let profile = |url: &str, rest: &str| format!("local: {{ base_url: \"{url}\", {rest} }}\n");
    let key = "api_key: { env: STORY_KEY }";
    let unreachable_hook =
        format!("{key}, hook: {{ public_url: \"{}\", secret: {{ env: HOOK_SECRET }} }}", unreachable_url());
    for (gateways, name, code) in [
        (profile(&unreachable_url(), key), "gateway", 5),
        (profile(&refusing.base_url(), key), "key", 7),
        (profile(&accepting.base_url(), "api_key: { env: NOT_SET }"), "key", 2),
        (profile(&accepting.base_url(), &unreachable_hook), "webhook", 5),
        (profile(&accepting.base_url(), "api_key: typed"), "profiles", 2),
        ("local: [\n".to_owned(), "profiles", 2),
    ] {
        let _case = note_on_failure(format!("case: {gateways}"));
        let folder = Folder::new(true);
        folder.write("gateways.yaml", &gateways);
        let mut command = doctor_command(&folder, &["--json"]);
        command.env("HOOK_SECRET", "s".repeat(32));
        assert_only_fault(&Process::start(command).finish(), name, "failed", code);
    }
    assert!(has_no_messages(&accepting) && has_no_messages(&refusing));
}

#[test]
fn key_is_not_sent_to_a_changed_host() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let folder = Folder::new(true);
    let profile = |url: &str| format!("local: {{ base_url: \"{url}\", rate: 10/s, api_key: {{ env: STORY_KEY }} }}\n");
    folder.write("gateways.yaml", &profile("https://gateway.invalid"));
    folder.campaign(&["gateway", "trust", "local"]).exits(0);
    folder.write("gateways.yaml", &profile(&gateway.base_url()));
    let finished = run_doctor(&folder, &[]);
    assert_only_fault(&finished, "key", "failed", 2);
    finished.says("gateway trust local");
    assert!(gateway.requests().iter().all(|request| request.body.is_empty()), "no request contains the key");
}

#[test]
fn files_accessible_to_other_users_are_reported() {
    let _files = in_files();
    let sandbox = SandboxProcess::start();
    for (path, mode, status, code) in [
        ("gateways.yaml", 0o666, "failed", 2),
        ("state", 0o777, "failed", 2),
        (LEDGER, 0o666, "failed", 2),
        ("state", 0o755, "warning", 0),
        (LEDGER, 0o644, "warning", 0),
    ] {
        let sale = sent_campaign(&sandbox);
        fs::set_permissions(sale.path(path), Permissions::from_mode(mode)).expect("a mode");
        let finished = run_doctor(&sale, &[]);
        assert_only_fault(&finished, "permissions", status, code);
        let finished = finished.says("chmod");
        assert!(!finished.stderr.contains("everyone"), "only the report says it: {}", finished.details());
    }
}

#[test]
fn most_serious_fault_decides_the_exit_code() {
    let _files = in_files();
    let gateway = Gateway::always(Answer::from_request(|_| denied()));
    let folder = Folder::new(true);
    let refused = format!("refused: {{ base_url: \"{}\", api_key: {{ env: STORY_KEY }} }}\n", gateway.base_url());
    let away = format!("away: {{ base_url: \"{}\", api_key: {{ env: STORY_KEY }} }}\n", unreachable_url());
    folder.write("gateways.yaml", &format!("{refused}{away}"));
    run_doctor(&folder, &["--gateway", "away"]).exits(5);
    run_doctor(&folder, &["--gateway", "refused"]).exits(7);
    run_doctor(&folder, &[]).exits(7);
    folder.write("gateways.yaml", &format!("{refused}{away}invalid: {{ base_url: 7 }}\n"));
    run_doctor(&folder, &[]).exits(2);
    folder.write("a-file", "");
    run_doctor(&folder, &["--state-dir", "a-file"]).exits(74);
    run_doctor(&folder, &["--gateway", "nobody"]).exits(2).says("there is no gateway `nobody`");
    run_doctor(&folder, &["--gateway", "sandbox"]).exits(2);
}

#[test]
fn report_fits_80_columns_and_needs_no_colour() {
    let _files = in_files();
    let gateway = Gateway::always(Answer::from_request(|_| denied()));
    let sale = campaign().through(&gateway).write();
    let run_on_terminal = |variable: &str| {
        let mut command = doctor_command(&sale, &[]);
        command.env(variable, "1").env("TZ", "Europe/Nowhere");
        Terminal::start_on(80, command).finish_with_output().1
    };
    let (plain, coloured) = (run_on_terminal("NO_COLOR"), run_on_terminal("CLICOLOR_FORCE"));
    for (mark, label) in [("✓", "state folder"), ("!", "time zone"), ("✗", "key"), ("·", "webhook")] {
        assert!(plain.contains(&format!("{mark} {label}")), "no {label} in {plain}");
    }
    assert!(plain.contains("1 problem, 1 warning"), "{plain}");
    let lines = plain.lines().map(|line| line.trim_end().rsplit('\r').next().unwrap_or_default());
    let long: Vec<&str> = lines.filter(|line| line.chars().count() > 80 && !line.contains('`')).collect();
    assert!(long.is_empty(), "{long:#?}");
    assert!(coloured.contains("\u{1b}[32m✓") && coloured.contains("\u{1b}[33m!"), "{coloured}");
}
