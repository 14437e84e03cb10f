//! Fuzz target for ledger backups: a damaged backup is rejected, or restored without a panic.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use campaign_core::domain::{Chain, Endpoint, OperationKind, OperationOutcome, Phone, Row};
use campaign_ledger::{
    Allowance, EnvelopeFilter, ExcludedRows, Intent, Ledger, NewRun, Permit, RunFilter, SentRow, Settlement,
    SqliteLedger, SuppressionPolicy,
};

/// The number of bytes that describe a change: the kind of change, three bytes of its position, and its argument.
const CHANGE_LENGTH: usize = 5;
/// The maximum number of changes.
const MAX_CHANGES: usize = 64;

/// The ledger file of a backup with one run.
static BACKUP: LazyLock<Vec<u8>> = LazyLock::new(|| super::wait_for(make_backup()));

/// Checks that a changed backup can be restored or is rejected. The bytes describe changes of the file: a new byte, a
/// flipped bit, a range of zeros, or a shorter length.
pub(super) fn check(data: &[u8]) {
    let mut file = BACKUP.clone();
    for change in data.chunks_exact(CHANGE_LENGTH).take(MAX_CHANGES) {
        let at = u32::from_le_bytes([change[1], change[2], change[3], 0]) as usize % file.len().max(1);
        match change[0] % 4 {
            0 => file[at] = change[4],
            1 => file[at] ^= 1 << (change[4] % 8),
            2 => file[at..].iter_mut().take(usize::from(change[4])).for_each(|byte| *byte = 0),
            _ => file.truncate(at.max(1)),
        }
    }
    super::wait_for(check_restoration(&file, file == *BACKUP));
}

/// Checks that SQLite finds no defect in a file that is restored.
async fn check_restoration(file: &[u8], is_intact: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let (backup, state) = (folder.path().join("backup"), folder.path().join("state"));
    fs::create_dir(&backup).and_then(|()| fs::create_dir(&state)).expect("folders");
    fs::write(backup.join("ledger.sqlite"), file).expect("a file");
    let path = state.join("ledger.sqlite");
    let restored = SqliteLedger::restore_backup(&path, &backup, Timestamp::now).await;
    if is_intact {
        assert!(restored.is_ok(), "an intact backup is refused: {restored:?}");
    }
    if restored.is_err() {
        return;
    }
    assert_eq!(find_defects(&backup.join("ledger.sqlite")).await.as_deref(), Ok("ok"), "a damaged file is restored");
    let Ok(ledger) = SqliteLedger::open(&path, Timestamp::now).await else { return };
    let port: &dyn Ledger = &ledger;
    let runs = port.list_runs(RunFilter::all()).await;
    if is_intact {
        let names: Vec<String> = runs.expect("runs").iter().map(campaign_ledger::Run::name).collect();
        assert_eq!(names, ["sale@1"]);
    } else if let Ok(runs) = runs {
        for run in runs {
            // These calls can find damage that SQLite's check does not know.
            let _ = ledger.load_envelopes(run.key, EnvelopeFilter::Numbers(1..=10)).await;
            let _ = ledger.load_events(run.key).await;
        }
    }
    ledger.close().await;
}

/// The result of SQLite's integrity check: `ok`, or the first defect.
async fn find_defects(file: &Path) -> Result<String, String> {
    let options = SqliteConnectOptions::new().filename(file).immutable(true);
    let connection: sqlx::Result<SqliteConnection> = options.connect().await;
    let mut connection = connection.map_err(|error| error.to_string())?;
    let defects: sqlx::Result<String> =
        sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut connection).await;
    let _ = connection.close().await;
    defects.map_err(|error| error.to_string())
}

async fn make_backup() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = SqliteLedger::open(&folder.path().join("ledger.sqlite"), || Timestamp::UNIX_EPOCH).await;
    let ledger = ledger.expect("a ledger");
    let new = NewRun {
        campaign: "sale".into(),
        edition: String::new(),
        gateway: "main".into(),
        account: "main".into(),
        endpoint: Endpoint::Sync,
        kind: OperationKind::Sms,
        live: true,
        round: 1,
        recipients: 20,
        last_row: Row::new(21),
        excluded: ExcludedRows::default(),
        suppression: SuppressionPolicy::default(),
        began_at: Timestamp::UNIX_EPOCH,
        random: 1,
        file: None,
    };
    let run = ledger.create_run(&new, None).await.expect("a ledger").expect("a run");
    ledger.open_run(run.key, None, None).await.expect("an open run");
    let lock = ledger.acquire_campaign_lock("sale", "main").await.expect("a ledger").expect("a lock");
    let lease = ledger.claim_run(&lock, run.key).await.expect("a claim").lease;
    for row in 2..12_u32 {
        let to = Phone::new(380_501_000_000 + u64::from(row)).expect("a number").into();
        let intent = Intent {
            lease,
            kind: OperationKind::Sms,
            account: Allowance::new("main", None),
            rows: vec![SentRow { row: Row::new(row), to, digest: [0; 8], chain: Chain::UNKNOWN }],
            costs: vec!["0.8".parse().expect("an amount")],
            bounds: None,
            leave_by: None,
        };
        let permit = ledger.begin_envelope(intent).await.expect("a permit");
        let Permit::Granted { envelope, .. } = permit else { panic!("it may leave") };
        let outcome = OperationOutcome::Accepted { msg_id: None, parts: Some(1), answer: None };
        let settlement =
            Settlement { opt_outs: Vec::new(), run: run.key, envelope, outcomes: vec![outcome], evidence: None };
        ledger.settle_envelope(settlement).await.expect("a settlement");
    }
    let backup = folder.path().join("backup");
    ledger.write_backup(&backup).await.expect("a backup");
    ledger.close().await;
    fs::read(backup.join("ledger.sqlite")).expect("a file")
}
