//! Benchmark of shard claims per second.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use campaign_core::domain::{Endpoint, OperationKind, Row};
use campaign_ledger::{
    ExcludedRows, Ledger, NewRun, PostgresAddress, PostgresLedger, RowUpdate, Run, RunFilter, ShardDraw, SqliteLedger,
    SuppressionPolicy,
};

use crate::database::Database;

/// The number of processes, and the total number of workers in them.
const SETUPS: [(usize, usize); 3] = [(1, 1), (6, 6), (1, 16)];

/// Claims shards from a ledger in a file and from one in a database, and prints the rates.
pub(crate) fn measure_claims(database: &Database, seconds: u64) {
    println!("shards of one row, claimed for {seconds} s\n");
    println!("{:<10} {:>10} {:>8} {:>12}", "ledger", "processes", "workers", "shards/s");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (processes, workers) in SETUPS {
        let rate = runtime.block_on(async {
            let folder = tempfile::tempdir().expect("a folder");
            let open = async || open_file(folder.path()).await;
            measure_rate(&open_ledgers(processes, open).await, workers, seconds).await
        });
        print_row("file", (processes, workers), rate);
        let rate = runtime.block_on(async {
            let (folder, url) = (tempfile::tempdir().expect("a folder"), database.create_ledger());
            let address = PostgresAddress::parse(&url).expect("an address");
            let open = async || open_database(&address, folder.path()).await;
            let rate = measure_rate(&open_ledgers(processes, open).await, workers, seconds).await;
            database.remove_ledger(&url);
            rate
        });
        print_row("database", (processes, workers), rate);
    }
    println!();
}

fn print_row(name: &str, (processes, workers): (usize, usize), rate: f64) {
    println!("{name:<10} {processes:>10} {workers:>8} {rate:>12.0}");
}

async fn open_file(folder: &Path) -> Arc<dyn Ledger> {
    Arc::new(SqliteLedger::open(&folder.join("ledger.sqlite"), jiff::Timestamp::now).await.expect("a ledger"))
}

async fn open_database(address: &PostgresAddress, folder: &Path) -> Arc<dyn Ledger> {
    Arc::new(PostgresLedger::open(address, folder).await.expect("a ledger"))
}

async fn open_ledgers(processes: usize, open: impl AsyncFn() -> Arc<dyn Ledger>) -> Vec<Arc<dyn Ledger>> {
    let mut ledgers = Vec::new();
    for _ in 0..processes {
        ledgers.push(open().await);
    }
    ledgers
}

/// Measures how many shards the workers claim per second. The workers are distributed over the ledgers.
async fn measure_rate(ledgers: &[Arc<dyn Ledger>], workers: usize, seconds: u64) -> f64 {
    let run = create_shared_run(ledgers[0].as_ref()).await;
    let (draws, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..workers {
        let (ledger, run, draws) = (Arc::clone(&ledgers[worker % ledgers.len()]), run.clone(), Arc::clone(&draws));
        tasks.spawn(async move {
            let worker =
                ledger.register_worker(&run, format!("worker {worker}")).await.expect("the ledger").expect("a worker");
            while began.elapsed() < Duration::from_secs(seconds) {
                let shard = ledger.draw_shard(&worker, 1, false).await.expect("the ledger");
                assert!(matches!(shard, ShardDraw::NewRows(_)), "{shard:?}");
                draws.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.expect("the task ends");
    }
    let rate = draws.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    for ledger in ledgers {
        ledger.close().await;
    }
    rate
}

/// Creates a run that several processes can claim shards from.
async fn create_shared_run(ledger: &dyn Ledger) -> Run {
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
    let run = ledger.create_run(&new, None).await.expect("the ledger").expect("a run");
    ledger.open_run(run.key, None, None).await.expect("the run opens");
    let lock =
        ledger.acquire_campaign_lock(&run.campaign, &run.account).await.expect("the ledger").expect("the lock is free");
    let lease = ledger.claim_run(&lock, run.key).await.expect("the run is free").lease;
    ledger
        .update_rows(lease, RowUpdate::Sharded { terms: String::new(), proven: true })
        .await
        .expect("the run is shared");
    ledger.list_runs(RunFilter::with_key(run.key)).await.expect("the ledger").pop().expect("the run")
}
