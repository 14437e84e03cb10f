//! The memory that a workbook may take while it is read.

use std::path::Path;

use super::WorkbookError;
use crate::audience::form_trouble as trouble;

/// The most bytes that are kept of a workbook. The program itself and one row come on top.
pub(super) const MAX_KEPT: u64 = 192 << 20;

/// What a text takes in memory: its place in a list, and the piece of memory that holds it.
pub(super) const fn text_size(bytes: usize) -> usize {
    const SMALLEST: usize = 32;
    let piece = (bytes + size_of::<usize>()).next_multiple_of(16);
    size_of::<String>() + if piece < SMALLEST { SMALLEST } else { piece }
}

/// What is left of it.
pub(super) struct MemoryBudget<'f> {
    file: &'f Path,
    left: u64,
}

impl<'f> MemoryBudget<'f> {
    pub(super) fn new(file: &'f Path) -> Self {
        Self { file, left: MAX_KEPT }
    }

    /// Takes so many bytes for the named things, or refuses the workbook.
    pub(super) fn reserve(&mut self, bytes: usize, things: &str) -> Result<(), WorkbookError> {
        match self.left.checked_sub(bytes as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(trouble::large_workbook(self.file, &format!("{things} need too much memory")).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_takes_the_smallest_piece_of_memory() {
        assert_eq!([text_size(0), text_size(24), text_size(25), text_size(1000)], [56, 56, 72, 1032]);
    }

    #[test]
    fn budget_is_shared_by_everything_kept() {
        let mut budget = MemoryBudget::new(Path::new("list.xlsx"));
        let half = usize::try_from(MAX_KEPT / 2).unwrap();
        assert!(budget.reserve(half, "its texts").is_ok() && budget.reserve(half, "its styles").is_ok());
        let Err(WorkbookError::Finding(finding)) = budget.reserve(1, "its sheets") else { panic!("refused") };
        assert!(finding.message.contains("its sheets need too much memory"), "{}", finding.message);
    }
}
