//! Direct access to a campaign's ledger, bypassing the program.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::cluster::Cluster;
use super::folder::Folder;

/// Runs `access` with an open connection to the ledger file of a campaign.
pub(crate) fn with_ledger(sale: &Folder, access: impl AsyncFnOnce(&mut SqliteConnection)) {
    let options = SqliteConnectOptions::new().filename(sale.path("state/ledger.sqlite"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut ledger = SqliteConnection::connect_with(&options).await.expect("the ledger");
        access(&mut ledger).await;
        ledger.close().await.expect("the end");
    });
}

/// Changes the ledger of a campaign, whether it is a file or a database.
pub(crate) fn change_ledger(sale: &Folder, statements: &str) {
    match sale.ledger() {
        Some(database) => {
            let cluster = Cluster::shared().expect("a server");
            cluster.run_sql(database, &format!("SET search_path TO campaign; {statements}"));
        }
        None => with_ledger(sale, async |ledger| run_sql(ledger, statements).await),
    }
}

/// Runs statements in the ledger.
pub(crate) async fn run_sql(ledger: &mut SqliteConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(ledger).await.expect("a statement");
}
