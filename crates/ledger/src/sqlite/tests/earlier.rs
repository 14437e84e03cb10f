//! Upgrades of ledgers with earlier schemas.

use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;

use super::*;
use crate::sqlite::schema;

/// Creates a ledger with the last schema that had no kinds of stop, and a run with each of these exit codes and texts.
async fn create_ledger_with_exit_codes(path: &std::path::Path, ends: &[(Option<u8>, Option<&str>, Option<StopKind>)]) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    Migrator::with_migrations(schema::migrations().into_iter().take(4).collect()).run(&mut connection).await.unwrap();
    for (number, (exit, stopped, _)) in (1..).zip(ends) {
        sqlx::query(
            "INSERT INTO runs (campaign, number, edition, gateway, account, endpoint, kind, live, round, recipients,
                 first_id, ids, began_at, progress, exit, stopped)
             VALUES ('sale', ?, '', 'main', 'main', 'sync', 'sms', 1, 1, 1, 1, 3, 0, 'open', ?, ?)",
        )
        .bind(number)
        .bind(exit)
        .bind(stopped)
        .execute(&mut connection)
        .await
        .unwrap();
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn ledger_is_not_upgraded_while_an_earlier_version_sends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    create_ledger_with_exit_codes(&path, &[(None, None, None)]).await;
    std::fs::create_dir(folder.path().join("locks")).unwrap();
    let lock = std::fs::File::create(folder.path().join("locks/sale.main")).unwrap();
    lock.lock().unwrap();
    let refusal = SqliteLedger::open(&path, Timestamp::now).await.err();
    assert!(matches!(refusal, Some(LedgerError::Busy { .. })), "{refusal:?}");
    drop(lock);
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    assert_eq!(as_port(&ledger).list_runs(RunFilter::all()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn earlier_version_commits_nothing_after_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    create_ledger_with_exit_codes(&path, &[(None, None, None)]).await;
    let mut earlier = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let commit = "UPDATE meta SET generation = generation + 1 RETURNING id, generation";
    assert!(sqlx::query(commit).execute(&mut earlier).await.is_ok());
    SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    assert!(sqlx::query(commit).execute(&mut earlier).await.is_err());
}

#[tokio::test]
async fn upgrade_ends_open_single_operations_but_not_campaigns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    create_ledger_with_exit_codes(&path, &[(None, None, None)]).await;
    let options = SqliteConnectOptions::new().filename(&path);
    let mut connection = options.connect().await.unwrap();
    let renamed = "INSERT INTO runs SELECT key + 1, 'gateway.lookup', number, edition, gateway, account, endpoint, kind, live, round,
        recipients, first_id + 10, ids, began_at, ended_at, progress, stopped, exit, counts, parts, results, stop_requested, 7, sum,
        lag FROM runs";
    sqlx::query(renamed).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    let runs = as_port(&ledger).list_runs(RunFilter::all()).await.unwrap();
    let runs_after: Vec<_> = runs.iter().map(|run| (run.name(), run.progress, run.epoch)).collect();
    assert_eq!(
        runs_after,
        [("sale@1".into(), RunProgress::Open, None), ("gateway.lookup@1".into(), RunProgress::Finished, None)]
    );
}

#[tokio::test]
async fn stored_exit_code_becomes_the_stop_kind() {
    let limit = Some("the rows that were asked for are through");
    let ends: Vec<(Option<u8>, Option<&str>, Option<StopKind>)> = vec![
        (None, None, None),
        (Some(0), None, None),
        (Some(3), None, None),
        (Some(4), Some("interrupted"), None),
        (Some(5), None, None),
        (Some(5), limit, Some(StopKind::Limit)),
        (Some(5), Some("asked to stop"), Some(StopKind::Halted)),
        (Some(1), Some("a part ended"), Some(StopKind::Internal)),
        (Some(7), Some("no such key"), Some(StopKind::KeyRefused)),
        (Some(74), None, Some(StopKind::ResultsUnwritten)),
        (Some(74), Some("interrupted"), Some(StopKind::ResultsUnwritten)),
        (Some(130), None, Some(StopKind::Interrupted(2))),
        (Some(143), Some("interrupted"), Some(StopKind::Interrupted(15))),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    create_ledger_with_exit_codes(&path, &ends).await;
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    let runs = as_port(&ledger).list_runs(RunFilter::all()).await.unwrap();
    let runs_after: Vec<_> = runs.iter().map(|run| (run.stop_reason.as_deref(), run.stop)).collect();
    let expected: Vec<_> = ends.into_iter().map(|(_, stopped, stop)| (stopped, stop)).collect();
    assert_eq!(runs_after, expected);
}
