//! The schema, one migration after another; a released one is never changed.
//!
//! Machines get a new version one by one, so opening a ledger never changes its tables: each version works with those of
//! the version before, until somebody says that all machines have it. From then on the version before is refused.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{SqlSafeStr, raw_sql};

/// The tables as they are with SQLite, in PostgreSQL's words, and what stands there in files: locks and copies.
const FIRST: &str = include_str!("schema.sql");

/// What a projection made of all rows of a run, and the server that the ledger was last written on.
const SECOND: &str = "
    ALTER TABLE meta ADD COLUMN timeline BIGINT, ADD COLUMN confirmed BOOLEAN;
    CREATE TABLE figures (
        run BIGINT PRIMARY KEY REFERENCES runs (key),
        figures BYTEA NOT NULL
    ) WITH (fillfactor = 50);
";

/// The channels of pipelines. Delivery status follows another rule since then, so runs with receipts or retries are counted again
/// once.
const THIRD: &str = "
    ALTER TABLE envelopes ADD COLUMN chains TEXT;
    UPDATE runs SET receipts_counted = receipts + 1
        WHERE purged_at IS NULL AND (receipts > 0 OR EXISTS (SELECT 1 FROM orders WHERE run = runs.key));
";

/// The version of the tables whose envelopes know the channels of pipelines.
pub(super) const WITH_CHAINS: i64 = 3;

/// The version of the tables that have a place for figures.
pub(super) const WITH_FIGURES: i64 = 2;
/// The version of the tables that have a place for the server that they were last written on.
pub(super) const WITH_SERVER: i64 = 2;

/// The version of the tables that this version makes.
pub(super) const NEWEST: i64 = 3;

/// All migrations, the first first.
fn migrations() -> Vec<Migration> {
    let steps = [("the ledger", FIRST), ("figures of runs, and the server", SECOND), ("channels of pipelines", THIRD)];
    let migration = |(version, (what, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, what.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    (1..).zip(steps).map(migration).collect()
}

/// The version of the tables of a database; nothing where there are none.
pub(super) async fn version(connection: &mut PgConnection) -> sqlx::Result<Option<i64>> {
    let there = sqlx::query_scalar("SELECT to_regclass('campaign._sqlx_migrations') IS NOT NULL").persistent(false);
    if !there.fetch_one(&mut *connection).await? {
        return Ok(None);
    }
    sqlx::query_scalar("SELECT max(version) FROM campaign._sqlx_migrations")
        .persistent(false)
        .fetch_one(connection)
        .await
}

/// Brings the database to these tables, in the transaction that the caller began, while nobody else does, nor writes.
pub(super) async fn make(connection: &mut PgConnection, version: i64) -> Result<(), MigrateError> {
    raw_sql(
        "SELECT pg_advisory_xact_lock(7161125211933861742); CREATE SCHEMA IF NOT EXISTS campaign;
         SET LOCAL search_path TO campaign",
    )
    .execute(&mut *connection)
    .await?;
    let steps = migrations().into_iter().filter(|step| step.version <= version).collect();
    let mut migrator = Migrator::with_migrations(steps);
    // The lock above lasts as long as the transaction; the one of the migrator would outlive it behind a pooler.
    migrator.set_locking(false);
    migrator.run(&mut *connection).await?;
    // What the migrator prepared would be in the way of whoever a pooler gives this connection next.
    raw_sql("DEALLOCATE ALL").execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_tables_are_those_of_the_last_migration() {
        assert_eq!(migrations().last().map(|step| step.version), Some(NEWEST));
        assert!([WITH_FIGURES, WITH_SERVER, WITH_CHAINS].iter().all(|version| (1..=NEWEST).contains(version)));
    }
}
