//! Automatic fixes for campaign files. The fixes of all findings are applied until nothing more can be fixed.

use std::path::Path;

use super::document::FindingCollector;
use super::keys::{CAMPAIGN, check_root};
use super::profile::{conceal_addresses, conceal_keys};
use super::yaml::{Node, NodeContent, read_tree};
use campaign_core::finding::{Finding, Fix, SourceText, apply_fixes};

/// The maximum number of times that fixes are applied. Some mistakes hide all others, so they are fixed one by one.
const MAX_STEPS: usize = 200;

/// A campaign file with its fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedText {
    /// The new text.
    pub text: String,
    /// The fixed problems, in the order of the fixes.
    pub titles: Vec<String>,
}

/// Fixes the text of a campaign file.
///
/// Every value stays as the author typed it, unless a fix replaces it. A step that would change another value is not
/// applied.
pub fn fix_campaign_text(path: &Path, text: &str) -> FixedText {
    let mut fixed = FixedText { text: text.to_owned(), titles: Vec::new() };
    for _ in 0..MAX_STEPS {
        let Some((text, titles)) = apply_step(path, &fixed.text) else { break };
        fixed.text = text;
        fixed.titles.extend(titles);
    }
    fixed
}

/// Hides the secrets that campaign files and gateways.yaml can contain, so that the text can be shown.
pub fn conceal_file_secrets(text: &str) -> String {
    conceal_addresses(&conceal_keys(text))
}

/// Applies the fixes of all findings once. `None` if the fixes change nothing, or would change other values.
fn apply_step(path: &Path, text: &str) -> Option<(String, Vec<String>)> {
    let (before, findings) = read_file(path, text);
    let fixes = findings.iter().filter_map(Finding::placed_fix).map(|(_, fix)| fix);
    let (fixed, applied) = apply_fixes(text, fixes);
    let (after, _) = read_file(path, &fixed);
    let is_safe = match (&before, &after) {
        (Some(before), Some(after)) => keeps_values(before, after, &applied),
        // A file that was not valid YAML before had no values to keep.
        (None, _) => true,
        (Some(_), None) => false,
    };
    let titles = applied.iter().map(|fix| fix.title.clone()).collect();
    (is_safe && fixed != text).then_some((fixed, titles))
}

/// The tree of a campaign file, and the findings about its YAML and its keys.
fn read_file(path: &Path, text: &str) -> (Option<Node>, Vec<Finding>) {
    let mut report = FindingCollector::with_root(&SourceText::new(path, text), CAMPAIGN);
    let root = read_tree(&mut report);
    if let Some(root) = &root {
        check_root(root, "the campaign", &mut report);
    }
    report.replace_slip_findings(root.is_some());
    (root, report.into_findings())
}

/// Whether all values that no fix touches are still there, in the same order, and no values were added.
fn keeps_values(before: &Node, after: &Node, applied: &[&Fix]) -> bool {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    collect_values(before, &mut old);
    collect_values(after, &mut new);
    let edits = || applied.iter().flat_map(|fix| &fix.edits);
    let is_touched =
        |node: &Node| edits().any(|edit| edit.span.start <= node.span.end && node.span.start <= edit.span.end);
    // The search for each value continues after the previous value, so the order must be the same.
    let mut remaining = new.iter();
    let is_kept = |node: &&Node| remaining.any(|other| have_same_value(node, other));
    // A fix can split a key from its value, which was read as part of the key before.
    new.len() <= old.len() + applied.len() && old.iter().filter(|node| !is_touched(node)).all(is_kept)
}

fn have_same_value(first: &Node, second: &Node) -> bool {
    first.as_scalar().map(|value| &value.text) == second.as_scalar().map(|value| &value.text)
}

/// Collects the non-empty scalars of a tree, in the order of the file.
fn collect_values<'n>(node: &'n Node, values: &mut Vec<&'n Node>) {
    match &node.content {
        NodeContent::Scalar(scalar) if scalar.is_null() => {}
        NodeContent::Scalar(_) => values.push(node),
        NodeContent::List(items) => items.iter().for_each(|item| collect_values(item, values)),
        NodeContent::Map(entries) => entries.iter().for_each(|entry| collect_values(&entry.value, values)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "# Sale\nname: Autumn sale\nlanguage: uk\nrecipients:\n  file: sale.csv\n\
        \x20 columns: { phone: Tel }\n\
        delivery:\n  batch: 50\n  window: 09:00-20:00\nchannels:\n  - viber:\n      signature: SHOP\n      message: |\n\
        \x20       Hi {{ name }},\n          @all: it's here\n      lifetime: 1h\n  - sms:\n      signature: SHOP\n\
        \x20     message: 'Sale: today'\n";

    fn fix(text: &str) -> FixedText {
        fix_campaign_text(Path::new("sale.yaml"), text)
    }

    fn count_errors(text: &str) -> usize {
        read_file(Path::new("sale.yaml"), text).1.iter().filter(|finding| finding.is_error()).count()
    }

    #[test]
    fn file_without_mistakes_needs_no_fixes() {
        assert_eq!(count_errors(VALID), 0, "{:?}", read_file(Path::new("sale.yaml"), VALID).1);
        assert_eq!(fix(VALID), FixedText { text: VALID.to_owned(), titles: Vec::new() });
    }

    #[test]
    fn fixing_each_mistake_restores_the_intended_file() {
        for (right, wrong) in [
            ("recipients:", "recipents:"),
            ("  batch: 50", "  batch: \"50\""),
            ("  batch: 50", "  batch: “50”"),
            ("  batch: 50", "  btach: 50"),
            ("  file: sale.csv", "  file:sale.csv"),
            ("  file: sale.csv", "\u{a0}\u{a0}file: sale.csv"),
            ("  - sms:", "  – sms:"),
            ("      signature: SHOP\n      message: |", "      viber_signature: SHOP\n      message: |"),
            ("language: uk\n", "language: uk\nlanguage: uk\n"),
        ] {
            let spoilt = VALID.replacen(right, wrong, 1);
            assert_ne!(count_errors(&spoilt), 0, "{wrong}");
            assert_eq!(fix(&spoilt).text, VALID, "{wrong}");
            let (windows, expected) = (spoilt.replace('\n', "\r\n"), VALID.replace('\n', "\r\n"));
            assert_eq!(fix(&windows).text, expected, "{wrong}");
            let marked = format!("\u{feff}{spoilt}");
            assert_eq!(fix(&marked).text, format!("\u{feff}{VALID}"), "{wrong}");
        }
    }

    #[test]
    fn several_mistakes_that_hide_each_other_are_all_fixed() {
        let text = "recipents:\n\tfile:sale.csv\nname: @SHOP\nchannels:\n  - sms:\n      signature: SHOP\n\
            \x20     message: Sale: today\n";
        let fixed = fix(text);
        assert_eq!(
            fixed.text,
            "recipients:\n  file: sale.csv\nname: \"@SHOP\"\nchannels:\n  - sms:\n      signature: SHOP\n\
            \x20     message: \"Sale: today\"\n"
        );
        assert_eq!(fixed.titles.len(), 5, "{:?}", fixed.titles);
    }

    #[test]
    fn keys_that_decide_who_gets_which_message_are_not_fixed() {
        for (right, wrong) in [
            ("language: uk", "purpos: service"),
            ("language: uk", "purpose: servise"),
            ("language: uk", "mandatry: true"),
            ("language: uk", "mandatory: yes"),
            ("language: uk", "timezone: Europe/Kiyv"),
            ("  batch: 50", "  btch: 50\n  batch: 50"),
            ("  file: sale.csv", "  file: sale.csv\n  duplicates: alow"),
            ("  file: sale.csv", "  file: sale.csv\n  max_invalids: 10%"),
            ("  - sms:", "  - smss:"),
            ("'Sale: today'", "“Sale”"),
            ("name: Autumn sale", "name: “Autumn sale”"),
        ] {
            let spoilt = VALID.replacen(right, wrong, 1);
            assert_eq!(fix(&spoilt), FixedText { text: spoilt.clone(), titles: Vec::new() }, "{wrong}");
        }
    }

    #[test]
    fn concealed_file_shows_no_secrets() {
        let concealed = conceal_file_secrets("production:\n  api_key: abc123\n");
        assert!(!concealed.contains("abc123") && concealed.contains("api_key"), "{concealed}");
    }

    proptest! {
        /// A few characters of a valid file are replaced, removed or added.
        #[test]
        fn fixing_terminates_and_adds_no_errors(
            changes in proptest::collection::vec((0..VALID.len(), 0..3_usize, "[a-z:\"'@\t\u{a0}“”\n ]{0,2}"), 1..4)
        ) {
            let mut text = VALID.to_owned();
            for (at, length, new) in changes {
                let (at, end) = (at.min(text.len()), (at + length).min(text.len()));
                if text.is_char_boundary(at) && text.is_char_boundary(end) {
                    text.replace_range(at..end, &new);
                }
            }
            let (tree, _) = read_file(Path::new("sale.yaml"), &text);
            let fixed = fix(&text);
            prop_assert_eq!(fix(&fixed.text), FixedText { text: fixed.text.clone(), titles: Vec::new() });
            if tree.is_some() {
                let (fixed_tree, _) = read_file(Path::new("sale.yaml"), &fixed.text);
                prop_assert!(fixed_tree.is_some(), "{text:?} became {:?}", fixed.text);
            }
            if count_errors(&text) == 0 {
                prop_assert_eq!(&fixed.text, &text);
            }
        }
    }
}
