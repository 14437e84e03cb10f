//! What a ledger tells of itself.

use futures_util::future::BoxFuture;
use sqlx::Row as _;

use super::change::StatementError;
use super::dialect::{self, Adapter, Connection};
use super::look::read_ledger;
use super::runs::timestamp_from_micros;
use super::statement::query;
use super::{damage, pace};
use crate::ledger::{AccountRateLimit, Backup, DamagedRecord, LedgerFuture, LedgerMaintenance};

impl LedgerMaintenance for Adapter {
    fn describe_location(&self) -> String {
        Adapter::place(self)
    }

    fn check_writable(&self) -> LedgerFuture<'_, ()> {
        // The commit itself is counted, so something is written.
        Box::pin(self.write(|_, _| Box::pin(async { Ok(()) })))
    }

    fn check_integrity(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.ensure_sendable())
    }

    fn list_damaged_records(&self) -> LedgerFuture<'_, Vec<DamagedRecord>> {
        Box::pin(async move { read_ledger!(self, damage::find_damaged_records, self.keeps_approval_rules()) })
    }

    fn list_rate_limits(&self) -> LedgerFuture<'_, Vec<(String, AccountRateLimit)>> {
        Box::pin(async move { read_ledger!(self, pace::list_paces) })
    }

    fn count_unconfirmed_replicas(&self) -> LedgerFuture<'_, u64> {
        Box::pin(self.count_replicas())
    }

    fn load_backup(&self) -> LedgerFuture<'_, Option<Backup>> {
        Box::pin(async move { read_ledger!(self, load_backup) })
    }

    fn lacks_high_water_mark(&self) -> bool {
        self.has_no_mark()
    }

    fn mark_restored(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(|connection, now| {
            Box::pin(async move {
                query("UPDATE backup SET restored_at = $1").bind(now.0).execute(connection).await?;
                Ok(())
            })
        }))
    }

    fn is_shared(&self) -> bool {
        dialect::SHARED
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Adapter::close(self))
    }
}

async fn load_backup(reader: &mut Connection) -> Result<Option<Backup>, StatementError> {
    let known = query("SELECT made_at, restored_at FROM backup").fetch_optional(reader).await?;
    let Some(row) = known else { return Ok(None) };
    let restored_at: Option<i64> = row.try_get("restored_at")?;
    let made_at = timestamp_from_micros(row.try_get("made_at")?)?;
    Ok(Some(Backup { made_at, restored_at: restored_at.map(timestamp_from_micros).transpose()? }))
}
