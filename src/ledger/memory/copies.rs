//! The copies of runs in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::ledger::{Copies, LedgerError, LedgerFuture, NewCopies, Run, StrayCopies};

/// The copies of every run that has some, by its name.
#[derive(Clone, Default)]
pub(super) struct Shelf(Arc<Mutex<BTreeMap<String, StoredCopies>>>);

/// The copies of one run.
#[derive(Clone)]
struct StoredCopies {
    inputs: Vec<u8>,
    list: Arc<[u8]>,
}

impl Shelf {
    /// Copies that are not on it yet.
    pub(super) fn prepare(&self) -> Box<dyn NewCopies> {
        Box::new(NewBytes { shelf: self.clone(), list: Bytes::default() })
    }

    /// The copies of a run.
    pub(super) fn of(&self, run: &str) -> Result<Copies, LedgerError> {
        let place = format!("the memory of {run}");
        match self.with(|stored| stored.get(run).cloned()) {
            Some(StoredCopies { inputs, list }) => Ok(Copies::in_memory(place, inputs, list)),
            None => Err(LedgerError::Copies { place, reason: "they are missing".to_owned() }),
        }
    }

    /// The copies of runs that are not among these.
    pub(super) fn strays(&self, known: &[String]) -> Vec<StrayCopies> {
        let stray = |(run, stored): (&String, &StoredCopies)| StrayCopies {
            run: run.clone(),
            place: format!("the memory of {run}"),
            inputs: Some(stored.inputs.clone()),
        };
        self.with(|stored| stored.iter().filter(|(run, _)| !known.contains(run)).map(stray).collect())
    }

    /// Forgets the copies of a run that the ledger does not have.
    pub(super) fn put_aside(&self, run: &str) -> String {
        self.with(|stored| stored.remove(run));
        "nowhere".to_owned()
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<String, StoredCopies>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct NewBytes {
    shelf: Shelf,
    list: Bytes,
}

impl NewCopies for NewBytes {
    fn list(&mut self) -> Result<Box<dyn Write + Send>, LedgerError> {
        Ok(Box::new(self.list.clone()))
    }

    fn freeze(self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            let list = self.list.0.lock().unwrap_or_else(PoisonError::into_inner).as_slice().into();
            self.shelf.with(|stored| stored.insert(run.name(), StoredCopies { inputs, list }));
            Ok(())
        })
    }
}

#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
