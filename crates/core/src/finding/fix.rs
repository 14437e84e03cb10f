//! Fixes: edits to a file that remove a finding.
//!
//! An edit is a fix only if no other correction is possible, and if it cannot change who gets which message. All other
//! remedies are only described, and a person decides.

use std::ops::Range;

use super::{Finding, SourceLocation};

/// Edits of one file that remove a finding. They are applied together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The effect of the fix: an imperative in lower case, without a full stop.
    pub title: String,
    /// The edits, which do not overlap.
    pub edits: Vec<FixEdit>,
}

/// The replacement of some bytes of a file.
///
/// The new text is never copied from the file, because the file might contain secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixEdit {
    /// The replaced bytes of the finding's source, on character boundaries; empty for an insertion.
    pub span: Range<usize>,
    /// The new text.
    pub text: String,
}

impl Fix {
    /// A fix with these replacements.
    pub fn new(title: impl Into<String>, edits: impl IntoIterator<Item = (Range<usize>, String)>) -> Self {
        let edits = edits.into_iter().map(|(span, text)| FixEdit { span, text }).collect();
        Self { title: title.into(), edits }
    }

    /// A fix that replaces these bytes.
    pub fn replace(title: impl Into<String>, span: Range<usize>, text: impl Into<String>) -> Self {
        Self::new(title, [(span, text.into())])
    }

    /// The start of the first edit and the end of the last edit.
    fn extent(&self) -> (usize, usize) {
        let start = self.edits.iter().map(|edit| edit.span.start).min().unwrap_or(0);
        let end = self.edits.iter().map(|edit| edit.span.end).max().unwrap_or(0);
        (start, end)
    }

    /// Whether all edits are within `text` and on character boundaries, and do not collide.
    fn fits(&self, text: &str) -> bool {
        let is_inside = |edit: &FixEdit| text.get(edit.span.clone()).is_some();
        let is_apart = |(at, edit): (usize, &FixEdit)| !self.edits[..at].iter().any(|other| collide(edit, other));
        !self.edits.is_empty() && self.edits.iter().all(is_inside) && self.edits.iter().enumerate().all(is_apart)
    }
}

impl Finding {
    /// Adds a fix to the finding.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<Option<Fix>>) -> Self {
        self.fix = fix.into();
        self
    }

    /// The location of the finding and its fix, which edits the location's file. `None` if the finding has no file or
    /// is in an excerpt, or if the fix does not fit the file.
    pub fn placed_fix(&self) -> Option<(&SourceLocation, &Fix)> {
        let place = self.place.as_ref().filter(|place| place.first_line == 1)?;
        let fix = self.fix.as_ref().filter(|fix| fix.fits(place.source.text()))?;
        Some((place, fix))
    }
}

/// Whether the order of two edits would matter: they overlap, or one inserts at the start or end of the other.
fn collide(edit: &FixEdit, other: &FixEdit) -> bool {
    let (first, second) = if edit.span.start <= other.span.start { (edit, other) } else { (other, edit) };
    let touches = first.span.end == second.span.start && (first.span.is_empty() || second.span.is_empty());
    first.span.end > second.span.start || touches || edit.span.start == other.span.start
}

/// Applies fixes to a text. Returns the new text and the fixes that it contains, in the order of the text.
///
/// A fix that does not fit, or that collides with an earlier fix, is skipped as a whole. The result does not depend on
/// the order of the fixes.
pub fn apply_fixes<'f>(text: &str, fixes: impl IntoIterator<Item = &'f Fix>) -> (String, Vec<&'f Fix>) {
    let mut sorted: Vec<&Fix> = fixes.into_iter().filter(|fix| fix.fits(text)).collect();
    let key = |fix: &Fix| (fix.extent(), fix.edits.iter().map(|edit| edit.text.clone()).collect::<Vec<_>>());
    sorted.sort_by_cached_key(|fix| (key(fix), fix.title.clone()));
    let (mut applied, mut edits): (Vec<&Fix>, Vec<&FixEdit>) = (Vec::new(), Vec::new());
    for fix in sorted {
        if fix.edits.iter().all(|edit| !edits.iter().any(|other| collide(edit, other))) {
            edits.extend(&fix.edits);
            applied.push(fix);
        }
    }
    edits.sort_by_key(|edit| edit.span.start);
    let (mut fixed, mut end) = (String::with_capacity(text.len()), 0);
    for edit in edits {
        fixed.push_str(&text[end..edit.span.start]);
        fixed.push_str(&edit.text);
        end = edit.span.end;
    }
    fixed.push_str(&text[end..]);
    (fixed, applied)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::finding::{RULE_TEXT, Rule, SourceText};

    static WARNS: Rule = Rule::warning("warns", RULE_TEXT);

    #[test]
    fn non_overlapping_fixes_are_all_applied() {
        let quotes = Fix::new("quote it", [(6..6, "\"".to_owned()), (9..9, "\"".to_owned())]);
        let key = Fix::replace("spell it", 0..4, "name");
        let (text, applied) = apply_fixes("nmae: @me\n", [&quotes, &key]);
        assert_eq!((text.as_str(), applied), ("name: \"@me\"\n", vec![&key, &quotes]));
    }

    #[test]
    fn overlapping_fix_is_skipped_as_a_whole() {
        let first = Fix::replace("a", 0..3, "x");
        let overlaps = Fix::new("b", [(2..4, "y".to_owned()), (6..7, "z".to_owned())]);
        let same = first.clone();
        assert_eq!(apply_fixes("abcdefgh", [&overlaps, &first, &same]).0, "xdefgh");
        let (insert, other) = (Fix::replace("a", 1..1, "x"), Fix::replace("b", 1..1, "y"));
        assert_eq!(apply_fixes("ab", [&other, &insert]).0, "axb");
    }

    #[test]
    fn fix_outside_the_text_or_inside_a_character_is_skipped() {
        for span in [0..9, 1..2, std::ops::Range { start: 3, end: 1 }, 0..1] {
            let fix = Fix::replace("a", span, "x");
            assert_eq!(apply_fixes("їй", [&fix]).0, "їй", "{fix:?}");
        }
        assert_eq!(apply_fixes("a", [&Fix::new("nothing", [])]).1, Vec::<&Fix>::new());
    }

    #[test]
    fn finding_in_an_excerpt_has_no_fix() {
        let source = SourceText::new("a.yaml", "one\n");
        let whole = SourceLocation::new(&source, 0..3);
        let finding = Finding::new(&WARNS, "x").fix(Fix::replace("a", 0..3, "two"));
        assert!(finding.placed_fix().is_none());
        assert!(finding.clone().at(whole.clone()).placed_fix().is_some());
        assert!(finding.at(SourceLocation { first_line: 2, ..whole }).placed_fix().is_none());
    }

    fn any_fix() -> impl Strategy<Value = Fix> {
        let edit =
            (0..12_usize, 0..4_usize, "[xyz]{0,2}").prop_map(|(start, length, text)| (start..start + length, text));
        proptest::collection::vec(edit, 0..3).prop_map(|edits| Fix::new("x", edits))
    }

    proptest! {
        #[test]
        fn order_of_fixes_does_not_matter(text in "[aї]{0,8}", fixes in proptest::collection::vec(any_fix(), 0..5)) {
            let (forward, applied) = apply_fixes(&text, &fixes);
            let (backward, applied_backward) = apply_fixes(&text, fixes.iter().rev());
            prop_assert_eq!(forward, backward);
            prop_assert_eq!(applied, applied_backward);
        }
    }
}
