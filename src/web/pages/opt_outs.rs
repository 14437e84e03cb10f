//! How many people opted out on each of the last days.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::ledger::{Ledger, LedgerError};

/// How many days are told.
pub(super) const DAYS: i64 = 30;
/// How long what was counted is told at least.
const FRESH: Duration = Duration::from_secs(10);
/// How much longer than counting took it is told.
const SHARE: u32 = 50;
/// How long somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(4);
/// How many records are read at once.
const PART: u32 = 10_000;

/// The count, as it was a moment ago.
#[derive(Default)]
pub(super) struct OptOutDays(Arc<Mutex<Last>>);

/// What was counted last, and until when it is told.
type Last = Option<(Arc<Counted>, Instant)>;

/// Who is on the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// How many came on each of the last days, the first first; only days on which somebody did.
    pub(super) days: BTreeMap<Date, u64>,
    /// How many are on it at all.
    pub(super) all: u64,
}

impl OptOutDays {
    /// The count; nothing while it is being made and takes long.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read(
        &self,
        ledger: &Arc<dyn Ledger>,
        now: Timestamp,
    ) -> Result<Option<Arc<Counted>>, LedgerError> {
        let (last, ledger) = (Arc::clone(&self.0), Arc::clone(ledger));
        // On its own: what is half counted when somebody gives up waiting is there for the next one.
        let counting = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some((counted, fresh_until)) = &*last
                && Instant::now() < *fresh_until
            {
                return Ok(Arc::clone(counted));
            }
            let began = Instant::now();
            let counted = Arc::new(count(ledger.as_ref(), now).await?);
            *last = Some((Arc::clone(&counted), Instant::now() + (began.elapsed() * SHARE).max(FRESH)));
            Ok(counted)
        });
        match tokio::time::timeout(PATIENCE, counting).await {
            Ok(Ok(counted)) => counted.map(Some),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Has it counted anew, since somebody was added from here.
    pub(super) async fn changed(&self) {
        *self.0.lock().await = None;
    }
}

async fn count(ledger: &dyn Ledger, now: Timestamp) -> Result<Counted, LedgerError> {
    let zone = TimeZone::system();
    let today = now.to_zoned(zone.clone()).date();
    let since = today.checked_sub((DAYS - 1).days()).unwrap_or(today);
    let (mut counted, mut behind) = (Counted::default(), None);
    loop {
        let part = ledger.opt_outs(behind, PART).await?;
        for opt_out in &part.entries {
            let day = opt_out.at.to_zoned(zone.clone()).date();
            counted.all += 1;
            if day >= since {
                *counted.days.entry(day).or_default() += 1;
            }
        }
        match part.next {
            Some(next) => behind = Some(next),
            None => return Ok(counted),
        }
    }
}
