//! A text beside its metered source, and where tera's errors stand in it.

use std::collections::BTreeMap;
use std::ops::Range;

use tera::{Error, ErrorKind};

use super::meter::MeteredSource;
use crate::domain::NamedTemplate;

/// A compiled text.
#[derive(Clone, Debug)]
pub(super) struct MeteredText {
    pub(super) text: NamedTemplate,
    pub(super) metered: MeteredSource,
}

/// All compiled texts by the names that tera has for them.
pub(super) type MeteredTexts = BTreeMap<String, MeteredText>;

/// Tera's name of the text of that index; no text that is included can have it.
pub(super) fn template_key(index: usize) -> String {
    format!("\0{index}")
}

/// The text that an error is about and the bytes of it that are meant, if the error tells.
pub(super) fn error_place<'s>(error: &Error, metered: &'s MeteredTexts) -> Option<(&'s NamedTemplate, Range<usize>)> {
    let (ErrorKind::RenderingError(report) | ErrorKind::SyntaxError(report)) = error.kind() else { return None };
    let text = metered.get(report.filename())?;
    let Range { start, end } = report.span().range;
    Some((&text.text, text.metered.original_offset(start)..text.metered.original_offset(end)))
}
