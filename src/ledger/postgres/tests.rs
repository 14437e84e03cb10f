//! What only a database that other machines use can do to a change: have it wait, cut it off, lose its answer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use tempfile::TempDir;

use super::address::PostgresAddress;
use super::ledger::PostgresLedger;
use super::opening;
use super::schema;
use super::sql::look::look;
use super::sql::statement::{query, scalar};
use super::sql::{Failure, Now};
use super::transaction;
use crate::domain::{OperationKind, Status};

use crate::ledger::conformance::cluster::Cluster;
use crate::ledger::conformance::scene::{Scene, accepted, new_run, run_end, single_intent};
use crate::ledger::{
    Intent, Ledger as _, LedgerError, Permit, RepeatCheck, RepeatGuard as _, Rows, RunEnd, RunFilter, Seat, Share,
    Shares as _, SqliteLedger, Upkeep as _,
};

impl PostgresLedger {
    /// A new ledger with the tables of the version before.
    pub(in crate::ledger) async fn open_of_the_version_before(
        address: &PostgresAddress,
        marks: &Path,
    ) -> Result<Self, LedgerError> {
        Self::open_of_version(address, marks, schema::NEWEST - 1).await
    }

    /// A new ledger with the tables of this version.
    async fn open_of_version(address: &PostgresAddress, marks: &Path, version: i64) -> Result<Self, LedgerError> {
        opening::make(address, version).await?;
        Self::open(address, marks).await
    }
}

/// A new ledger; nothing where there is no server.
async fn ledger() -> Option<(PostgresLedger, PostgresAddress, TempDir)> {
    let address = PostgresAddress::parse(&Cluster::shared()?.database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    Some((PostgresLedger::open(&address, folder.path()).await.unwrap(), address, folder))
}

/// How often a host was kept.
async fn kept(ledger: &PostgresLedger) -> i64 {
    let mut reader = ledger.reader().await.unwrap();
    scalar("SELECT count(*) FROM profiles").fetch_one(&mut *reader).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_waited_for_its_turn_has_the_time_at_which_it_had_it() {
    let Some((ledger, address, _folder)) = ledger().await else { return };
    ledger.write(|_, _| Box::pin(async { Ok(()) })).await.unwrap();
    let mut other = transaction::connect(&address).await.unwrap();
    transaction::write(&mut other).await.unwrap();
    let ledger = Arc::new(ledger);
    let waiting = tokio::spawn({
        let ledger = Arc::clone(&ledger);
        async move { ledger.write(|_, Now(now)| Box::pin(async move { Ok(now) })).await }
    });
    loop {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let row = query(waits).fetch_one(&mut other).await.unwrap();
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
async fn who_begins_to_send_waits_for_a_database_that_is_away_as_who_sends_does() {
    let Some(cluster) = Cluster::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (here, away) = (folder.path().join("here"), folder.path().join("away"));
    std::os::unix::fs::symlink(cluster.folder(), &here).unwrap();
    let escaped = |path: &std::path::Path| path.display().to_string().replace('/', "%2F");
    let (direct, database) = (escaped(cluster.folder()), cluster.database());
    let address = PostgresAddress::parse(&database.replace(&direct, &escaped(&here))).unwrap();
    let mut other = transaction::connect(&PostgresAddress::parse(&database).unwrap()).await.unwrap();
    let ledger = PostgresLedger::open(&address, folder.path()).await.unwrap();
    let mut goes_away = async || {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sqlx::raw_sql(cut).execute(&mut other).await.unwrap();
        std::fs::rename(&here, &away).unwrap();
    };
    let soon = std::time::Duration::from_millis(100);
    goes_away().await;
    let mut change = Box::pin(ledger.write(|_, _| Box::pin(async { Ok(()) })));
    let early = tokio::time::timeout(soon, &mut change).await;
    assert!(early.is_err(), "the first change: {early:?}");
    std::fs::rename(&away, &here).unwrap();
    change.await.unwrap();
    goes_away().await;
    let mut look = Box::pin(ledger.fit_for_sending());
    let early = tokio::time::timeout(soon, &mut look).await;
    assert!(early.is_err(), "the look whether it is the newest: {early:?}");
    std::fs::rename(&away, &here).unwrap();
    look.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_connection_is_cut_is_made_once() {
    let Some((ledger, _, _folder)) = ledger().await else { return };
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attempts);
    let written = ledger.write(move |connection, _| {
        let attempt = counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            query("INSERT INTO profiles (name, host) VALUES ('p', 'h')").execute(&mut *connection).await?;
            if attempt == 0 {
                query("SELECT pg_terminate_backend(pg_backend_pid())").execute(connection).await?;
            }
            Ok(attempt)
        })
    });
    assert_eq!(written.await.unwrap(), 1);
    assert_eq!((attempts.load(Ordering::Relaxed), kept(&ledger).await), (2, 1));
}

/// Reads the number of this attempt; the first is cut off.
async fn cut_once(reader: &mut PgConnection, attempts: &AtomicU32) -> Result<u32, Failure> {
    let attempt = attempts.fetch_add(1, Ordering::Relaxed);
    if attempt == 0 {
        query("SELECT pg_terminate_backend(pg_backend_pid())").execute(reader).await?;
    }
    Ok(attempt)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_whose_connection_is_cut_is_taken_once_more() {
    let Some((ledger, _, _folder)) = ledger().await else { return };
    let attempts = AtomicU32::new(0);
    assert_eq!(look!(ledger, cut_once, &attempts).unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_made_once() {
    let Some((ledger, _, _folder)) = ledger().await else { return };
    let lost = || sqlx::Error::WorkerCrashed;
    let keep = "INSERT INTO profiles (name, host) VALUES ('p', 'h')";
    let mut pen = ledger.pen().await.unwrap();
    pen.begin().await.unwrap();
    query(keep).execute(pen.at_work().unwrap().0).await.unwrap();
    // The server makes the commit, and nobody hears of it.
    let mark = pen.commit().await.unwrap();
    assert_eq!(pen.find_out(&lost()).await.unwrap(), mark);
    assert!(!pen.give_up().await);
    // The server never hears of the commit.
    pen.begin().await.unwrap();
    query("INSERT INTO profiles (name, host) VALUES ('q', 'h')").execute(pen.at_work().unwrap().0).await.unwrap();
    pen.commits.next();
    assert!(pen.find_out(&lost()).await.is_err());
    assert!(pen.give_up().await, "it may be made again");
    assert_eq!(kept(&ledger).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_commit_is_made_once_if_the_question_about_it_is_lost() {
    let Some((ledger, address, _folder)) = ledger().await else { return };
    let mut pen = ledger.pen().await.unwrap();
    pen.begin().await.unwrap();
    let mark = pen.commit().await.unwrap();
    let mut other = transaction::connect(&address).await.unwrap();
    let cut_once = "SET search_path TO campaign; CREATE SEQUENCE asked; ALTER TABLE writers RENAME TO kept_writers;
        CREATE VIEW writers AS SELECT * FROM kept_writers WHERE CASE nextval('campaign.asked') WHEN 1
        THEN pg_terminate_backend(pg_backend_pid()) ELSE TRUE END";
    sqlx::raw_sql(cut_once).execute(&mut other).await.unwrap();
    assert_eq!(pen.find_out(&sqlx::Error::WorkerCrashed).await.unwrap(), mark);
    assert!(!pen.give_up().await);
    // As long as it is not known, it is not made again, even if the connection breaks.
    sqlx::raw_sql("DROP VIEW writers").execute(&mut other).await.unwrap();
    assert!(pen.find_out(&sqlx::Error::WorkerCrashed).await.is_err());
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql(cut).execute(&mut other).await.unwrap();
    assert!(!pen.give_up().await);
}

#[test]
fn broken_connection_is_not_called_a_full_disk() {
    let broken = sqlx::Error::Io(std::io::ErrorKind::UnexpectedEof.into());
    let told = super::dialect::storage("postgres://me@db/c", &broken).to_string();
    assert!(told.contains("cannot connect to the ledger `postgres://me@db/c`"), "{told}");
    assert!(!told.contains("disk") && !told.contains("make room"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_a_file_open_when_it_moves_is_refused_with_the_next_commit() {
    let Some(cluster) = Cluster::shared() else { return };
    let address = PostgresAddress::parse(&cluster.database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let open = async || SqliteLedger::open(&path, jiff::Timestamp::now).await.unwrap();
    let (working, moving) = (open().await, open().await);
    working.prove_writable().await.unwrap();
    PostgresLedger::take_over(&address, &moving).await.unwrap();
    assert!(working.prove_writable().await.is_err(), "what it wrote is nobody's to believe");
    assert!(open().await.newest().is_err());
    let shared = PostgresLedger::open(&address, folder.path()).await.unwrap();
    assert!(shared.newest().is_ok() && shared.prove_writable().await.is_ok());
}

/// Has the tables be of the version that comes after this one.
async fn of_the_next_version(address: &PostgresAddress) {
    let mut other = transaction::connect(address).await.unwrap();
    let next = query("UPDATE campaign._sqlx_migrations SET version = version + 1 WHERE version = $1");
    assert_eq!(next.bind(schema::NEWEST).execute(&mut other).await.unwrap().rows_affected(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_the_version_before_are_used_as_they_are_until_somebody_has_them_upgraded() {
    let Some(cluster) = Cluster::shared() else { return };
    let address = PostgresAddress::parse(&cluster.database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(PostgresLedger::upgrade(&address).await.unwrap(), None, "there is none");
    let at_work = PostgresLedger::open_of_the_version_before(&address, folder.path()).await.unwrap();
    let has_repeats = async || {
        let mut reader = at_work.reader().await.unwrap();
        let table = "SELECT to_regclass('campaign.repeats') IS NOT NULL";
        let there: bool = scalar(table).fetch_one(&mut *reader).await.unwrap();
        there
    };
    let opened_again = PostgresLedger::open(&address, folder.path()).await.unwrap();
    assert!(!has_repeats().await && !opened_again.keeps_repeats() && opened_again.keeps_approval_rules());
    let take = async |ledger: &PostgresLedger| ledger.take_repeat_place(b"380 Hi".to_vec(), false).await.unwrap();
    assert_eq!(take(&opened_again).await, RepeatCheck::Unavailable);
    assert_eq!(PostgresLedger::upgrade(&address).await.unwrap(), Some(true));
    assert!(has_repeats().await);
    assert!(at_work.prove_writable().await.is_ok(), "whoever has it open goes on");
    assert!(at_work.keeps_repeats(), "and uses what is there now");
    assert!(matches!(take(&at_work).await, RepeatCheck::Taken(_)));
    opened_again.prove_writable().await.unwrap();
    assert!(matches!(take(&opened_again).await, RepeatCheck::Repeated(_)));
    assert_eq!(PostgresLedger::upgrade(&address).await.unwrap(), Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_records_frozen_chains_and_has_runs_with_receipts_counted_again() {
    let Some(cluster) = Cluster::shared() else { return };
    let address = PostgresAddress::parse(&cluster.database()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let earlier = PostgresLedger::open_of_version(&address, folder.path(), schema::WITH_CHAINS - 1).await.unwrap();
    let scene = Scene::of(earlier, &new_run(1)).await;
    let frozen =
        r#"{"brief": {"name": "sale", "content": {"kind": "pipeline", "stages": [{"rcs": {}}, {"sms": {}}]}}}"#;
    let mut other = transaction::connect(&address).await.unwrap();
    query("INSERT INTO campaign.copies (name, inputs, made_at) VALUES ($1, $2, 0)")
        .bind(scene.run.name())
        .bind(frozen.as_bytes())
        .execute(&mut other)
        .await
        .unwrap();
    let intent = scene.intent(1, scene.mine);
    scene.ledger.begin(Intent { kind: OperationKind::Pipeline, ..intent }).await.unwrap();
    scene.settle(1, [accepted(), accepted()]).await;
    scene.receive(2, Status::Expired).await;
    let (counts, parts) = (scene.counts().await, 2);
    scene.ledger.end(scene.mine, RunEnd { counts, parts, receipts: 1, ..run_end() }).await.unwrap();
    assert!(scene.now().await.standing_counts().is_some());
    PostgresLedger::upgrade(&address).await.unwrap();
    let kept = scene.ledger.envelopes(scene.run.key, 1..=1).await.unwrap();
    let chains: Vec<String> = kept[0].rows.iter().map(|sent| kept[0].chain(sent).to_string()).collect();
    assert_eq!(chains, ["rcs sms"; 2], "and the record is sound");
    assert_eq!(scene.now().await.standing_counts(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_of_an_earlier_version_writes_nothing_more_once_the_tables_are_of_a_newer_one() {
    let Some((ledger, address, folder)) = ledger().await else { return };
    ledger.prove_writable().await.unwrap();
    of_the_next_version(&address).await;
    for _ in 0..2 {
        assert!(matches!(ledger.prove_writable().await, Err(LedgerError::TooNew { .. })));
    }
    assert!(matches!(PostgresLedger::open(&address, folder.path()).await, Err(LedgerError::TooNew { .. })));
    assert!(matches!(PostgresLedger::upgrade(&address).await, Err(LedgerError::TooNew { .. })));
}

/// A process that has a share and is not heard of for longer than the database grants, and one that came to its place.
struct Sleeper {
    scene: Scene<PostgresLedger>,
    asleep: Seat,
    rows: Rows,
    other: PostgresLedger,
    awake: Seat,
    _folders: [TempDir; 2],
}

impl Sleeper {
    async fn new() -> Option<Self> {
        let (ledger, address, first) = ledger().await?;
        let second = tempfile::tempdir().unwrap();
        let other = PostgresLedger::open(&address, second.path()).await.unwrap();
        let scene = Scene::on(ledger).await;
        scene.ledger.share_out(scene.mine, "terms".into(), true).await.unwrap();
        let run = scene.ledger.runs(RunFilter::one(scene.run.key)).await.unwrap().remove(0);
        let asleep = scene.ledger.take_seat(&run, "asleep".into()).await.unwrap().expect("it is shared out");
        let Share::Fresh(rows) = scene.ledger.draw_share(&asleep, 2, true).await.unwrap() else {
            panic!("nobody has any")
        };
        let expired = scene.ledger.write(|connection, _| {
            Box::pin(async move {
                query("UPDATE locks SET until = 0 WHERE name LIKE '%.0'").execute(connection).await?;
                Ok(())
            })
        });
        expired.await.unwrap();
        let awake = other.take_seat(&run, "awake".into()).await.unwrap().expect("it is shared out");
        assert_eq!(awake.place, asleep.place, "where nobody is heard of");
        Some(Self { scene, asleep, rows, other, awake, _folders: [first, second] })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_slept_until_its_place_was_anothers_begins_nothing() {
    let Some(Sleeper { scene, asleep, rows, .. }) = Sleeper::new().await else { return };
    scene.ledger.locks.renew().await.unwrap();
    let begun = scene.ledger.begin(single_intent(asleep.lease, rows.first.get())).await.unwrap();
    assert_eq!(begun, Permit::Lost, "it could not leave");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_falls_asleep_while_it_draws_takes_nothing_from_who_sits_at_its_place_by_then() {
    let Some(Sleeper { scene, asleep, rows, other, awake, .. }) = Sleeper::new().await else { return };
    assert!(matches!(other.draw_share(&awake, 2, true).await.unwrap(), Share::TakenOver { .. }));
    // It looked a moment ago, and does not know that it slept.
    assert_eq!(scene.ledger.draw_share(&asleep, 2, true).await.unwrap(), Share::Over);
    let begun = other.begin(single_intent(awake.lease, rows.first.get())).await.unwrap();
    assert!(matches!(begun, Permit::Granted { .. }), "{begun:?}");
}
