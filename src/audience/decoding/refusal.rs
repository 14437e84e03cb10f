//! A finding on its way through a reader.

use std::fmt;
use std::io;

use crate::finding::Finding;

/// Why a list cannot be read on, told as a finding.
#[derive(Debug)]
struct FindingError(Finding);

impl fmt::Display for FindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for FindingError {}

/// The error by which a reader ends with a finding.
pub(in crate::audience) fn finding_error(finding: Finding) -> io::Error {
    io::Error::other(FindingError(finding))
}

/// The finding that an error carries.
pub(in crate::audience) fn find_finding(error: &io::Error) -> Option<&Finding> {
    let inner: &dyn std::error::Error = error.get_ref()?;
    inner.downcast_ref::<FindingError>().map(|refusal| &refusal.0)
}
