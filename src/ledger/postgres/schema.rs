//! The schema, one migration after another; a released one is never changed.
//!
//! Machines get a new version one by one, so opening a ledger never changes its tables: each version works with those of
//! the version before, until somebody says that all machines have it.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{SqlSafeStr, raw_sql};

/// The tables as they are with SQLite, in PostgreSQL's words, and what stands there in files: locks and copies.
const FIRST: &str = include_str!("schema.sql");

/// All migrations, the first first.
fn migrations() -> Vec<Migration> {
    let steps = [("the ledger", FIRST)];
    let migration = |(version, (what, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, what.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    (1..).zip(steps).map(migration).collect()
}

/// How the schema of a database stands to the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// This version can work with it.
    Usable,
    /// There is none.
    Missing,
    /// It belongs to a newer version.
    Newer,
}

/// How old the schema of a database is.
pub(super) async fn age(connection: &mut PgConnection) -> sqlx::Result<Age> {
    let there = sqlx::query_scalar("SELECT to_regclass('campaign._sqlx_migrations') IS NOT NULL").persistent(false);
    if !there.fetch_one(&mut *connection).await? {
        return Ok(Age::Missing);
    }
    let last = sqlx::query_scalar("SELECT max(version) FROM campaign._sqlx_migrations").persistent(false);
    let last: Option<i64> = last.fetch_one(connection).await?;
    let newest = i64::try_from(migrations().len()).unwrap_or(i64::MAX);
    Ok(match last {
        None => Age::Missing,
        Some(last) if last > newest => Age::Newer,
        Some(_) => Age::Usable,
    })
}

/// Brings the database to the newest schema, in the transaction that the caller began, while nobody else does.
pub(super) async fn make(connection: &mut PgConnection) -> Result<(), MigrateError> {
    raw_sql(
        "SELECT pg_advisory_xact_lock(7161125211933861742); CREATE SCHEMA IF NOT EXISTS campaign;
         SET LOCAL search_path TO campaign",
    )
    .execute(&mut *connection)
    .await?;
    let mut migrator = Migrator::with_migrations(migrations());
    // The lock above lasts as long as the transaction; the one of the migrator would outlive it behind a pooler.
    migrator.set_locking(false);
    migrator.run(&mut *connection).await?;
    // What the migrator prepared would be in the way of whoever a pooler gives this connection next.
    raw_sql("DEALLOCATE ALL").execute(connection).await?;
    Ok(())
}
