//! Whether another server took the place of the one that the ledger was last written on.
//!
//! Each promotion of a replica, and each recovery to a point in time, begins a timeline of its own (PostgreSQL, "Continuous
//! archiving and point-in-time recovery: timelines"). The ledger keeps on which one it was last written, and whether a replica
//! had to confirm its commits there: if none had to, nobody can tell from the ledger itself which of the last it lacks.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Row as _, query};

use super::schema;

/// What is read of `meta` for it. A replica that has not taken over has no timeline of its own; tables of the version before
/// have no place for the server.
macro_rules! columns {
    () => {
        "CASE WHEN NOT pg_is_in_recovery()
              THEN CAST(CAST(CAST('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS bit(32)) AS int) AS bigint)
         END AS timeline, current_setting('synchronous_standby_names') <> '' AS confirmed,
         CAST(to_jsonb(meta) ->> 'timeline' AS bigint) AS kept_timeline,
         CAST(to_jsonb(meta) ->> 'confirmed' AS boolean) AS kept_confirmed"
    };
}
pub(super) use columns;

/// A server, as far as it can be told from the one that takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServerTimeline {
    timeline: i64,
    /// Whether a replica has to confirm its commits.
    confirmed: bool,
}

/// The server that answers, and the one that the ledger was last written on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerSuccession {
    /// Nothing of a replica.
    current: Option<ServerTimeline>,
    /// Nothing of a ledger that kept none yet.
    kept: Option<ServerTimeline>,
}

impl ServerSuccession {
    /// That of a row with the columns.
    pub(super) fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        let server = |timeline, confirmed| -> sqlx::Result<Option<ServerTimeline>> {
            let timeline: Option<i64> = row.try_get(timeline)?;
            let confirmed: Option<bool> = row.try_get(confirmed)?;
            Ok(timeline.map(|timeline| ServerTimeline { timeline, confirmed: confirmed.unwrap_or(false) }))
        };
        Ok(Self { current: server("timeline", "confirmed")?, kept: server("kept_timeline", "kept_confirmed")? })
    }

    /// Why the last commits may be missing; nothing if they are there.
    pub(super) fn describe_doubt(self) -> Option<String> {
        let (current, kept) = (self.current?, self.kept?);
        (current.timeline > kept.timeline && !kept.confirmed).then(|| {
            format!(
                "its server was replaced (timeline {} after {}), and no replica had to confirm commits, so it might be an older \
                 copy",
                current.timeline, kept.timeline
            )
        })
    }

    /// Has the ledger keep the server that answers, if its tables of this version have a place for it.
    pub(super) async fn record_server(self, connection: &mut PgConnection, version: i64) -> sqlx::Result<()> {
        let Some(current) = self.current.filter(|current| Some(*current) != self.kept) else { return Ok(()) };
        if version < schema::WITH_SERVER {
            return Ok(());
        }
        let kept = query("UPDATE meta SET timeline = $1, confirmed = $2").persistent(false);
        kept.bind(current.timeline).bind(current.confirmed).execute(connection).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(timeline: i64, confirmed: bool) -> Option<ServerTimeline> {
        Some(ServerTimeline { timeline, confirmed })
    }

    #[test]
    fn promoted_server_without_confirmed_commits_is_doubted() {
        for (current, kept, doubted) in [
            (server(2, false), server(1, false), true),
            (server(2, true), server(1, false), true),
            (server(2, false), server(1, true), false),
            (server(2, false), server(2, false), false),
            // A new server of a newer version begins anew.
            (server(1, false), server(4, false), false),
            (server(2, false), None, false),
            (None, server(1, false), false),
        ] {
            let succession = ServerSuccession { current, kept };
            assert_eq!(succession.describe_doubt().is_some(), doubted, "{succession:?}");
        }
    }
}
