//! Sending: what goes over the wire, what the results say of it, and that nobody gets it twice.

mod batches;
mod limits;
mod operations;
mod outcome;
mod pauses;
mod rounds;
mod wire;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::support::Folder;

/// Changes the file of a ledger behind the program's back.
pub(crate) fn change_ledger(sale: &Folder, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(sale.path("state/ledger.sqlite"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connection = SqliteConnection::connect_with(&options).await.expect("the ledger");
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("a statement");
        connection.close().await.expect("the end");
    });
}
