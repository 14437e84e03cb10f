//! Frozen copies in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Copies, LedgerError, LedgerFuture, NewCopies, Run, StrayCopies};

/// The copies of all runs, by run name.
#[derive(Clone, Default)]
pub(super) struct CopyStore(Arc<Mutex<BTreeMap<String, StoredCopies>>>);

/// The copies of one run.
#[derive(Clone)]
struct StoredCopies {
    inputs: Vec<u8>,
    list: Arc<[u8]>,
}

impl CopyStore {
    /// Prepares copies that are not stored yet.
    pub(super) fn prepare(&self) -> Box<dyn NewCopies> {
        Box::new(NewMemoryCopies { store: self.clone(), list: SharedBuffer::default() })
    }

    /// The copies of a run.
    pub(super) fn load_copies(&self, run: &str) -> Result<Copies, LedgerError> {
        let place = format!("the memory of {run}");
        match self.with_stored(|stored| stored.get(run).cloned()) {
            Some(StoredCopies { inputs, list }) => Ok(Copies::in_memory(place, inputs, list)),
            None => Err(LedgerError::CopiesUnreadable { place, reason: "they are missing".to_owned() }),
        }
    }

    /// The copies of runs that are not in `known`.
    pub(super) fn list_stray_copies(&self, known: &[String]) -> Vec<StrayCopies> {
        let to_stray = |(run, stored): (&String, &StoredCopies)| StrayCopies {
            run: run.clone(),
            place: format!("the memory of {run}"),
            inputs: Some(stored.inputs.clone()),
        };
        self.with_stored(|stored| stored.iter().filter(|(run, _)| !known.contains(run)).map(to_stray).collect())
    }

    /// Discards the copies of a run. Returns a placeholder for their new location.
    pub(super) fn set_aside(&self, run: &str) -> String {
        self.with_stored(|stored| stored.remove(run));
        "nowhere".to_owned()
    }

    fn with_stored<T>(&self, access: impl FnOnce(&mut BTreeMap<String, StoredCopies>) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct NewMemoryCopies {
    store: CopyStore,
    list: SharedBuffer,
}

impl NewCopies for NewMemoryCopies {
    fn list_writer(&mut self) -> Result<Box<dyn Write + Send>, LedgerError> {
        Ok(Box::new(self.list.clone()))
    }

    fn freeze(self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            let list = self.list.0.lock().unwrap_or_else(PoisonError::into_inner).as_slice().into();
            self.store.with_stored(|stored| stored.insert(run.name(), StoredCopies { inputs, list }));
            Ok(())
        })
    }
}

#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
