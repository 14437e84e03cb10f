//! The schema, one migration after another; a released one is never changed.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Connection as _, SqlSafeStr, SqliteConnection};

/// The first schema.
///
/// Rows have no records of their own: an envelope holds its rows and what became of them, packed
/// (see `pack`). That is what makes a commit per envelope cheap. Only intents are indexed.
const FIRST: &str = "
    CREATE TABLE runs (
        key INTEGER PRIMARY KEY,
        campaign TEXT NOT NULL,
        number INTEGER NOT NULL,
        edition TEXT NOT NULL,
        gateway TEXT NOT NULL,
        account TEXT NOT NULL,
        endpoint TEXT NOT NULL,
        kind TEXT NOT NULL,
        live INTEGER NOT NULL,
        round INTEGER NOT NULL,
        recipients INTEGER NOT NULL,
        first_id INTEGER NOT NULL,
        ids INTEGER NOT NULL,
        began_at INTEGER NOT NULL,
        ended_at INTEGER,
        progress TEXT NOT NULL,
        stopped TEXT,
        exit INTEGER,
        counts TEXT,
        parts INTEGER,
        results TEXT,
        stop_requested INTEGER NOT NULL DEFAULT 0,
        owner INTEGER,
        UNIQUE (campaign, number)
    ) STRICT;

    CREATE TABLE left_out (
        run INTEGER NOT NULL REFERENCES runs (key),
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        rows BLOB NOT NULL
    ) STRICT;
    CREATE INDEX left_out_by_run ON left_out (run);

    CREATE TABLE envelopes (
        key INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (key),
        envelope INTEGER NOT NULL,
        owner INTEGER NOT NULL,
        begun_at INTEGER NOT NULL,
        first_row INTEGER NOT NULL,
        last_row INTEGER NOT NULL,
        rows BLOB NOT NULL,
        settled_at INTEGER,
        outcomes BLOB,
        evidence TEXT
    ) STRICT;
    CREATE UNIQUE INDEX envelopes_by_run ON envelopes (run, envelope);
    CREATE INDEX intents ON envelopes (run) WHERE settled_at IS NULL;

    CREATE TABLE accounts (
        name TEXT PRIMARY KEY,
        next_free INTEGER NOT NULL,
        share REAL NOT NULL,
        slowed_at INTEGER NOT NULL,
        not_before INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE profiles (
        name TEXT PRIMARY KEY,
        host TEXT NOT NULL
    ) STRICT;
";

/// Brings the database to the newest schema.
///
/// The write lock is taken before anything is looked at: of two processes that open a new ledger at once
/// the second waits, and finds the first one's tables.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), MigrateError> {
    let first =
        Migration::new(1, "runs, envelopes, accounts".into(), MigrationType::Simple, FIRST.into_sql_str(), false);
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    Migrator::with_migrations(vec![first]).run(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}
