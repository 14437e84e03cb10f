//! Opening a PostgreSQL ledger: the connection pool, schema migrations, and the comparison with the high-water mark.
//!
//! Released migrations never change. Machines get a new version one by one, so opening a ledger never changes its
//! tables. Each version works with the tables of earlier versions until an operator upgrades them. After that, earlier
//! versions are refused.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{Connection as _, PgPool, Row as _, SqlSafeStr, raw_sql};

use super::address::PostgresAddress;
use super::dialect::storage_error;
use super::sql::scalar;
use super::sql::{self, StatementError};
use super::transaction::{self, retry_if_reached};
use super::write_connection::{self, ServerSuccession};
use crate::LedgerError;
use crate::encoding::EarlierChains;
use crate::high_water_mark::{HighWaterMark, MarkReading};

/// The maximum number of connections that read or write single records. One of them might be busy with a list for a
/// long time.
const MAX_CONNECTIONS: u32 = 3;
/// The maximum time that a command waits for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Whether there is a ledger at an address.
pub(super) async fn exists(address: &PostgresAddress) -> Result<bool, LedgerError> {
    Ok(load_version(address).await?.is_some())
}

/// The version of the tables, or `None` if there are no tables. Uses its own connection, because a pool would keep
/// retrying an address without a server.
async fn load_version(address: &PostgresAddress) -> Result<Option<i64>, LedgerError> {
    let query_version = || async {
        let attempt = async {
            let mut connection = transaction::open_connection(address).await?;
            let version = load_table_version(&mut *connection.begin().await?).await?;
            // The answer is valid, however the connection ends.
            let _ = connection.close().await;
            Ok(version)
        };
        let to_error = |_| {
            let reason = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs());
            sqlx::Error::Io(io::Error::new(ErrorKind::TimedOut, reason))
        };
        tokio::time::timeout(CONNECT_TIMEOUT, attempt).await.map_err(to_error).flatten()
    };
    retry_if_reached(address, query_version).await.map_err(|error| storage_error(address.display_name(), &error))
}

/// Creates missing tables, checks their version, and opens the connection pool. Returns the pool and the version.
pub(super) async fn prepare_pool(address: &PostgresAddress) -> Result<(PgPool, i64), LedgerError> {
    let version = match load_version(address).await? {
        Some(version) => {
            check_version(version, address.display_name())?;
            version
        }
        None => ensure_tables(address, NEWEST).await?,
    };
    let options = PgPoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(CONNECT_TIMEOUT);
    Ok((options.connect_lazy_with(address.options().clone()), version))
}

/// Refuses tables of a newer version.
pub(super) fn check_version(version: i64, place: &str) -> Result<(), LedgerError> {
    if version > NEWEST { Err(LedgerError::TooNew { path: place.to_owned() }) } else { Ok(()) }
}

/// Upgrades the tables to this version, after which earlier versions are refused. Returns the previous version, or
/// `None` if there are no tables.
pub(super) async fn upgrade_tables(address: &PostgresAddress) -> Result<Option<i64>, LedgerError> {
    let before = load_version(address).await?;
    if let Some(version) = before {
        check_version(version, address.display_name())?;
        ensure_tables(address, NEWEST).await?;
    }
    Ok(before)
}

/// Creates or upgrades the tables while no other process writes. Uses its own connection, because a pooler does
/// not keep prepared statements. Returns the version.
///
/// If the connection breaks, the upgrade starts again. A commit whose answer was lost is found and not repeated.
pub(super) async fn ensure_tables(address: &PostgresAddress, version: i64) -> Result<i64, LedgerError> {
    let attempt = || async {
        match try_ensure_tables(address, version).await {
            Ok(()) => Ok(Ok(())),
            Err(StatementError::Sql(error)) => Err(error),
            Err(StatementError::Ledger(error)) => Ok(Err(error)),
        }
    };
    let created = retry_if_reached(address, attempt).await;
    created.map_err(|error| storage_error(address.display_name(), &error)).flatten()?;
    Ok(version)
}

/// Creates or upgrades the tables in one transaction.
async fn try_ensure_tables(address: &PostgresAddress, version: i64) -> Result<(), StatementError> {
    let place = address.display_name();
    let mut connection = transaction::open_connection(address).await?;
    let mut transaction = connection.begin().await?;
    let before = load_table_version(&mut transaction).await?;
    let migrated = migrate_to(&mut transaction, version).await;
    migrated.map_err(|error| match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => StatementError::Sql(error),
        MigrateError::VersionMissing(_) => StatementError::Ledger(LedgerError::TooNew { path: place.to_owned() }),
        other => StatementError::Ledger(LedgerError::from_storage(&place, &other)),
    })?;
    if before.is_some_and(|before| before < WITH_CHAINS) && version >= WITH_CHAINS {
        record_chains(&mut transaction).await?;
    }
    transaction.commit().await?;
    let _ = connection.close().await;
    Ok(())
}

/// Records the channels of pipelines that earlier versions sent. Runs without copies keep unknown channels.
async fn record_chains(connection: &mut PgConnection) -> Result<(), StatementError> {
    for (run, name) in sql::list_runs_without_chains(&mut *connection).await? {
        let frozen: Option<Option<Vec<u8>>> =
            scalar("SELECT inputs FROM copies WHERE name = $1").bind(name).fetch_optional(&mut *connection).await?;
        if let Some(chains) = frozen.flatten().and_then(|frozen| EarlierChains::parse(&frozen)) {
            sql::record_chains(&mut *connection, run, &chains).await?;
        }
    }
    Ok(())
}

pub(super) struct LedgerState {
    /// The identity and generation of the ledger.
    pub(super) mark: HighWaterMark,
    /// The time of the database, in microseconds since 1970.
    pub(super) now: i64,
    succession: ServerSuccession,
}

/// Loads the state of the ledger.
pub(super) async fn load_state(pool: &PgPool) -> sqlx::Result<LedgerState> {
    const SELECT_STATE: &str = concat!("SELECT id, generation, ", write_connection::columns!(), " FROM meta");
    let mut reader = transaction::begin_read(pool).await?;
    let row = raw_sql(SELECT_STATE).fetch_one(&mut *reader).await?;
    let mark = HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? };
    Ok(LedgerState {
        mark,
        now: transaction::load_time(&mut reader).await?,
        succession: ServerSuccession::from_row(&row)?,
    })
}

/// Returns why the ledger is older than the last state that this machine wrote, or might be older than the state that
/// another machine wrote. If this machine never wrote to the ledger, only the second check applies.
pub(super) fn check_state(state: &LedgerState, known: &MarkReading, place: &str, mark: &Path) -> Option<LedgerError> {
    let reason = match known {
        MarkReading::Missing => None,
        known => state.mark.find_mismatch(known),
    };
    let reason = reason.or_else(|| state.succession.describe_doubt())?;
    Some(LedgerError::Outdated { path: place.to_owned(), reason, mark: mark.display().to_string() })
}

/// The file name of a ledger's mark, which is different for each database.
pub(super) fn mark_file_name(place: &str) -> String {
    let hash = Sha256::digest(place.as_bytes());
    let short: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("shared-{short}.mark")
}

/// The tables of SQLite in PostgreSQL's SQL, and tables for locks and copies, which SQLite keeps in files.
const FIRST: &str = include_str!("schema.sql");

/// Figures of runs, and the server that last wrote the ledger.
const SECOND: &str = "
    ALTER TABLE meta ADD COLUMN timeline BIGINT, ADD COLUMN confirmed BOOLEAN;
    CREATE TABLE figures (
        run BIGINT PRIMARY KEY REFERENCES runs (key),
        figures BYTEA NOT NULL
    ) WITH (fillfactor = 50);
";

/// Channels of pipelines. Delivery status follows another rule since this version, so runs with receipts or retries are
/// counted again once.
const THIRD: &str = "
    ALTER TABLE envelopes ADD COLUMN chains TEXT;
    UPDATE runs SET receipts_counted = receipts + 1
        WHERE purged_at IS NULL AND (receipts > 0 OR EXISTS (SELECT 1 FROM orders WHERE run = runs.key));
";

/// The `approval` rules of accounts. Profiles that were only used through loopback keep loopback as their host. Runs
/// without a suppression policy are marked as loopback runs if their account is a loopback address.
const FOURTH: &str = "
    CREATE TABLE approval_rules (
        key BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        account TEXT NOT NULL,
        gateway TEXT NOT NULL,
        hosts TEXT NOT NULL,
        rule TEXT NOT NULL,
        recorded_by TEXT NOT NULL,
        at BIGINT NOT NULL,
        sum BIGINT NOT NULL
    );
    UPDATE runs SET loopback = TRUE WHERE purpose IS NULL AND live
        AND replace(account, gateway || '@', '') ~ '^(localhost|[[]::1[]]|127[.][0-9.]+)(:[0-9]+)?$';
    INSERT INTO profiles (name, host) SELECT DISTINCT gateway, 'loopback' FROM runs WHERE live AND loopback
        ON CONFLICT (name) DO NOTHING;
";

/// Recent single messages: a hash with the ledger's key, and when it expires.
const FIFTH: &str = "
    CREATE TABLE repeats (
        hash BYTEA PRIMARY KEY,
        until BIGINT NOT NULL
    );
    CREATE TABLE repeat_key (key BYTEA NOT NULL);
";

/// Evidence of consent, packed by rows.
const SIXTH: &str = "
    CREATE TABLE consents (
        run BIGINT NOT NULL REFERENCES runs (key),
        first_row BIGINT NOT NULL,
        last_row BIGINT NOT NULL,
        records BYTEA NOT NULL,
        sum BIGINT NOT NULL,
        PRIMARY KEY (run, first_row)
    );
";

/// The first version with evidence of consent.
pub(super) const WITH_CONSENTS: i64 = 6;

/// Opt-outs from all messages, and runs whose messages must arrive. Runs that were planned earlier are checked against
/// the list again. The index is used to count a run's opt-outs while the run is sent.
const SEVENTH: &str = "
    UPDATE opt_out_list SET version = version + 1;
    CREATE INDEX opt_outs_by_source ON opt_outs (source) WHERE removed_at IS NULL;
";

/// The first version with opt-outs from all messages.
pub(super) const WITH_SCOPES: i64 = 7;

/// The first version with recent single messages.
pub(super) const WITH_REPEATS: i64 = 5;

/// The first version with the `approval` rules of accounts.
pub(super) const WITH_APPROVAL_RULES: i64 = 4;

/// The first version with channels of pipelines in envelopes.
pub(super) const WITH_CHAINS: i64 = 3;

/// The first version with figures.
pub(super) const WITH_FIGURES: i64 = 2;
/// The first version with the server that last wrote the tables.
pub(super) const WITH_SERVER: i64 = 2;

/// The version of the tables that this program creates.
pub(super) const NEWEST: i64 = 7;

/// All migrations in order.
fn migrations() -> Vec<Migration> {
    let steps = [
        ("the ledger", FIRST),
        ("figures of runs, and the server", SECOND),
        ("channels of pipelines", THIRD),
        ("approval rules of accounts", FOURTH),
        ("recent single messages", FIFTH),
        ("evidence of consent", SIXTH),
        ("scopes of opt-outs", SEVENTH),
    ];
    let to_migration = |(version, (description, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    (1..).zip(steps).map(to_migration).collect()
}

/// The version of a database's tables, or `None` if there are no tables.
pub(super) async fn load_table_version(connection: &mut PgConnection) -> sqlx::Result<Option<i64>> {
    let exists = sqlx::query_scalar("SELECT to_regclass('campaign._sqlx_migrations') IS NOT NULL").persistent(false);
    if !exists.fetch_one(&mut *connection).await? {
        return Ok(None);
    }
    sqlx::query_scalar("SELECT max(version) FROM campaign._sqlx_migrations")
        .persistent(false)
        .fetch_one(connection)
        .await
}

/// Upgrades the tables within the caller's transaction, while no other process upgrades or writes.
pub(super) async fn migrate_to(connection: &mut PgConnection, version: i64) -> Result<(), MigrateError> {
    raw_sql(
        "SELECT pg_advisory_xact_lock(7161125211933861742); CREATE SCHEMA IF NOT EXISTS campaign;
         SET LOCAL search_path TO campaign",
    )
    .execute(&mut *connection)
    .await?;
    let steps = migrations().into_iter().filter(|step| step.version <= version).collect();
    let mut migrator = Migrator::with_migrations(steps);
    // The lock above ends with the transaction; the migrator's lock would outlive it behind a pooler.
    migrator.set_locking(false);
    migrator.run(&mut *connection).await?;
    // Statements that the migrator prepared would collide with those of the connection's next user behind a pooler.
    raw_sql("DEALLOCATE ALL").execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_is_the_last_migration() {
        assert_eq!(migrations().last().map(|step| step.version), Some(NEWEST));
        assert!(
            [WITH_FIGURES, WITH_SERVER, WITH_CHAINS, WITH_APPROVAL_RULES, WITH_REPEATS, WITH_CONSENTS, WITH_SCOPES]
                .iter()
                .all(|version| (1..=NEWEST).contains(version))
        );
    }
}
