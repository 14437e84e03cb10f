//! How many shares of a run are drawn in a second.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use campaign::domain::{Endpoint, OperationKind, Row};
use campaign::ledger::{
    ExcludedRows, Ledger, NewRun, PostgresAddress, PostgresLedger, Run, RunFilter, ShardDraw, SqliteLedger,
    SuppressionPolicy,
};

use crate::database::Database;

/// Processes that draw at once, and how many seats they have together.
const WAYS: [(usize, usize); 3] = [(1, 1), (6, 6), (1, 16)];

/// Draws for so many seconds from a ledger in a file and from one in a database, and prints how many shares that were.
pub(crate) fn draw(database: &Database, seconds: u64) {
    println!("shares of one row, drawn for {seconds} s\n");
    println!("{:<10} {:>10} {:>8} {:>12}", "ledger", "processes", "seats", "shares/s");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (processes, seats) in WAYS {
        let drawn = runtime.block_on(async {
            let folder = tempfile::tempdir().expect("a folder");
            let open = async || open_file(folder.path()).await;
            from(&ledgers(processes, open).await, seats, seconds).await
        });
        print("file", (processes, seats), drawn);
        let drawn = runtime.block_on(async {
            let (folder, url) = (tempfile::tempdir().expect("a folder"), database.ledger());
            let address = PostgresAddress::parse(&url).expect("an address");
            let open = async || open_database(&address, folder.path()).await;
            let drawn = from(&ledgers(processes, open).await, seats, seconds).await;
            database.remove(&url);
            drawn
        });
        print("database", (processes, seats), drawn);
    }
    println!();
}

fn print(name: &str, (processes, seats): (usize, usize), drawn: f64) {
    println!("{name:<10} {processes:>10} {seats:>8} {drawn:>12.0}");
}

async fn open_file(folder: &Path) -> Arc<dyn Ledger> {
    Arc::new(SqliteLedger::open(&folder.join("ledger.sqlite"), jiff::Timestamp::now).await.expect("a ledger"))
}

async fn open_database(address: &PostgresAddress, folder: &Path) -> Arc<dyn Ledger> {
    Arc::new(PostgresLedger::open(address, folder).await.expect("a ledger"))
}

async fn ledgers(processes: usize, open: impl AsyncFn() -> Arc<dyn Ledger>) -> Vec<Arc<dyn Ledger>> {
    let mut ledgers = Vec::new();
    for _ in 0..processes {
        ledgers.push(open().await);
    }
    ledgers
}

/// How many shares a second are drawn in so many seats, by these processes in turn.
async fn from(ledgers: &[Arc<dyn Ledger>], seats: usize, seconds: u64) -> f64 {
    let run = shared_out(ledgers[0].as_ref()).await;
    let (drawn, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    for seat in 0..seats {
        let (ledger, run, drawn) = (Arc::clone(&ledgers[seat % ledgers.len()]), run.clone(), Arc::clone(&drawn));
        tasks.spawn(async move {
            let seat = ledger.register_worker(&run, format!("seat {seat}")).await.expect("the ledger").expect("a seat");
            while began.elapsed() < Duration::from_secs(seconds) {
                let share = ledger.draw_shard(&seat, 1, false).await.expect("the ledger");
                assert!(matches!(share, ShardDraw::NewRows(_)), "{share:?}");
                drawn.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("it draws");
    }
    let rate = drawn.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    for ledger in ledgers {
        ledger.close().await;
    }
    rate
}

/// A run that everybody may draw from.
async fn shared_out(ledger: &dyn Ledger) -> Run {
    let rows = 10_000_000;
    let new = NewRun {
        campaign: "bench".into(),
        edition: String::new(),
        gateway: "bench".into(),
        account: "bench".into(),
        endpoint: Endpoint::Sync,
        kind: OperationKind::Sms,
        live: true,
        round: 1,
        recipients: rows,
        last_row: Row::new(rows as u32 + 1),
        excluded: ExcludedRows::default(),
        suppression: SuppressionPolicy::default(),
        file: None,
        began_at: jiff::Timestamp::now(),
        random: 1,
    };
    let run = ledger.create_run(&new).await.expect("a run");
    ledger.open_run(run.key, None).await.expect("it opens");
    let hold =
        ledger.acquire_campaign_lock(&run.campaign, &run.account).await.expect("the ledger").expect("nobody has it");
    let lease = ledger.claim_run(&hold, run.key).await.expect("it is taken").lease;
    ledger.shard_run(lease, String::new(), true).await.expect("it is shared out");
    ledger.list_runs(RunFilter::with_key(run.key)).await.expect("the ledger").pop().expect("the run")
}
