//! Queries about the addresses that webhooks come to.

use super::change::Failure;
use super::dialect::Connection;
use super::statement::{query, scalar};

/// Keeps what the secrets of an address are checked with.
pub(super) async fn keep(connection: &mut Connection, address: String, values: String) -> Result<(), Failure> {
    query(
        "INSERT INTO hooks (address, check_values) VALUES ($1, $2)
         ON CONFLICT (address) DO UPDATE SET check_values = excluded.check_values",
    )
    .bind(address)
    .bind(values)
    .execute(connection)
    .await?;
    Ok(())
}

/// What the secrets of an address are checked with.
pub(super) async fn secrets(reader: &mut Connection, address: &str) -> Result<Vec<String>, Failure> {
    let kept: Option<String> =
        scalar("SELECT check_values FROM hooks WHERE address = $1").bind(address).fetch_optional(reader).await?;
    Ok(kept.iter().flat_map(|values| values.split(' ')).map(str::to_owned).collect())
}
