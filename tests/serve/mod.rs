//! `campaign serve`: the process of a server and its own door.

#[cfg(unix)]
mod api;
mod deploy;
mod door;
mod metrics;
#[cfg(unix)]
mod notifications;
mod process;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::support::Folder;

/// Does something while a connection of our own to a campaign's ledger is open.
fn with_ledger(sale: &Folder, what: impl AsyncFnOnce(&mut SqliteConnection)) {
    let options = SqliteConnectOptions::new().filename(sale.path("state/ledger.sqlite"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut ledger = SqliteConnection::connect_with(&options).await.expect("the ledger");
        what(&mut ledger).await;
        ledger.close().await.expect("the end");
    });
}

async fn say(ledger: &mut SqliteConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(ledger).await.expect("a statement");
}
