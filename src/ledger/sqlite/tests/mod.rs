//! What the ledger's file promises besides what every ledger does (see `conformance`).

mod blocks;
mod copies;
mod damage;
mod earlier;
mod forgetting;
mod stored;

use std::sync::Arc;

use jiff::Timestamp;
use sqlx::{ConnectOptions, Connection};

use crate::domain::{MsgId, OperationKind, Outcome, Row};
use crate::ledger::conformance::scene::{
    Scene as Parts, accepted, doubt, granted, new_run, not_sent, phone, rejected, run_end,
};
use crate::ledger::{
    Allowance, Hold, Intent, Ledger, LedgerError, NewRun, Progress, RunFilter, SentRow, SqliteLedger, State, StopKind,
    Upkeep as _,
};

/// The scene in a folder that goes away.
struct Scene {
    scene: Parts<SqliteLedger>,
    folder: tempfile::TempDir,
}

impl std::ops::Deref for Scene {
    type Target = Parts<SqliteLedger>;

    fn deref(&self) -> &Self::Target {
        &self.scene
    }
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.unwrap();
        Self { scene: Parts::on(ledger).await, folder }
    }
}

#[tokio::test]
async fn a_commit_waits_for_the_disk() {
    let scene = Scene::new().await;
    let told = scene.ledger.write(|connection, _| {
        Box::pin(async move {
            let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *connection).await?;
            let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(connection).await?;
            Ok((synchronous, journal))
        })
    });
    assert_eq!(told.await.unwrap(), (2, "wal".to_owned()), "FULL: the log is synced at each commit");
}

#[tokio::test]
async fn after_a_failed_write_nothing_is_written_any_more() {
    let scene = Scene::new().await;
    let path = scene.folder.path().join("ledger");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::query("DROP TABLE envelopes").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let failed = scene.ledger.begin(scene.intent(1, scene.mine)).await;
    assert!(matches!(failed, Err(LedgerError::Storage { .. })), "{failed:?}");
    let later = scene.ledger.request_stop(scene.run.key, true).await;
    assert!(matches!(later, Err(LedgerError::Closed)), "{later:?}");
}

#[tokio::test]
async fn while_another_process_has_the_turn_that_is_told_and_afterwards_it_is_written_again() {
    let mut scene = Scene::new().await;
    let path = scene.folder.path().join("ledger");
    let mut hasty = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    hasty.patience.working = std::time::Duration::from_millis(1);
    scene.scene.ledger = hasty;
    scene.ledger.prove_writable().await.unwrap();
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let asked = futures_util::future::join_all((0..3).map(|_| scene.ledger.prove_writable())).await;
    assert!(asked.iter().all(|told| matches!(told, Err(LedgerError::Busy { .. }))), "{asked:?}");
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    scene.ledger.prove_writable().await.unwrap();
}

#[tokio::test]
async fn changes_that_wait_together_are_all_written() {
    let scene = Arc::new(Scene::new().await);
    let begun = (1..=200).map(|rows| {
        let scene = Arc::clone(&scene);
        tokio::spawn(async move { scene.begin(rows, scene.mine).await })
    });
    let begun = futures_util::future::join_all(begun).await;
    let summaries = scene.ledger.envelope_summaries(scene.run.key).await.unwrap();
    assert_eq!(summaries.len(), 200);
    // Whichever came first: each has a number of its own, and under it its own rows.
    for (rows, begun) in (1..).zip(begun) {
        let permit = begun.unwrap();
        let kept = summaries.iter().find(|kept| permit == granted(kept.envelope)).unwrap();
        assert_eq!((kept.first, kept.last), (Row::new(rows * 2), Row::new(rows * 2 + 1)));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_can_read_the_ledger() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new().await;
    for file in ["ledger", "ledger-wal", "ledger-shm"] {
        let mode = std::fs::metadata(scene.folder.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn a_ledger_of_a_newer_version_is_refused() {
    let Scene { scene: Parts { ledger, .. }, folder } = Scene::new().await;
    drop(ledger);
    let path = folder.path().join("ledger");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99, 'later', 1, x'00', 0)";
    sqlx::query(newer).execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let opened = SqliteLedger::open(&path, Timestamp::now).await.map(|_| ());
    assert!(matches!(opened, Err(LedgerError::TooNew { .. })), "{opened:?}");
}

#[tokio::test]
async fn an_account_that_had_its_profiles_name_before_it_is_the_host_alone() {
    for (account, known_as) in [("main@gateway.example", "gateway.example"), ("main", "main"), ("a@b", "a@b")] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.unwrap();
        let run = ledger.create_run(&NewRun { account: account.into(), ..new_run(1) }).await.unwrap();
        ledger.open_run(run.key, None).await.unwrap();
        let run = ledger.runs(RunFilter::all()).await.unwrap().remove(0);
        assert_eq!(run.account, known_as);
        assert!(run.went_through("renamed", known_as) && run.went_through("main", "moved.example"));
        assert!(!run.went_through("renamed", "elsewhere.example"));
    }
}
