//! Queries about the hosts of profiles.

use super::change::StatementError;
use super::dialect::Connection;
use super::statement::{query, scalar};
use crate::domain::LOOPBACK;

pub(super) async fn remember_host(
    connection: &mut Connection,
    profile: String,
    host: String,
) -> Result<String, StatementError> {
    query("INSERT INTO profiles (name, host) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
        .bind(&profile)
        .bind(&host)
        .execute(&mut *connection)
        .await?;
    let known = scalar("SELECT host FROM profiles WHERE name = $1").bind(&profile).fetch_one(connection).await?;
    Ok(known)
}

/// The host of a profile; nothing if none is known.
pub(super) async fn find_host(reader: &mut Connection, profile: &str) -> Result<Option<String>, StatementError> {
    Ok(scalar("SELECT host FROM profiles WHERE name = $1").bind(profile).fetch_optional(reader).await?)
}

/// Remembers that a profile without a known host sent through loopback.
pub(super) async fn remember_loopback(connection: &mut Connection, profile: &str) -> Result<(), StatementError> {
    query("INSERT INTO profiles (name, host) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
        .bind(profile)
        .bind(LOOPBACK)
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn store_host(
    connection: &mut Connection,
    profile: String,
    host: String,
) -> Result<(), StatementError> {
    query("INSERT INTO profiles (name, host) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET host = excluded.host")
        .bind(profile)
        .bind(host)
        .execute(connection)
        .await?;
    Ok(())
}
