//! Places in files.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file's text and the name by which the user called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText(Arc<(PathBuf, String)>);

impl SourceText {
    /// The text of the file at `path`, as it is shown in findings.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self(Arc::new((path.into(), text.into())))
    }

    /// The file's path as the user typed it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.0
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.1
    }
}

/// A place in a file: a range of bytes of its text, shown as line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file. For a file too large to hold, the lines around the place.
    pub source: SourceText,
    /// Bytes of the source's text, on character boundaries.
    pub span: Range<usize>,
    /// The number of the source's first line in its file; 1 for a whole file.
    pub first_line: usize,
}

impl SourceLocation {
    /// Those bytes of a whole file; a span that is out of bounds or splits a character is clamped.
    #[must_use]
    pub fn new(source: &SourceText, span: Range<usize>) -> Self {
        let text = source.text();
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(span.start), floor(span.end));
        Self { source: source.clone(), span: start..end.max(start), first_line: 1 }
    }

    /// The line of the place's first character, from 1.
    #[must_use]
    pub fn line_number(&self) -> usize {
        self.first_line + self.text_before().bytes().filter(|&byte| byte == b'\n').count()
    }

    /// The column of the place's first character, from 1, in characters.
    #[must_use]
    pub fn column_number(&self) -> usize {
        let line = self.text_before().rsplit('\n').next().unwrap_or("");
        line.trim_start_matches('\u{feff}').chars().count() + 1
    }

    /// The line and column of the place's first character and of the one behind its last, from 1, columns in UTF-16 units.
    ///
    /// Its end is never before its beginning, and stays on the first line where the place spans several.
    #[must_use]
    pub fn utf16_range(&self) -> (usize, std::ops::RangeInclusive<usize>) {
        let units = |text: &str| text.encode_utf16().count();
        let line = self.text_before().rsplit('\n').next().unwrap_or("").trim_start_matches('\u{feff}');
        let marked = self.source.text()[self.span.clone()].lines().next().unwrap_or("");
        let start = units(line) + 1;
        (self.line_number(), start..=start + units(marked))
    }

    fn text_before(&self) -> &str {
        &self.source.text()[..self.span.start]
    }
}
