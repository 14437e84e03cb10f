//! A finding on its way through a reader.

use std::fmt;
use std::io;

use crate::finding::Finding;

/// Why a list cannot be read on, told as a finding.
#[derive(Debug)]
struct Refusal(Finding);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Refusal {}

/// The error by which a reader ends with a finding.
pub(in crate::audience) fn refusal(finding: Finding) -> io::Error {
    io::Error::other(Refusal(finding))
}

/// The finding that an error carries.
pub(in crate::audience) fn refused(error: &io::Error) -> Option<&Finding> {
    let inner: &dyn std::error::Error = error.get_ref()?;
    inner.downcast_ref::<Refusal>().map(|refusal| &refusal.0)
}
