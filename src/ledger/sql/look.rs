//! Reading: where the connection is lost in the middle, all of it is read once more, as soon as the database is there.

use super::change::Failure;
use super::dialect::{Adapter, Waiting};
use crate::ledger::LedgerError;

/// What a look at the ledger comes to: of a function that is given a connection first, and then these.
macro_rules! look {
    ($ledger:expr, $read:path $(, $given:expr)*) => {{
        let mut waiting = None;
        loop {
            let read = async { $read(&mut *$ledger.reader().await? $(, $given)*).await };
            if let Some(told) = $ledger.or_waits(read.await, &mut waiting).await {
                break told;
            }
        }
    }};
}
pub(in crate::ledger) use look;

impl Adapter {
    /// What was read, or why it could not be; nothing where it is to be read again.
    pub(in super::super) async fn or_waits<T>(
        &self,
        read: Result<T, Failure>,
        waiting: &mut Option<Waiting>,
    ) -> Option<Result<T, LedgerError>> {
        match read {
            Err(Failure::Sql(error)) => {
                let waiting = waiting.get_or_insert_with(|| Waiting::new(self.place.clone()));
                if waiting.goes_on(&error).await { None } else { Some(self.told(Err(Failure::Sql(error)))) }
            }
            ended => Some(self.told(ended)),
        }
    }
}
