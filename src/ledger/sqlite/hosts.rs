//! Queries about the hosts of profiles.

use sqlx::SqliteConnection;

use super::change::Failure;

pub(super) async fn remember(
    connection: &mut SqliteConnection,
    profile: String,
    host: String,
) -> Result<String, Failure> {
    sqlx::query("INSERT INTO profiles (name, host) VALUES (?, ?) ON CONFLICT (name) DO NOTHING")
        .bind(&profile)
        .bind(&host)
        .execute(&mut *connection)
        .await?;
    let known =
        sqlx::query_scalar("SELECT host FROM profiles WHERE name = ?").bind(&profile).fetch_one(connection).await?;
    Ok(known)
}

pub(super) async fn trust(connection: &mut SqliteConnection, profile: String, host: String) -> Result<(), Failure> {
    sqlx::query("INSERT OR REPLACE INTO profiles (name, host) VALUES (?, ?)")
        .bind(profile)
        .bind(host)
        .execute(connection)
        .await?;
    Ok(())
}
