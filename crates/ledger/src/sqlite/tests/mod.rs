//! Guarantees of the SQLite ledger beyond those that every ledger gives (see `conformance`).

mod blocks;
mod copies;
mod damage;
mod earlier;
mod forgetting;
mod stored;

use std::sync::Arc;

use jiff::Timestamp;
use sqlx::{ConnectOptions, Connection};

use crate::conformance::scene::{
    Scene, accepted, as_port, granted, in_doubt, new_run, not_sent, phone, rejected, run_end,
};
use crate::{
    Allowance, CampaignLock, Intent, Ledger, LedgerError, NewRun, RowState, RunFilter, RunProgress, RunUpdate, SentRow,
    SqliteLedger, StopKind, StopRequest,
};
use campaign_core::domain::{GatewayMessageId, OperationKind, OperationOutcome, Row};

/// A scene in a temporary folder.
struct SqliteScene {
    scene: Scene,
    ledger: Arc<SqliteLedger>,
    folder: tempfile::TempDir,
}

impl std::ops::Deref for SqliteScene {
    type Target = Scene;

    fn deref(&self) -> &Self::Target {
        &self.scene
    }
}

impl SqliteScene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Arc::new(SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.unwrap());
        Self { scene: Scene::new(ledger.clone()).await, ledger, folder }
    }
}

#[tokio::test]
async fn connection_is_set_to_sync_commits() {
    let scene = SqliteScene::new().await;
    let result = scene.ledger.write(|connection, _| {
        Box::pin(async move {
            let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *connection).await?;
            let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(connection).await?;
            Ok((synchronous, journal))
        })
    });
    assert_eq!(result.await.unwrap(), (2, "wal".to_owned()), "FULL: the log is synced at each commit");
}

#[tokio::test]
async fn failed_write_stops_all_later_writes() {
    let scene = SqliteScene::new().await;
    let path = scene.folder.path().join("ledger");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::query("DROP TABLE envelopes").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let failed = scene.ledger.begin_envelope(scene.new_intent(1, scene.lease)).await;
    assert!(matches!(failed, Err(LedgerError::Storage { .. })), "{failed:?}");
    let later = scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Stop(StopRequest::Stop)).await;
    assert!(matches!(later, Err(LedgerError::Closed)), "{later:?}");
}

#[tokio::test]
async fn busy_ledger_is_reported_and_can_be_written_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    ledger.patience.working = std::time::Duration::from_millis(1);
    let ledger = as_port(&ledger);
    ledger.check_writable().await.unwrap();
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let results = futures_util::future::join_all((0..3).map(|_| ledger.check_writable())).await;
    assert!(results.iter().all(|result| matches!(result, Err(LedgerError::Busy { .. }))), "{results:?}");
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    ledger.check_writable().await.unwrap();
}

#[tokio::test]
async fn concurrent_changes_are_all_written() {
    let scene = Arc::new(SqliteScene::new().await);
    let tasks = (1..=200).map(|rows| {
        let scene = Arc::clone(&scene);
        tokio::spawn(async move { scene.begin_envelope(rows, scene.lease).await })
    });
    let permits = futures_util::future::join_all(tasks).await;
    let summaries = scene.ledger.list_envelope_summaries(scene.run.key).await.unwrap();
    assert_eq!(summaries.len(), 200);
    // The order is arbitrary, but each envelope has its own number and rows.
    for (rows, permit) in (1..).zip(permits) {
        let permit = permit.unwrap();
        let summary = summaries.iter().find(|summary| permit == granted(summary.envelope)).unwrap();
        assert_eq!((summary.first, summary.last), (Row::new(rows * 2), Row::new(rows * 2 + 1)));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn ledger_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = SqliteScene::new().await;
    for file in ["ledger", "ledger-wal", "ledger-shm"] {
        let mode = std::fs::metadata(scene.folder.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn ledger_of_a_newer_version_is_refused() {
    let SqliteScene { ledger, folder, .. } = SqliteScene::new().await;
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
async fn profile_name_is_stripped_from_stored_account() {
    for (account, known_as) in [("main@gateway.example", "gateway.example"), ("main", "main"), ("a@b", "a@b")] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.unwrap();
        let run =
            ledger.create_run(&NewRun { account: account.into(), ..new_run(1) }, None).await.unwrap().expect("a run");
        ledger.open_run(run.key, None, None).await.unwrap();
        let run = as_port(&ledger).list_runs(RunFilter::all()).await.unwrap().remove(0);
        assert_eq!(run.account, known_as);
        assert!(run.uses_gateway("renamed", known_as) && run.uses_gateway("main", "moved.example"));
        assert!(!run.uses_gateway("renamed", "elsewhere.example"));
    }
}
