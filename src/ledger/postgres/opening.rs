//! Opening the ledger: a connection, its tables, and whether it is as far as this machine knows it to have come.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection, PgPool, Row as _, raw_sql};

use super::address::PostgresAddress;
use super::dialect::storage_error;
use super::schema;
use super::sql::statement::scalar;
use super::sql::{self, StatementError};
use super::succession::{self, ServerSuccession};
use super::transaction;
use super::waiting::retry_if_reached;
use crate::ledger::LedgerError;
use crate::ledger::earlier_chains::EarlierChains;
use crate::ledger::mark::{HighWaterMark, MarkReading};

/// Connections that read, and write single records of their own: one may be at a list for long.
const MAX_CONNECTIONS: u32 = 3;
/// How long a command waits for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Whether there is a ledger at an address.
pub(super) async fn exists(address: &PostgresAddress) -> Result<bool, LedgerError> {
    Ok(load_version(address).await?.is_some())
}

/// The version of the tables; nothing where there are none. Asked on a connection of its own: a pool tries again and again
/// where nobody listens.
async fn load_version(address: &PostgresAddress) -> Result<Option<i64>, LedgerError> {
    let ask = || async {
        let asked = async {
            let mut connection = transaction::open_connection(address).await?;
            let version = schema::load_version(&mut *connection.begin().await?).await?;
            // What was answered counts, however the connection ends.
            let _ = connection.close().await;
            Ok(version)
        };
        let late = |_| {
            let reason = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs());
            sqlx::Error::Io(io::Error::new(ErrorKind::TimedOut, reason))
        };
        tokio::time::timeout(CONNECT_TIMEOUT, asked).await.map_err(late).flatten()
    };
    retry_if_reached(address, ask).await.map_err(|error| storage_error(address.display_name(), &error))
}

/// Makes sure that there are tables that this version can use, and has connections to them ready; tells their version.
pub(super) async fn prepare_pool(address: &PostgresAddress) -> Result<(PgPool, i64), LedgerError> {
    let version = match load_version(address).await? {
        Some(version) => {
            check_version(version, address.display_name())?;
            version
        }
        None => make_tables(address, schema::NEWEST).await?,
    };
    let options = PgPoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(CONNECT_TIMEOUT);
    Ok((options.connect_lazy_with(address.options().clone()), version))
}

/// Refuses tables of a newer version.
pub(super) fn check_version(version: i64, place: &str) -> Result<(), LedgerError> {
    if version > schema::NEWEST { Err(LedgerError::TooNew { path: place.to_owned() }) } else { Ok(()) }
}

/// Brings the tables to those of this version, whoever works with them: earlier versions are refused from then on. Tells
/// their version before; nothing where there are none.
pub(super) async fn upgrade_tables(address: &PostgresAddress) -> Result<Option<i64>, LedgerError> {
    let before = load_version(address).await?;
    if let Some(version) = before {
        check_version(version, address.display_name())?;
        make_tables(address, schema::NEWEST).await?;
    }
    Ok(before)
}

/// Makes the tables of a version, or brings them to it, while nobody else writes; on a connection of its own, which remembers
/// statements that a pooler does not. Tells the version.
///
/// If the connection breaks, it begins anew: what a commit without an answer made is there then, and is not made again.
pub(super) async fn make_tables(address: &PostgresAddress, version: i64) -> Result<i64, LedgerError> {
    let attempt = || async {
        match try_make_tables(address, version).await {
            Ok(()) => Ok(Ok(())),
            Err(StatementError::Sql(error)) => Err(error),
            Err(StatementError::Ledger(error)) => Ok(Err(error)),
        }
    };
    let made = retry_if_reached(address, attempt).await;
    made.map_err(|error| storage_error(address.display_name(), &error)).flatten()?;
    Ok(version)
}

async fn try_make_tables(address: &PostgresAddress, version: i64) -> Result<(), StatementError> {
    let place = address.display_name();
    let mut connection = transaction::open_connection(address).await?;
    let mut transaction = connection.begin().await?;
    let before = schema::load_version(&mut transaction).await?;
    let made = schema::migrate_to(&mut transaction, version).await;
    made.map_err(|error| match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => StatementError::Sql(error),
        MigrateError::VersionMissing(_) => StatementError::Ledger(LedgerError::TooNew { path: place.to_owned() }),
        other => StatementError::Ledger(LedgerError::Storage { path: place.to_owned(), reason: other.to_string() }),
    })?;
    if before.is_some_and(|before| before < schema::WITH_CHAINS) && version >= schema::WITH_CHAINS {
        record_chains(&mut transaction).await?;
    }
    transaction.commit().await?;
    let _ = connection.close().await;
    Ok(())
}

/// Records the channels of the pipelines that earlier versions sent. Those of a run without copies stay unknown.
async fn record_chains(connection: &mut PgConnection) -> Result<(), StatementError> {
    for (run, name) in sql::runs_without_chains(&mut *connection).await? {
        let frozen: Option<Option<Vec<u8>>> =
            scalar("SELECT inputs FROM copies WHERE name = $1").bind(name).fetch_optional(&mut *connection).await?;
        if let Some(chains) = frozen.flatten().and_then(|frozen| EarlierChains::parse(&frozen)) {
            sql::record_chains(&mut *connection, run, &chains).await?;
        }
    }
    Ok(())
}

/// A ledger as it stands.
pub(super) struct LedgerState {
    /// Which it is, and how far it has come.
    pub(super) mark: HighWaterMark,
    /// Its time, in microseconds.
    pub(super) now: i64,
    succession: ServerSuccession,
}

/// How the ledger stands.
pub(super) async fn load_state(pool: &PgPool) -> sqlx::Result<LedgerState> {
    const ASKED: &str = concat!("SELECT id, generation, ", succession::columns!(), " FROM meta");
    let mut reader = transaction::begin_read(pool).await?;
    let row = raw_sql(ASKED).fetch_one(&mut *reader).await?;
    let mark = HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? };
    Ok(LedgerState {
        mark,
        now: transaction::load_time(&mut reader).await?,
        succession: ServerSuccession::from_row(&row)?,
    })
}

/// Why a ledger is behind what this machine knows of it, or may be behind what others know; nothing if it is not. A machine
/// that never wrote knows nothing.
pub(super) fn check_state(
    standing: &LedgerState,
    known: &MarkReading,
    (place, mark): (&str, &Path),
) -> Option<LedgerError> {
    let behind = match known {
        MarkReading::Missing => None,
        known => standing.mark.find_mismatch(known),
    };
    let reason = behind.or_else(|| standing.succession.describe_doubt())?;
    Some(LedgerError::Outdated { path: place.to_owned(), reason, mark: mark.display().to_string() })
}

/// The name of the file of a ledger's mark: each database has its own.
pub(super) fn mark_file_name(place: &str) -> String {
    let hash = Sha256::digest(place.as_bytes());
    let short: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("shared-{short}.mark")
}
