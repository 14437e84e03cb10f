//! What a ledger tells of itself.

use futures_util::future::BoxFuture;
use sqlx::Row as _;

use super::change::Failure;
use super::dialect::{self, Adapter, Connection};
use super::look::look;
use super::runs::instant;
use super::statement::query;
use super::{damage, pace};
use crate::ledger::{AccountPace, Backup, DamagedRecord, LedgerFuture, Upkeep};

impl Upkeep for Adapter {
    fn place(&self) -> String {
        Adapter::place(self)
    }

    fn prove_writable(&self) -> LedgerFuture<'_, ()> {
        // The commit itself is counted, so something is written.
        Box::pin(self.write(|_, _| Box::pin(async { Ok(()) })))
    }

    fn prove_sound(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.fit_for_sending())
    }

    fn damaged_records(&self) -> LedgerFuture<'_, Vec<DamagedRecord>> {
        Box::pin(async move { look!(self, damage::damaged_records, self.keeps_approval_rules()) })
    }

    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>> {
        Box::pin(async move { look!(self, pace::all) })
    }

    fn unconfirmed_replicas(&self) -> LedgerFuture<'_, u64> {
        Box::pin(self.replicas())
    }

    fn backup(&self) -> LedgerFuture<'_, Option<Backup>> {
        Box::pin(async move { look!(self, backup) })
    }

    fn is_unmarked(&self) -> bool {
        self.has_no_mark()
    }

    fn put_back(&self) -> LedgerFuture<'_, ()> {
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

async fn backup(reader: &mut Connection) -> Result<Option<Backup>, Failure> {
    let known = query("SELECT made_at, restored_at FROM backup").fetch_optional(reader).await?;
    let Some(row) = known else { return Ok(None) };
    let restored_at: Option<i64> = row.try_get("restored_at")?;
    let made_at = instant(row.try_get("made_at")?)?;
    Ok(Some(Backup { made_at, restored_at: restored_at.map(instant).transpose()? }))
}
