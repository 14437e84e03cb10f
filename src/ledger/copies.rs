//! The copies that a run is sent from: its list, and what it froze besides, which the ledger keeps and does not interpret.

use std::fmt::{self, Display};
use std::io::{self, Read, Write};
use std::sync::Arc;

use super::{LedgerError, LedgerFuture, Run};

/// A list that is being read.
pub type ListReader = Box<dyn Read + Send>;

/// Opens a list from its beginning.
type OpenList = dyn Fn() -> io::Result<ListReader> + Send + Sync;

/// The copies of a run that has not begun; dropped, nothing is left of them.
pub trait NewCopies: Send {
    /// Where the list is written to while it is read, once, on a thread that may wait; what was flushed is kept.
    ///
    /// The errors of the writer say what could not be done, and where.
    ///
    /// # Errors
    /// When nothing can be written there.
    fn list_writer(&mut self) -> Result<Box<dyn Write + Send>, LedgerError>;

    /// Makes the list, and what is frozen besides, the copies of this run; it must not be open before.
    fn freeze(self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()>;
}

/// The copies of a run.
#[derive(Clone)]
pub struct Copies {
    place: String,
    inputs: Arc<[u8]>,
    list: Arc<OpenList>,
}

impl Copies {
    /// The copies at a place that people can find, such as a folder.
    pub(super) fn new(
        place: String,
        inputs: Vec<u8>,
        list: impl Fn() -> io::Result<ListReader> + Send + Sync + 'static,
    ) -> Self {
        Self { place, inputs: inputs.into(), list: Arc::new(list) }
    }

    /// Copies that are in memory.
    #[must_use]
    pub fn in_memory(place: String, inputs: Vec<u8>, list: impl Into<Arc<[u8]>>) -> Self {
        let list = list.into();
        Self::new(place, inputs, move || Ok(Box::new(io::Cursor::new(Arc::clone(&list))) as ListReader))
    }

    /// Where they are, as it reads between two backticks.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What was frozen besides the list, as it was given.
    #[must_use]
    pub fn inputs(&self) -> &[u8] {
        &self.inputs
    }

    /// The list from its beginning, to be read on a thread that may wait; each call opens it anew.
    ///
    /// # Errors
    /// When it is missing, or cannot be read.
    pub fn open_list(&self) -> io::Result<ListReader> {
        (self.list)()
    }

    /// That they cannot be used.
    #[must_use]
    pub fn unreadable_error(&self, reason: impl Display) -> LedgerError {
        LedgerError::CopiesUnreadable { place: self.place.clone(), reason: reason.to_string() }
    }
}

impl fmt::Debug for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copies").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Copies of a run that the ledger does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayCopies {
    /// The name of the run.
    pub run: String,
    /// Where they are, as it reads between two backticks.
    pub place: String,
    /// What was frozen besides the list; nothing where it cannot be read.
    pub inputs: Option<Vec<u8>>,
}
