//! The frozen copies of a run: its list and other inputs, which the ledger stores but does not interpret.

use std::fmt::{self, Display};
use std::io::{self, Read, Write};
use std::sync::Arc;

use super::{CampaignLock, LedgerError, LedgerFuture, Run};

/// Reads a run's frozen list, on a blocking thread.
pub type ListReader = Box<dyn Read + Send>;

/// Opens a list from its beginning.
type OpenList = dyn Fn() -> io::Result<ListReader> + Send + Sync;

/// The purpose for which copies are prepared.
#[derive(Clone, Copy, Debug)]
pub enum CopiesPurpose<'a> {
    /// A new run of the locked campaign. The copies of an interrupted start are discarded.
    NewRun(&'a CampaignLock),
    /// The replacement of a run's copies, which are overwritten. The caller has locked the campaign of the run.
    Replacement(&'a Run),
}

/// The copies of a run that has not started. Dropping them discards everything.
pub trait NewCopies: Send {
    /// A writer for the list, to be used once on a blocking thread. Data that was not flushed might be lost.
    ///
    /// Errors of the writer name the failure and the location.
    ///
    /// # Errors
    /// If the location is not writable.
    fn list_writer(&mut self) -> Result<Box<dyn Write + Send>, LedgerError>;

    /// Freezes the list and the other inputs as the copies of this run, which must not be open yet.
    fn freeze(self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()>;
}

/// The frozen copies of a run.
#[derive(Clone)]
pub struct Copies {
    place: String,
    inputs: Arc<[u8]>,
    list: Arc<OpenList>,
}

impl Copies {
    /// Copies at a location that can be displayed, such as a folder.
    pub(super) fn new(
        place: String,
        inputs: Vec<u8>,
        list: impl Fn() -> io::Result<ListReader> + Send + Sync + 'static,
    ) -> Self {
        Self { place, inputs: inputs.into(), list: Arc::new(list) }
    }

    /// Copies in memory.
    pub fn in_memory(place: String, inputs: Vec<u8>, list: impl Into<Arc<[u8]>>) -> Self {
        let list = list.into();
        Self::new(place, inputs, move || Ok(Box::new(io::Cursor::new(Arc::clone(&list))) as ListReader))
    }

    /// The location, to be displayed between backticks.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The frozen inputs other than the list.
    pub fn inputs(&self) -> &[u8] {
        &self.inputs
    }

    /// Opens the list, to be read from its start on a blocking thread.
    ///
    /// # Errors
    /// If the list is missing or cannot be read.
    pub fn open_list(&self) -> io::Result<ListReader> {
        (self.list)()
    }

    /// The error for unusable copies.
    pub fn unreadable_error(&self, reason: impl Display) -> LedgerError {
        LedgerError::CopiesUnreadable { place: self.place.clone(), reason: reason.to_string() }
    }
}

impl fmt::Debug for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copies").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Copies of a run that is missing from the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayCopies {
    /// The name of the run.
    pub run: String,
    /// The location, to be displayed between backticks.
    pub place: String,
    /// The frozen inputs other than the list. `None` if they cannot be read.
    pub inputs: Option<Vec<u8>>,
}
