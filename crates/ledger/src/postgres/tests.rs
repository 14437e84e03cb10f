//! PostgreSQL ledger tests: waiting for turns, broken connections, lost answers, upgrades and expired leases.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use tempfile::TempDir;

use super::address::PostgresAddress;
use super::ledger::PostgresLedger;
use super::sql::{Now, StatementError};
use super::sql::{query, read_ledger, scalar};
use super::{opening, transaction};
use crate::conformance::cluster::Cluster;
use crate::conformance::scene::{Scene, accepted, as_port, new_run, run_end, single_intent};
use crate::{
    ConsentBlockBuilder, ConsentStore as _, EnvelopeFilter, Intent, Ledger as _, LedgerError, Permit, RepeatCheck,
    RepeatGuard as _, RepeatRequest, RowSpan, RowUpdate, RunEnd, RunFilter, RunUpdate, ShardDraw, ShardStore as _,
    ShardWorker, SqliteLedger,
};
use campaign_core::domain::{ConsentCells, OperationKind, Row, Status};

impl PostgresLedger {
    /// Creates a ledger with the tables of the previous version.
    pub(crate) async fn open_previous_version(address: &PostgresAddress, marks: &Path) -> Result<Self, LedgerError> {
        Self::open_at_version(address, marks, opening::NEWEST - 1).await
    }

    /// Creates a ledger with the tables of the given version.
    async fn open_at_version(address: &PostgresAddress, marks: &Path, version: i64) -> Result<Self, LedgerError> {
        opening::ensure_tables(address, version).await?;
        Self::open(address, marks).await
    }
}

/// Creates a ledger; `None` without a server.
async fn new_ledger() -> Option<(PostgresLedger, PostgresAddress, TempDir)> {
    let address = PostgresAddress::parse(&Cluster::shared()?.create_database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    Some((PostgresLedger::open(&address, folder.path()).await.unwrap(), address, folder))
}

/// The number of stored profiles.
async fn count_profiles(ledger: &PostgresLedger) -> i64 {
    let mut reader = ledger.reader().await.unwrap();
    scalar("SELECT count(*) FROM profiles").fetch_one(&mut *reader).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_change_gets_the_time_at_which_it_begins() {
    let Some((ledger, address, _folder)) = new_ledger().await else { return };
    ledger.write(|_, _| Box::pin(async { Ok(()) })).await.unwrap();
    let mut other = transaction::open_connection(&address).await.unwrap();
    transaction::begin_write(&mut other).await.unwrap();
    let ledger = Arc::new(ledger);
    let waiting = tokio::spawn({
        let ledger = Arc::clone(&ledger);
        async move { ledger.write(|_, Now(now)| Box::pin(async move { Ok(now) })).await }
    });
    loop {
        let waiting_count = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let row = query(waiting_count).fetch_one(&mut other).await.unwrap();
        if row.get::<i64, _>(0) > 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let clock = scalar("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)");
    let before: i64 = clock.fetch_one(&mut other).await.unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let now = waiting.await.unwrap().unwrap();
    assert!(now >= before, "{} microseconds before it could begin", before - now);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_waits_for_an_unavailable_database() {
    let Some(cluster) = Cluster::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (here, away) = (folder.path().join("here"), folder.path().join("away"));
    std::os::unix::fs::symlink(cluster.folder(), &here).unwrap();
    let escaped = |path: &std::path::Path| path.display().to_string().replace('/', "%2F");
    let (direct, database) = (escaped(cluster.folder()), cluster.create_database());
    let address = PostgresAddress::parse(&database.replace(&direct, &escaped(&here))).unwrap();
    let mut other = transaction::open_connection(&PostgresAddress::parse(&database).unwrap()).await.unwrap();
    let ledger = PostgresLedger::open(&address, folder.path()).await.unwrap();
    let mut stop_database = async || {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sqlx::raw_sql(cut).execute(&mut other).await.unwrap();
        std::fs::rename(&here, &away).unwrap();
    };
    let soon = std::time::Duration::from_millis(100);
    stop_database().await;
    let mut change = Box::pin(ledger.write(|_, _| Box::pin(async { Ok(()) })));
    let early = tokio::time::timeout(soon, &mut change).await;
    assert!(early.is_err(), "the first change: {early:?}");
    std::fs::rename(&away, &here).unwrap();
    change.await.unwrap();
    stop_database().await;
    let mut check = Box::pin(ledger.ensure_can_send());
    let early = tokio::time::timeout(soon, &mut check).await;
    assert!(early.is_err(), "the check whether the ledger is the newest: {early:?}");
    std::fs::rename(&away, &here).unwrap();
    check.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn write_is_applied_once_if_the_connection_drops() {
    let Some((ledger, _, _folder)) = new_ledger().await else { return };
    let attempts = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&attempts);
    let written = ledger.write(move |connection, _| {
        let attempt = counter.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            query("INSERT INTO profiles (name, host) VALUES ('p', 'h')").execute(&mut *connection).await?;
            if attempt == 0 {
                query("SELECT pg_terminate_backend(pg_backend_pid())").execute(connection).await?;
            }
            Ok(attempt)
        })
    });
    assert_eq!(written.await.unwrap(), 1);
    assert_eq!((attempts.load(Ordering::Relaxed), count_profiles(&ledger).await), (2, 1));
}

/// Cuts the connection at the first attempt. Returns the number of earlier attempts.
async fn cut_connection_once(reader: &mut PgConnection, attempts: &AtomicU32) -> Result<u32, StatementError> {
    let attempt = attempts.fetch_add(1, Ordering::Relaxed);
    if attempt == 0 {
        query("SELECT pg_terminate_backend(pg_backend_pid())").execute(reader).await?;
    }
    Ok(attempt)
}

#[tokio::test(flavor = "multi_thread")]
async fn read_on_a_broken_connection_is_retried() {
    let Some((ledger, _, _folder)) = new_ledger().await else { return };
    let attempts = AtomicU32::new(0);
    assert_eq!(read_ledger!(ledger, cut_connection_once, &attempts).unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_with_a_lost_answer_is_applied_once() {
    let Some((ledger, _, _folder)) = new_ledger().await else { return };
    let lost = || sqlx::Error::WorkerCrashed;
    let insert = "INSERT INTO profiles (name, host) VALUES ('p', 'h')";
    let mut writer = ledger.open_write_connection().await.unwrap();
    writer.begin_transaction().await.unwrap();
    query(insert).execute(writer.connection_and_time().unwrap().0).await.unwrap();
    // The server commits, but the answer is lost.
    let mark = writer.commit().await.unwrap();
    assert_eq!(writer.resolve_commit(&lost()).await.unwrap(), mark);
    assert!(!writer.roll_back().await);
    // The server never receives the commit.
    writer.begin_transaction().await.unwrap();
    query("INSERT INTO profiles (name, host) VALUES ('q', 'h')")
        .execute(writer.connection_and_time().unwrap().0)
        .await
        .unwrap();
    writer.commits.count_next();
    assert!(writer.resolve_commit(&lost()).await.is_err());
    assert!(writer.roll_back().await, "it may be retried");
    assert_eq!(count_profiles(&ledger).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_is_applied_once_even_if_its_status_query_is_lost() {
    let Some((ledger, address, _folder)) = new_ledger().await else { return };
    let mut writer = ledger.open_write_connection().await.unwrap();
    writer.begin_transaction().await.unwrap();
    let mark = writer.commit().await.unwrap();
    let mut other = transaction::open_connection(&address).await.unwrap();
    let cut_once = "SET search_path TO campaign; CREATE SEQUENCE asked; ALTER TABLE writers RENAME TO kept_writers;
        CREATE VIEW writers AS SELECT * FROM kept_writers WHERE CASE nextval('campaign.asked') WHEN 1
        THEN pg_terminate_backend(pg_backend_pid()) ELSE TRUE END";
    sqlx::raw_sql(cut_once).execute(&mut other).await.unwrap();
    assert_eq!(writer.resolve_commit(&sqlx::Error::WorkerCrashed).await.unwrap(), mark);
    assert!(!writer.roll_back().await);
    // The change is not repeated while its outcome is unknown, even if the connection breaks.
    sqlx::raw_sql("DROP VIEW writers").execute(&mut other).await.unwrap();
    assert!(writer.resolve_commit(&sqlx::Error::WorkerCrashed).await.is_err());
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql(cut).execute(&mut other).await.unwrap();
    assert!(!writer.roll_back().await);
}

#[test]
fn broken_connection_is_not_reported_as_a_full_disk() {
    let broken = sqlx::Error::Io(std::io::ErrorKind::UnexpectedEof.into());
    let message = super::dialect::storage_error("postgres://me@db/c", &broken).to_string();
    assert!(message.contains("cannot connect to the ledger `postgres://me@db/c`"), "{message}");
    assert!(!message.contains("disk") && !message.contains("make room"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_ledger_is_not_writable_after_its_move_to_postgres() {
    let Some(cluster) = Cluster::shared() else { return };
    let address = PostgresAddress::parse(&cluster.create_database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let open = async || SqliteLedger::open(&path, jiff::Timestamp::now).await.unwrap();
    let (working, moving) = (open().await, open().await);
    as_port(&working).check_writable().await.unwrap();
    PostgresLedger::take_over(&address, &moving).await.unwrap();
    assert!(as_port(&working).check_writable().await.is_err(), "its writes are not reliable");
    assert!(open().await.ensure_newest().is_err());
    let shared = PostgresLedger::open(&address, folder.path()).await.unwrap();
    assert!(shared.ensure_newest().is_ok() && as_port(&shared).check_writable().await.is_ok());
}

/// Sets the version of the tables to the next version.
async fn set_next_version(address: &PostgresAddress) {
    let mut other = transaction::open_connection(address).await.unwrap();
    let next = query("UPDATE campaign._sqlx_migrations SET version = version + 1 WHERE version = $1");
    assert_eq!(next.bind(opening::NEWEST).execute(&mut other).await.unwrap().rows_affected(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_tables_are_used_until_upgraded() {
    let Some(cluster) = Cluster::shared() else { return };
    let address = PostgresAddress::parse(&cluster.create_database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(PostgresLedger::upgrade_tables(&address).await.unwrap(), None, "there is no ledger");
    let before = opening::WITH_REPEATS - 1;
    let in_use = PostgresLedger::open_at_version(&address, folder.path(), before).await.unwrap();
    let has_table = async |name: &str| {
        let mut reader = in_use.reader().await.unwrap();
        let exists: bool = scalar("SELECT to_regclass('campaign.' || $1) IS NOT NULL")
            .bind(name.to_owned())
            .fetch_one(&mut *reader)
            .await
            .unwrap();
        exists
    };
    let opened_again = PostgresLedger::open(&address, folder.path()).await.unwrap();
    assert!(!has_table("repeats").await && !has_table("consents").await);
    assert!(
        !opened_again.supports_repeat_guard()
            && !opened_again.supports_consents()
            && !opened_again.supports_all_scopes()
    );
    assert!(opened_again.supports_approval_rules());
    let reserve = async |ledger: &PostgresLedger| {
        let request = RepeatRequest::Reserve { message: b"380 Hi".to_vec(), again: false };
        ledger.check_repeat(request).await.unwrap()
    };
    assert_eq!(reserve(&opened_again).await, RepeatCheck::Unavailable);
    let run = in_use.create_run(&new_run(1), None).await.unwrap().expect("a run").key;
    let count_consents = async |ledger: &PostgresLedger| {
        ledger.load_consents(run, RowSpan { first: Row::FIRST, last: Row::new(9) }).await.unwrap().len()
    };
    assert_eq!(count_consents(&opened_again).await, 0);
    assert_eq!(PostgresLedger::upgrade_tables(&address).await.unwrap(), Some(true));
    assert!(has_table("repeats").await && has_table("consents").await);
    assert!(as_port(&in_use).check_writable().await.is_ok(), "a process with an open ledger continues");
    assert!(
        in_use.supports_repeat_guard() && in_use.supports_consents() && in_use.supports_all_scopes(),
        "it uses the available tables"
    );
    assert!(matches!(reserve(&in_use).await, RepeatCheck::Reserved(_)));
    let mut consents = ConsentBlockBuilder::default();
    consents.add_row(Row::new(2), ConsentCells::default());
    in_use.update_runs(vec![run], RunUpdate::Consents([consents.build()].into())).await.unwrap();
    as_port(&opened_again).check_writable().await.unwrap();
    assert!(matches!(reserve(&opened_again).await, RepeatCheck::Repeated(_)));
    assert_eq!(count_consents(&opened_again).await, 1);
    assert_eq!(PostgresLedger::upgrade_tables(&address).await.unwrap(), Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_records_chains_and_recounts_receipts() {
    let Some(cluster) = Cluster::shared() else { return };
    let address = PostgresAddress::parse(&cluster.create_database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let earlier = PostgresLedger::open_at_version(&address, folder.path(), opening::WITH_CHAINS - 1).await.unwrap();
    let scene = Scene::with_run(Arc::new(earlier), &new_run(1)).await;
    let frozen =
        r#"{"brief": {"name": "sale", "content": {"kind": "pipeline", "stages": [{"rcs": {}}, {"sms": {}}]}}}"#;
    let mut other = transaction::open_connection(&address).await.unwrap();
    query("INSERT INTO campaign.copies (name, inputs, made_at) VALUES ($1, $2, 0)")
        .bind(scene.run.name())
        .bind(frozen.as_bytes())
        .execute(&mut other)
        .await
        .unwrap();
    let intent = scene.new_intent(1, scene.lease);
    scene.ledger.begin_envelope(Intent { kind: OperationKind::Pipeline, ..intent }).await.unwrap();
    scene.settle_envelope(1, [accepted(), accepted()]).await;
    scene.store_receipt(2, Status::Expired).await;
    let (counts, parts) = (scene.count_states().await, 2);
    scene.ledger.end_run(scene.lease, RunEnd { counts, parts, receipts: 1, ..run_end() }).await.unwrap();
    assert!(scene.reload_run().await.current_counts().is_some());
    PostgresLedger::upgrade_tables(&address).await.unwrap();
    let envelopes = scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Numbers(1..=1)).await.unwrap();
    let chains: Vec<String> = envelopes[0].rows.iter().map(|sent| envelopes[0].chain(sent).to_string()).collect();
    assert_eq!(chains, ["rcs sms"; 2], "the record is sound");
    assert_eq!(scene.reload_run().await.current_counts(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_version_writes_nothing_after_a_newer_upgrade() {
    let Some((ledger, address, folder)) = new_ledger().await else { return };
    as_port(&ledger).check_writable().await.unwrap();
    set_next_version(&address).await;
    for _ in 0..2 {
        assert!(matches!(as_port(&ledger).check_writable().await, Err(LedgerError::TooNew { .. })));
    }
    assert!(matches!(PostgresLedger::open(&address, folder.path()).await, Err(LedgerError::TooNew { .. })));
    assert!(matches!(PostgresLedger::upgrade_tables(&address).await, Err(LedgerError::TooNew { .. })));
}

/// A worker that slept past its lease, and another worker that took its place.
struct SleepingProcess {
    scene: Scene,
    ledger: Arc<PostgresLedger>,
    asleep: ShardWorker,
    rows: RowSpan,
    other: PostgresLedger,
    awake: ShardWorker,
    _folders: [TempDir; 2],
}

impl SleepingProcess {
    async fn new() -> Option<Self> {
        let (ledger, address, first) = new_ledger().await?;
        let second = tempfile::tempdir().unwrap();
        let other = PostgresLedger::open(&address, second.path()).await.unwrap();
        let ledger = Arc::new(ledger);
        let scene = Scene::new(ledger.clone()).await;
        let sharded = RowUpdate::Sharded { terms: "terms".into(), proven: true };
        scene.ledger.update_rows(scene.lease, sharded).await.unwrap();
        let run = scene.port().list_runs(RunFilter::with_key(scene.run.key)).await.unwrap().remove(0);
        let asleep = scene.ledger.register_worker(&run, "asleep".into()).await.unwrap().expect("the run is shared");
        let ShardDraw::NewRows(rows) = scene.ledger.draw_shard(&asleep, 2, true).await.unwrap() else {
            panic!("no rows were drawn yet")
        };
        let expired = ledger.write(|connection, _| {
            Box::pin(async move {
                query("UPDATE locks SET until = 0 WHERE name LIKE '%.0'").execute(connection).await?;
                Ok(())
            })
        });
        expired.await.unwrap();
        let awake = other.register_worker(&run, "awake".into()).await.unwrap().expect("the run is shared");
        assert_eq!(awake.place, asleep.place, "the place of the expired lease");
        Some(Self { scene, ledger, asleep, rows, other, awake, _folders: [first, second] })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_suspended_past_its_lease_begins_no_envelope() {
    let Some(SleepingProcess { scene, ledger, asleep, rows, .. }) = SleepingProcess::new().await else { return };
    ledger.locks.renew_leases().await.unwrap();
    let permit = scene.ledger.begin_envelope(single_intent(asleep.lease, rows.first.get())).await.unwrap();
    assert_eq!(permit, Permit::Lost, "the lease has expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn late_draw_takes_nothing_from_the_new_lease_holder() {
    let Some(SleepingProcess { scene, asleep, rows, other, awake, .. }) = SleepingProcess::new().await else { return };
    assert!(matches!(other.draw_shard(&awake, 2, true).await.unwrap(), ShardDraw::TakenOver { .. }));
    // The worker does not know that it slept.
    assert_eq!(scene.ledger.draw_shard(&asleep, 2, true).await.unwrap(), ShardDraw::Ended);
    let permit = other.begin_envelope(single_intent(awake.lease, rows.first.get())).await.unwrap();
    assert!(matches!(permit, Permit::Granted { .. }), "{permit:?}");
}
