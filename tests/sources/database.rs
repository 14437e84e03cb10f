//! Lists from a database query (`sql`). SQLite is built in; PostgreSQL tests run only if a server is installed.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{campaign_with_source, count_copies};
use crate::support::{Folder, Gateway, Process, campaign, note_on_failure, phone};

/// Runs the campaign with its database address in the environment.
fn run(sale: &Folder, address: &str) -> crate::support::Finished {
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env("CRM_URL", address);
    Process::start(command).finish()
}

/// Fails unless a query result with an oversized value is refused and memory use stays limited.
#[cfg(target_os = "linux")]
#[track_caller]
fn assert_refused_early(sale: &Folder, address: &str, words: &str) {
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env("CRM_URL", address);
    let (ended, memory) = Process::start(command).finish_with_peak_memory();
    let ended = ended.exits(2).says(words);
    assert!(memory < 256 << 10, "{memory} KiB\n{}", ended.details());
    assert_eq!(count_copies(sale), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn oversized_sqlite_value_is_refused_early() {
    let _files = crate::support::in_files();
    for (value, words) in [
        ("cast(zeroblob(150000000) as text)", "a value in the column `name` is larger than 64 KiB"),
        ("zeroblob(150000000)", "a value in the column `name` is larger than 64 KiB"),
        ("cast(zeroblob(70000) as text)", "a value in the column `name` is larger than 64 KiB"),
    ] {
        let _case = note_on_failure(format!("case: {value}"));
        let sale = campaign_with_source(campaign(), QUERY);
        let address =
            create_sqlite_with(&sale, &format!("update people set name = {value} where phone = 380501000003"));
        assert_refused_early(&sale, &address, words);
    }
    let wide: Vec<String> = (0..20).map(|column| format!("substr(name, 1, 60000) as n{column}")).collect();
    let sale = campaign_with_source(
        campaign(),
        &format!("sql: \"select phone, name, {} from people\"\nfrom: {{ env: CRM_URL }}", wide.join(", ")),
    );
    let address =
        create_sqlite_with(&sale, "update people set name = printf('%.60000c', 'x') where phone = 380501000002");
    assert_refused_early(&sale, &address, "a row is larger than 1 MiB");
}

/// Creates a SQLite database with a table of recipients that has numeric columns and nulls; returns its address.
fn create_sqlite(folder: &Folder) -> String {
    create_sqlite_with(folder, "")
}

/// Creates the database of [`create_sqlite`] and runs a statement in it; returns its address.
fn create_sqlite_with(folder: &Folder, change: &str) -> String {
    let path = folder.path("crm.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut database = options.connect().await.expect("a database");
        let people = "create table people (phone integer, name text, since text, debt real, photo blob);
             insert into people values (380501000002, 'Ann; \"A\", of us', '2020-01-01', 1.5, x'00'),
                                       (380501000003, null, '2020-01-01', 100000000000, null),
                                       (380501000004, 'Eve', '9999-01-01', 0, null);";
        database.execute(people).await.expect("people");
        database.execute(sqlx::AssertSqlSafe(change.to_owned())).await.expect("a change");
        database.close().await.expect("closed");
    });
    format!("sqlite://{}", path.display())
}

const QUERY: &str = "sql: |\n  select phone, coalesce(name, 'you') as name, debt, name as raw -- ; :today\n  from people where since <= :today;\nfrom: { env: CRM_URL }";

#[test]
fn query_result_is_a_list_of_text_values() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_source(campaign().through(&gateway), QUERY);
    run(&sale, &create_sqlite(&sale)).exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    assert_eq!(sale.results().column("name"), ["Ann; \"A\", of us", "you"]);
    assert_eq!(sale.results().column("debt"), ["1.5", "100000000000"]);
    assert_eq!(sale.results().column("raw"), ["Ann; \"A\", of us", ""]);
    assert_eq!(count_copies(&sale), 0);
}

#[test]
fn unusable_query_is_refused_and_deletes_no_rows() {
    let gateway = Gateway::accepting();
    for (sql, words) in [
        ("select phone from people; delete from people", "more than one statement"),
        ("delete from people returning phone", "readonly"),
        ("select phone, photo from people", "`photo` contains binary data"),
        ("select phone from nobody", "no such table"),
        ("select phone from people where false", "no recipients"),
    ] {
        let _case = note_on_failure(format!("case: {sql}"));
        let sale =
            campaign_with_source(campaign().through(&gateway), &format!("sql: \"{sql}\"\nfrom: {{ env: CRM_URL }}"));
        let address = create_sqlite(&sale);
        run(&sale, &address).exits(2).says(words);
        sale.replace("sale.yaml", sql, "select phone, name from people");
        run(&sale, &address).exits(0);
    }
    assert_eq!(gateway.phones().len(), 15, "no rows were deleted");
}

#[test]
fn database_address_is_never_quoted_in_an_error() {
    for (address, words) in [
        ("s3cret", "does not contain a database address"),
        ("postgres://me:s3cret@127.0.0.1:1/crm", "cannot connect"),
        ("mysql://me:s3cret@127.0.0.1:1/crm", "cannot connect"),
        ("postgres://me:s3cret@127.0.0.1:port/crm", "does not contain a database address"),
        ("sqlite:///no/such/s3cret.db", "database"),
    ] {
        let sale = campaign_with_source(campaign(), QUERY);
        let output = run(&sale, address).exits(2).says(words);
        assert!(!format!("{}{}", output.stdout, output.stderr).contains("s3cret"), "{}", output.details());
    }
    campaign_with_source(campaign(), QUERY).run(&[]).exits(2).says("`CRM_URL` is not set");
}

/// A temporary PostgreSQL server on a local socket.
struct Postgres {
    folder: tempfile::TempDir,
    bin: std::path::PathBuf,
}

impl Postgres {
    /// Starts a server, or returns `None` if PostgreSQL is not installed or does not start.
    fn start() -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
        let bin = versions.map(|version| version.path().join("bin")).max()?;
        let server = Self { folder: tempfile::tempdir().expect("a folder"), bin };
        if rustix::process::getuid().is_root() {
            // The server does not run as root. Debian's package created the user `postgres` for it.
            let status = Command::new("chown").arg("postgres").arg(server.folder.path()).status();
            status.ok()?.success().then_some(())?;
        }
        let data = server.folder.path().join("data");
        server.run_program("initdb", &["-A", "trust", "-U", "story", "-D", &data.display().to_string()])?;
        let options = format!("-c listen_addresses='' -k {}", server.folder.path().display());
        let log = server.folder.path().join("log").display().to_string();
        server
            .run_program("pg_ctl", &["-w", "-l", &log, "-o", &options, "-D", &data.display().to_string(), "start"])?;
        Some(server)
    }

    /// Runs a program of PostgreSQL; `None` if it fails.
    fn run_program(&self, program: &str, arguments: &[&str]) -> Option<()> {
        let program = self.bin.join(program);
        let mut command = Command::new(&program);
        if rustix::process::getuid().is_root() {
            command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(&program);
        }
        command
            .current_dir(self.folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().ok()?.success().then_some(())
    }

    fn address(&self) -> String {
        format!("postgres://story@%2F/postgres?host={}", self.folder.path().display())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.folder.path().join("data").display().to_string();
        let _ = self.run_program("pg_ctl", &["-m", "immediate", "-D", &data, "stop"]);
    }
}

#[test]
fn postgresql_source_is_read_only_and_limits_value_sizes() {
    let Some(server) = Postgres::start() else {
        let _ = writeln!(std::io::stderr(), "skipped: this needs a PostgreSQL server that can be started here");
        return;
    };
    let people = "create table people (phone numeric, name text, since date, ok boolean, at timestamptz, photo bytea);
         insert into people values (380501000002, 'Ann', '2020-01-01', true, '2026-01-02 03:04:05Z', null),
                                   (380501000003, null, '9999-01-01', false, null, null)";
    let socket_folder = server.folder.path().display().to_string();
    server.run_program("psql", &["-U", "story", "-h", &socket_folder, "-c", people, "postgres"]).expect("people");
    let gateway = Gateway::accepting();
    let query = "sql: \"select phone, name, since, ok, 12345678901234567890.10::numeric as debt from people where since <= :today and 'a;b' <> ':today'\"\nfrom: { env: CRM_URL }";
    let sale = campaign_with_source(campaign().through(&gateway), query);
    run(&sale, &server.address()).exits(0);
    assert_eq!(gateway.phones(), [phone(2)]);
    for (column, value) in [("since", "2020-01-01"), ("ok", "true"), ("debt", "12345678901234567890.10")] {
        assert_eq!(sale.results().column(column), [value]);
    }
    for (sql, words) in [
        ("select phone, photo from people", "contains binary data"),
        ("delete from people returning phone, name", "read-only"),
        ("select nextval('x')", "does not exist"),
    ] {
        let sale =
            campaign_with_source(campaign().through(&gateway), &format!("sql: \"{sql}\"\nfrom: {{ env: CRM_URL }}"));
        run(&sale, &server.address()).exits(2).says(words);
    }
    #[cfg(target_os = "linux")]
    for (name, words) in [
        ("repeat('x', 200000000)", "a row is larger than 1 MiB"),
        ("repeat('x', 70000)", "the column `name` is larger than 64 KiB"),
    ] {
        let _files = crate::support::in_files();
        let sql = format!(
            "select phone, case when phone = 380501000003 then {name} else name end as name from people -- all"
        );
        let sale = campaign_with_source(campaign(), &format!("sql: |\n  {sql}\nfrom: {{ env: CRM_URL }}"));
        assert_refused_early(&sale, &server.address(), words);
    }
}
