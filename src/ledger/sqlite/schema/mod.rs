//! The schema, one migration after another; a released one is never changed.

mod people;
mod sending;

use std::cmp::Ordering;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{SqlSafeStr, SqliteConnection};

/// All migrations, the first first.
pub(super) fn migrations() -> Vec<Migration> {
    let steps = [
        ("runs, envelopes, accounts", sending::FIRST),
        ("events, questions, orders, checksums", sending::SECOND),
        ("questions about attempts", sending::THIRD),
        ("rate and clocks", sending::FOURTH),
        ("the reason why a run stopped", sending::FIFTH),
        ("the kind of an envelope", sending::SIXTH),
        ("the owner of a run", sending::SEVENTH),
        ("shared runs", sending::EIGHTH),
        ("the used rate", sending::PACE_USED),
        ("opt-outs", people::OPT_OUTS),
        ("receipts", people::RECEIPTS),
        ("notifications", people::NOTIFICATIONS),
        ("schedules", people::SCHEDULES),
        ("the time when blocks were drawn", sending::DRAWN_AT),
        ("plans and approvals", people::PLANS),
        ("spending", sending::SPENDING),
        ("the times of messages to numbers", people::CONTACTS),
        ("messages per day", sending::DAYS),
        ("forgotten recipients", people::FORGETTING),
        ("purged runs", people::PURGED),
        ("the origin of a restored ledger", people::BACKUP),
        ("shares", sending::SHARES),
        ("figures of runs", sending::FIGURES),
        ("channels of pipelines", sending::CHAINS),
        ("approval rules of accounts", people::APPROVAL_RULES),
        ("recent single messages", people::REPEATS),
    ];
    let migration = |(version, (what, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, what.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    (1..).zip(steps).map(migration).collect()
}

/// How the schema of a database stands to the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaAge {
    /// There is nothing to do.
    Newest,
    /// It has to be brought to it first; a database without tables is the oldest.
    Older,
    /// It belongs to a newer version.
    Newer,
}

/// The first version whose envelopes know the channels of pipelines.
pub(super) const WITH_CHAINS: i64 = 24;

/// The version of the schema of a database; 0 if it has no tables. Takes no turn to write.
pub(super) async fn load_version(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut *connection)
        .await?;
    if kept == 0 {
        return Ok(0);
    }
    let last: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(connection).await?;
    Ok(last.unwrap_or(0))
}

/// How old the schema of a database is; takes no turn to write.
pub(super) async fn load_schema_age(connection: &mut SqliteConnection) -> sqlx::Result<SchemaAge> {
    let newest = i64::try_from(migrations().len()).unwrap_or(i64::MAX);
    Ok(match load_version(connection).await?.cmp(&newest) {
        Ordering::Less => SchemaAge::Older,
        Ordering::Equal => SchemaAge::Newest,
        Ordering::Greater => SchemaAge::Newer,
    })
}

/// Brings the database to the newest schema, in the transaction that the caller began.
///
/// The turn to write is taken before anything is looked at: of two processes that open a new ledger at once
/// the second waits, and finds the first one's tables.
pub(super) async fn run_migrations(connection: &mut SqliteConnection) -> Result<(), MigrateError> {
    Migrator::with_migrations(migrations()).run(connection).await
}
