//! Damaged, deleted, outdated and first-version ledgers.

use std::path::Path;

use sqlx::Row as _;

use super::*;
use crate::sqlite::schema::migrations;
use crate::{Author, EnvelopeFilter, NewRowEvent, NumberFilter, RowChange, RowUpdate, RunUpdate};
use campaign_core::domain::Chain;

async fn open_database(path: &Path) -> sqlx::SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

impl SqliteScene {
    fn ledger_path(&self) -> std::path::PathBuf {
        self.folder.path().join("ledger")
    }

    /// Flips one bit of a blob in the file.
    async fn flip_bit(&self, table: &str, column: &str) {
        let mut other = open_database(&self.ledger_path()).await;
        let read = sqlx::AssertSqlSafe(format!("SELECT {column} FROM {table} LIMIT 1"));
        let mut bytes: Vec<u8> = sqlx::query_scalar(read).fetch_one(&mut other).await.unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 4;
        let write = sqlx::AssertSqlSafe(format!("UPDATE {table} SET {column} = ?"));
        sqlx::query(write).bind(bytes).execute(&mut other).await.unwrap();
        other.close().await.unwrap();
    }
}

async fn lock_campaign(ledger: &SqliteLedger) -> CampaignLock {
    ledger.acquire_campaign_lock("sale", "account").await.unwrap().expect("the lock is free")
}

fn assert_damaged<T: std::fmt::Debug>(result: Result<T, LedgerError>) {
    assert!(matches!(result, Err(LedgerError::Damaged { .. } | LedgerError::DamagedFile { .. })), "{result:?}");
}

#[tokio::test]
async fn damaged_column_name_is_reported_as_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    SqliteLedger::open(&path, Timestamp::now).await.unwrap().close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    let name = b"account TEXT";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("a column");
    bytes[at] = 0xd7;
    std::fs::write(&path, bytes).unwrap();
    let error = SqliteLedger::open(&path, Timestamp::now).await.err().expect("an error");
    assert!(error.to_string().contains("the definition of a table is damaged"), "{error}");
}

#[tokio::test]
async fn row_with_damaged_outcome_is_in_doubt() {
    let scene = SqliteScene::new().await;
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [not_sent(), not_sent()]).await;
    assert_eq!(scene.outcome_states(1).await, [RowState::Planned, RowState::Planned]);
    scene.flip_bit("envelopes", "outcomes").await;
    assert_eq!(scene.outcome_states(1).await, [RowState::InDoubt, RowState::InDoubt]);
}

#[tokio::test]
async fn damaged_answer_body_does_not_hide_its_envelope() {
    let scene = SqliteScene::new().await;
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [in_doubt(), in_doubt()]).await;
    let mut other = open_database(&scene.folder.path().join("ledger")).await;
    let damage = "UPDATE envelopes SET evidence = CAST(x'6fff' AS TEXT)";
    sqlx::query(damage).execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let envelopes = scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Row(Row::new(2))).await.unwrap();
    assert_eq!(envelopes[0].evidence.as_deref(), Some("o\u{fffd}"));
    assert_eq!(scene.outcome_states(1).await, [RowState::InDoubt, RowState::InDoubt]);
}

#[tokio::test]
async fn damaged_record_blocks_reading_the_run() {
    let scene = SqliteScene::new().await;
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [in_doubt(), in_doubt()]).await;
    let change = RowChange::AssumedSent { by: Author::Person("olena".into()), why: None };
    scene
        .ledger
        .update_rows(scene.lease, RowUpdate::Events(vec![NewRowEvent { row: Row::new(2), envelope: 1, change }]))
        .await
        .unwrap();
    scene.flip_bit("events", "change").await;
    assert_damaged(scene.ledger.load_events(scene.run.key).await);
    assert_damaged(scene.ledger.load_numbers(NumberFilter::Sent(&[scene.run.key])).await);
    scene.flip_bit("envelopes", "rows").await;
    assert_damaged(scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Numbers(1..=1)).await);
    scene.flip_bit("left_out", "rows").await;
    assert_damaged(scene.ledger.load_excluded_rows(scene.run.key).await);
    let mut other = open_database(&scene.ledger_path()).await;
    sqlx::query("UPDATE runs SET first_id = first_id + 1").execute(&mut other).await.unwrap();
    assert_damaged(scene.port().list_runs(RunFilter::all()).await);
}

#[tokio::test]
async fn quick_check_finds_lost_records_once_per_file_state() {
    let SqliteScene { ledger, folder, .. } = SqliteScene::new().await;
    assert!(ledger.find_defect().await.is_none());
    ledger.close().await;
    let path = folder.path().join("ledger");
    let mut other = open_database(&path).await;
    let page: i64 = sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE name = 'runs'")
        .fetch_one(&mut other)
        .await
        .unwrap();
    let size: i64 = sqlx::query("PRAGMA page_size").fetch_one(&mut other).await.unwrap().get(0);
    other.close().await.unwrap();
    let sound = std::fs::read(&path).unwrap();
    // The leaf claims to have no entries.
    let mut lossy = sound.clone();
    lossy[usize::try_from((page - 1) * size + 4).unwrap()] = 0;
    let judge = async || {
        let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
        let result = ledger.find_defect().await;
        ledger.close().await;
        result
    };
    std::fs::write(&path, &lossy).unwrap();
    assert!(matches!(judge().await, Some(LedgerError::DamagedFile { .. })));
    std::fs::write(&path, &sound).unwrap();
    assert!(judge().await.is_none());
    let checked = std::fs::read(path.with_extension("checked")).unwrap();
    assert!(judge().await.is_none());
    assert_eq!(std::fs::read(path.with_extension("checked")).unwrap(), checked, "the state of the file is the same");
}

#[tokio::test]
async fn damaged_envelope_does_not_hide_rows_of_other_envelopes() {
    let SqliteScene { scene: Scene { lease, .. }, ledger, folder } = SqliteScene::new().await;
    let sent = |row| SentRow { row: Row::new(row), to: phone(row).into(), digest: [0; 8], chain: Chain::UNKNOWN };
    // The span of the second envelope includes row 3, and both have row 4.
    for rows in [vec![sent(3), sent(4)], vec![sent(2), sent(4), sent(5)]] {
        let intent = Intent {
            lease,
            kind: OperationKind::Sms,
            account: Allowance::new("account", None),
            rows,
            costs: Vec::new(),
            bounds: None,
            leave_by: None,
        };
        ledger.begin_envelope(intent).await.unwrap();
    }
    let ledger = as_port(&*ledger);
    for damage in ["rows_sum = rows_sum + 1", "rows = x'ff'"] {
        let mut other = open_database(&folder.path().join("ledger")).await;
        let change = format!("UPDATE envelopes SET {damage} WHERE envelope = 2");
        sqlx::query(sqlx::AssertSqlSafe(change)).execute(&mut other).await.unwrap();
        other.close().await.unwrap();
        for row in [3, 4] {
            let addressee = ledger.find_addressee(lease.run, Row::new(row)).await.unwrap();
            assert_eq!(addressee, Some(phone(row).into()), "{damage}");
        }
        assert_damaged(ledger.find_addressee(lease.run, Row::new(5)).await);
    }
}

#[tokio::test]
async fn incomplete_index_is_found_before_sending() {
    let SqliteScene { scene: Scene { lease, .. }, ledger, folder } = SqliteScene::new().await;
    for envelope in 1..=3 {
        let row =
            SentRow { row: Row::new(envelope + 1), to: phone(envelope).into(), digest: [0; 8], chain: Chain::UNKNOWN };
        let account = Allowance::new("account", None);
        let intent = Intent {
            lease,
            kind: OperationKind::Sms,
            account,
            rows: vec![row],
            costs: Vec::new(),
            bounds: None,
            leave_by: None,
        };
        ledger.begin_envelope(intent).await.unwrap();
    }
    ledger.close().await;
    let path = folder.path().join("ledger");
    let mut other = open_database(&path).await;
    let page: i64 = sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE name = 'envelopes_by_run'")
        .fetch_one(&mut other)
        .await
        .unwrap();
    let size: i64 = sqlx::query("PRAGMA page_size").fetch_one(&mut other).await.unwrap().get(0);
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    // The leaf claims two entries instead of three.
    let mut bytes = std::fs::read(&path).unwrap();
    let at = usize::try_from((page - 1) * size + 4).unwrap();
    assert_eq!(bytes[at], 3);
    bytes[at] = 2;
    std::fs::write(&path, bytes).unwrap();
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    assert_damaged(ledger.claim_run(&lock_campaign(&ledger).await, lease.run).await);
    assert_damaged(ledger.create_run(&new_run(9), None).await);
}

#[tokio::test]
async fn deleted_or_outdated_ledger_refuses_changes() {
    let SqliteScene { scene: Scene { run, lock, lease, .. }, ledger, folder } = SqliteScene::new().await;
    let path = folder.path().join("ledger");
    let copy = folder.path().join("copy");
    let mut other = open_database(&path).await;
    sqlx::query("VACUUM INTO ?").bind(copy.display().to_string()).execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    ledger.update_runs(vec![run.key], RunUpdate::Stop(StopRequest::Withdraw)).await.unwrap();
    ledger.end_run(lease, run_end()).await.unwrap();
    ledger.close().await;
    for restored_copy in [None, Some(&copy)] {
        for name in ["ledger", "ledger-wal", "ledger-shm"] {
            // The file might not exist.
            let _ = std::fs::remove_file(folder.path().join(name));
        }
        if let Some(copy) = restored_copy {
            std::fs::copy(copy, &path).unwrap();
        }
        let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
        for _ in 0..20 {
            // A change that sends nothing must not make the ledger look newer either.
            let refusal = ledger.update_runs(vec![run.key], RunUpdate::Stop(StopRequest::Withdraw)).await;
            assert!(matches!(refusal, Err(LedgerError::Outdated { .. })), "{refusal:?}");
        }
        ledger.close().await;
        let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
        let refusal = ledger.create_run(&new_run(9), None).await;
        assert!(matches!(refusal, Err(LedgerError::Outdated { .. })), "{refusal:?}");
        let refusal = ledger.claim_run(&lock, run.key).await;
        assert!(matches!(refusal, Err(LedgerError::Outdated { .. })), "{refusal:?}");
    }
    for mark in [None, Some("half a mark")] {
        std::fs::remove_file(folder.path().join("ledger.mark")).unwrap();
        if let Some(mark) = mark {
            std::fs::write(folder.path().join("ledger.mark"), mark).unwrap();
        }
        let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
        let refusal = ledger.create_run(&new_run(9), None).await;
        assert!(matches!(refusal, Err(LedgerError::Outdated { .. })), "{mark:?}: {refusal:?}");
        std::fs::write(folder.path().join("ledger.mark"), "").unwrap();
    }
    let (ledger, refusal) = SqliteLedger::open_accepted(&path, Timestamp::now).await.unwrap();
    assert!(matches!(refusal, Some(LedgerError::Outdated { .. })), "{refusal:?}");
    let progress = as_port(&ledger).list_runs(RunFilter::all()).await.unwrap()[0].progress;
    assert_eq!(progress, RunProgress::Replaced, "messages might have been sent meanwhile");
    assert!(ledger.create_run(&new_run(9), None).await.is_ok());
    ledger.close().await;
    let (_, refusal) = SqliteLedger::open_accepted(&path, Timestamp::now).await.unwrap();
    assert!(refusal.is_none(), "it is remembered: {refusal:?}");
}

/// Rows and outcomes of three envelopes as the first version stored them.
///
/// The bytes are literals because the current code cannot produce them.
const FIRST_VERSION: [(&[u8], Option<&[u8]>); 3] = [
    (
        b"\x02\x02\xd2\xa2\x90\xbd\x89\x0b\0\0\0\0\0\0\0\0\x03\xd3\xa2\x90\xbd\x89\x0b\0\0\0\0\0\0\0\0",
        Some(b"\x02\x01\x00\x01\x00\x05\x01\x02\x00\x01\x02\x08No route"),
    ),
    (
        b"\x02\x04\xd4\xa2\x90\xbd\x89\x0b\0\0\0\0\0\0\0\0\x05\xd5\xa2\x90\xbd\x89\x0b\0\0\0\0\0\0\0\0",
        Some(b"\x02\x01\x04\x07silence\x01\x03\x07refused"),
    ),
    (b"\x02\x06\xd6\xa2\x90\xbd\x89\x0b\0\0\0\0\0\0\0\0\x07\xd7\xa2\x90\xbd\x89\x0b\0\0\0\0\0\0\0\0", None),
];

/// The set with row 9 as the first version stored it.
const ROW_NINE: &[u8] = b"\x3a\x30\0\0\x01\0\0\0\0\0\0\0\x10\0\0\0\x09\0";

/// Writes a ledger of the first version: a run with two settled envelopes and an intent.
async fn write_first_version(connection: &mut sqlx::SqliteConnection) {
    let first = sqlx::migrate::Migrator::with_migrations(migrations().into_iter().take(1).collect());
    first.run(&mut *connection).await.unwrap();
    let run = "INSERT INTO runs (campaign, number, edition, gateway, account, endpoint, kind, live, round, recipients,
                   first_id, ids, began_at, progress)
               VALUES ('sale', 1, '', 'main', 'account', 'async', 'viber+sms', 1, 1, 10, 1000, 12, 0, 'open')";
    sqlx::query(run).execute(&mut *connection).await.unwrap();
    for (envelope, (rows, outcomes)) in (1_u32..).zip(FIRST_VERSION) {
        sqlx::query(
            "INSERT INTO envelopes (run, envelope, owner, begun_at, first_row, last_row, rows, settled_at, outcomes)
             VALUES (1, ?, 7, 0, ?, ?, ?, ?, ?)",
        )
        .bind(envelope)
        .bind(envelope * 2)
        .bind(envelope * 2 + 1)
        .bind(rows)
        .bind(outcomes.map(|_| 5))
        .bind(outcomes)
        .execute(&mut *connection)
        .await
        .unwrap();
    }
    sqlx::query("INSERT INTO left_out (run, state, reason, rows) VALUES (1, 'invalid', 'too short', ?)")
        .bind(ROW_NINE)
        .execute(&mut *connection)
        .await
        .unwrap();
}

#[tokio::test]
async fn first_version_ledger_is_read_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut other =
        sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true).connect().await.unwrap();
    write_first_version(&mut other).await;
    other.close().await.unwrap();
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    let runs = as_port(&ledger).list_runs(RunFilter::all()).await.unwrap();
    let [run] = runs.as_slice() else { panic!("one run") };
    assert_eq!((run.name().as_str(), run.recipients), ("sale@1", 10));
    let envelopes = ledger.load_envelopes(run.key, EnvelopeFilter::Numbers(1..=9)).await.unwrap();
    let numbers: Vec<(Row, campaign_core::domain::Addressee)> =
        envelopes.iter().flat_map(|envelope| envelope.rows.iter().map(|sent| (sent.row, sent.to))).collect();
    assert_eq!(numbers, (2..8).map(|row| (Row::new(row), phone(row).into())).collect::<Vec<_>>());
    let outcomes: Vec<Option<Vec<OperationOutcome>>> =
        envelopes.into_iter().map(|envelope| envelope.settled.map(|(_, outcomes)| outcomes)).collect();
    assert_eq!(outcomes, [Some(vec![accepted(), rejected()]), Some(vec![in_doubt(), not_sent()]), None]);
    let excluded = ledger.load_excluded_rows(run.key).await.unwrap();
    let excluded: Vec<(Row, RowState, &str)> = excluded.iter_by_row().collect();
    assert_eq!(excluded, [(Row::new(9), RowState::Invalid, "too short")]);
    assert_eq!(ledger.claim_run(&lock_campaign(&ledger).await, run.key).await.unwrap().in_doubt, 1);
    assert_eq!(ledger.load_numbers(NumberFilter::Sent(&[run.key])).await.unwrap().len(), 4);
}

#[tokio::test]
async fn ledger_whose_creation_was_interrupted_is_recreated() {
    let folder = tempfile::tempdir().unwrap();
    let (half, path) = (folder.path().join("half"), folder.path().join("ledger"));
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&half).create_if_missing(true);
    let mut connection = options.journal_mode(sqlx::sqlite::SqliteJournalMode::Delete).connect().await.unwrap();
    for step in [
        "CREATE TABLE whole (filler BLOB)",
        // Makes pages reach the file before their transaction ends.
        "PRAGMA cache_size = 1",
        "BEGIN",
        "WITH RECURSIVE rows (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE n < 99)
         INSERT INTO whole SELECT randomblob(4000) FROM rows",
    ] {
        sqlx::query(step).execute(&mut connection).await.unwrap();
    }
    for suffix in ["", "-journal"] {
        std::fs::copy(format!("{}{suffix}", half.display()), format!("{}{suffix}", path.display())).unwrap();
    }
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    assert!(ledger.create_run(&new_run(1), None).await.is_ok());
    ledger.close().await;
}
