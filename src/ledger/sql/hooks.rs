//! Queries about the addresses that webhooks come to.

use super::change::StatementError;
use super::dialect::Connection;
use super::statement::{query, scalar};

/// Keeps what the secrets of an address are checked with.
pub(super) async fn store_check_values(
    connection: &mut Connection,
    address: String,
    values: String,
) -> Result<(), StatementError> {
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
pub(super) async fn load_check_values(reader: &mut Connection, address: &str) -> Result<Vec<String>, StatementError> {
    let kept: Option<String> =
        scalar("SELECT check_values FROM hooks WHERE address = $1").bind(address).fetch_optional(reader).await?;
    Ok(kept.iter().flat_map(|values| values.split(' ')).map(str::to_owned).collect())
}
