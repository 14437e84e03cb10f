//! Reading: where the connection is lost in the middle, all of it is read once more, as soon as the database is there.

use super::change::StatementError;
use super::dialect::{Adapter, DatabaseWait};
use crate::ledger::LedgerError;

/// What a look at the ledger comes to: of a function that is given a connection first, and then these.
macro_rules! read_ledger {
    ($ledger:expr, $read:path $(, $given:expr)*) => {{
        let mut waiting = None;
        loop {
            let read = async { $read(&mut *$ledger.reader().await? $(, $given)*).await };
            if let Some(told) = $ledger.retry_or_finish(read.await, &mut waiting).await {
                break told;
            }
        }
    }};
}
pub(in crate::ledger) use read_ledger;

impl Adapter {
    /// What was read, or why it could not be; nothing where it is to be read again.
    pub(in super::super) async fn retry_or_finish<T>(
        &self,
        read: Result<T, StatementError>,
        waiting: &mut Option<DatabaseWait>,
    ) -> Option<Result<T, LedgerError>> {
        match read {
            Err(StatementError::Sql(error)) => {
                let waiting = waiting.get_or_insert_with(|| DatabaseWait::new(self.place.clone()));
                if waiting.wait_for_recovery(&error).await {
                    None
                } else {
                    Some(self.to_ledger_result(Err(StatementError::Sql(error))))
                }
            }
            ended => Some(self.to_ledger_result(ended)),
        }
    }
}
