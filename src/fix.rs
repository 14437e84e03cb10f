//! `campaign check --fix`: fixes for findings, shown as a diff and written after confirmation.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::args::CheckArgs;
use super::campaign_tests::findings_from_failure;
use super::context::Context;
use super::exit::CommandFailure;
use super::prompt::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use super::text::{Span, StyledLine, StyledText, bad, dim, good, plain, strong};
use campaign_core::finding::{Finding, apply_fixes};
use campaign_core::private;
use campaign_manifest::{conceal_file_secrets, fix_campaign_text};

/// The maximum number of rounds. A later round fixes mistakes that earlier mistakes had hidden.
const MAX_ROUNDS: usize = 10;
/// The number of unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// A file with its fixes.
struct FixedFile {
    /// The path as typed, or as a campaign file names it.
    path: PathBuf,
    before: String,
    after: String,
    /// The titles of the fixes that were applied.
    titles: Vec<String>,
}

/// Fixes the campaign files and the files named in them until nothing more can be fixed. Returns the fixes as JSON.
///
/// # Errors
/// If the operator did not confirm, or a file cannot be written.
pub(super) async fn fix_campaigns(context: &Context, args: &CheckArgs) -> Result<Vec<Value>, CommandFailure> {
    let mut fixed: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let files = find_fixes(context, args)?;
        if files.is_empty() {
            break;
        }
        let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
        if !context.output.json && (!context.output.quiet || !args.yes) {
            context.output.print_result(render_differences(&files));
        }
        if !args.yes {
            let title = format!("Write these corrections to {}?", names.join(", "));
            let prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, "write them")
                .with_note("They do not change who gets what.");
            let change = format!("correcting {}", names.join(", "));
            let unchanged =
                if fixed.is_empty() { "No file was changed." } else { "These corrections were not written." };
            require_confirmation(&context.output, prompt, &change, unchanged).await?;
        }
        for file in files {
            replace_file(&file).map_err(|error| unwritable_file_failure(&file.path, &error))?;
            fixed.entry(file.path).or_default().extend(file.titles);
        }
    }
    let to_json =
        |(path, titles): (PathBuf, Vec<String>)| json!({ "file": path.display().to_string(), "fixes": titles });
    Ok(fixed.into_iter().map(to_json).collect())
}

/// Finds the files whose findings have fixes, and applies the fixes without writing the files.
fn find_fixes(context: &Context, args: &CheckArgs) -> Result<Vec<FixedFile>, CommandFailure> {
    let mut files: BTreeMap<PathBuf, FixedFile> = BTreeMap::new();
    for campaign in &args.files {
        let findings = match context.load_campaign(campaign, args.gateway.as_deref()) {
            Ok(inputs) => inputs.warnings.clone(),
            Err(failure) => findings_from_failure(context, failure)?,
        };
        let placed_fixes = findings.iter().filter_map(Finding::placed_fix);
        let mut paths: Vec<&Path> = placed_fixes.map(|(place, _)| place.source.path()).collect();
        paths.dedup();
        for path in paths {
            // The same file can have two names.
            let Ok(target) = fs::canonicalize(path) else { continue };
            if files.contains_key(&target) {
                continue;
            }
            if let Some(file) = fix_file(path, path == campaign.as_path(), &findings) {
                files.insert(target, file);
            }
        }
    }
    Ok(files.into_values().collect())
}

/// Applies the fixes of `findings` to the text of a file, without writing the file. Returns `None` if the fixes
/// change nothing, or if the file cannot be read or has changed since the findings were made.
fn fix_file(path: &Path, is_campaign: bool, findings: &[Finding]) -> Option<FixedFile> {
    let before = fs::read_to_string(path).ok()?;
    let placed_fixes: Vec<_> = findings
        .iter()
        .filter_map(Finding::placed_fix)
        .filter(|(place, _)| place.source.path() == path && matches_masked_source(place.source.text(), &before))
        .collect();
    if placed_fixes.is_empty() {
        return None;
    }
    let (after, titles) = if is_campaign {
        let fixed = fix_campaign_text(path, &before);
        (fixed.text, fixed.titles)
    } else {
        let (after, applied) = apply_fixes(&before, placed_fixes.iter().map(|(_, fix)| *fix));
        (after, applied.iter().map(|fix| fix.title.clone()).collect())
    };
    (after != before).then(|| FixedFile { path: path.to_owned(), before, after, titles })
}

/// Whether `masked`, the source text of a finding, matches `text`. In `masked`, asterisks replace the bytes of secrets.
fn matches_masked_source(masked: &str, text: &str) -> bool {
    masked.len() == text.len()
        && masked.bytes().zip(text.bytes()).all(|(masked_byte, byte)| masked_byte == byte || masked_byte == b'*')
}

/// Replaces a file atomically with its fixed version. Permissions, owner and symbolic links are preserved.
fn replace_file(file: &FixedFile) -> io::Result<()> {
    let target = fs::canonicalize(&file.path)?;
    let metadata = fs::metadata(&target)?;
    if metadata.permissions().readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut new_file = tempfile::Builder::new().prefix(".campaign-fix-").tempfile_in(folder)?;
    new_file.write_all(file.after.as_bytes())?;
    keep_owner(new_file.path(), &metadata)?;
    fs::set_permissions(new_file.path(), metadata.permissions())?;
    new_file.as_file().sync_all()?;
    if fs::read(&target)? != file.before.as_bytes() {
        return Err(io::Error::other("it was changed by someone else in the meantime; run the command again"));
    }
    new_file.persist(&target).map_err(|error| error.error)?;
    private::sync_entry(&target)
}

/// Gives a new file the owner of the file that it replaces.
#[cfg(unix)]
fn keep_owner(new: &Path, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let current = fs::metadata(new)?;
    match (current.uid(), current.gid()) == (old.uid(), old.gid()) {
        true => Ok(()),
        false => chown(new, Some(old.uid()), Some(old.gid())),
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

fn unwritable_file_failure(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::invalid(format!("cannot write the corrections to `{}`: {error}", path.display()))
        .with_help("check the file and its permissions; nothing was written to it")
}

/// Renders the diffs of all files, without secrets.
fn render_differences(files: &[FixedFile]) -> StyledText {
    let mut text = StyledText::new();
    for file in files {
        let mut titles: Vec<&str> = file.titles.iter().map(String::as_str).collect();
        titles.dedup();
        let name = strong(file.path.display().to_string());
        text.push(StyledLine::new([name, plain(format!(": {}", titles.join(", ")))]));
        add_difference(&mut text, &conceal_file_secrets(&file.before), &conceal_file_secrets(&file.after));
        text.add_blank();
    }
    text
}

/// Adds the changed lines with some lines of context. The changed words of a line are coloured.
fn add_difference(text: &mut StyledText, before: &str, after: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    for group in group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT_LINES) {
        let Some((first, last)) = group.first().zip(group.last()) else { continue };
        let range = |start: usize, end: usize| format!("{},{}", start + 1, end - start);
        let removed = range(first.old_range().start, last.old_range().end);
        let added = range(first.new_range().start, last.new_range().end);
        text.push(StyledLine::new([dim(format!("@@ -{removed} +{added} @@"))]).unbroken());
        for operation in group {
            push_diff_operation(text, &operation, &old, &new);
        }
    }
}

fn push_diff_operation(text: &mut StyledText, operation: &DiffOp, old: &[&str], new: &[&str]) {
    let (removed, added) = (&old[operation.old_range()], &new[operation.new_range()]);
    let mut push = |spans: Vec<Span>| text.push(StyledLine::new(spans).unbroken());
    if matches!(operation, DiffOp::Equal { .. }) {
        return removed.iter().for_each(|line| push(vec![plain(format!(" {line}"))]));
    }
    let emphasize = |mark: &str, line: &str, other: Option<&&str>, style: fn(String) -> Span| -> Vec<Span> {
        let words = other.map_or_else(|| vec![(true, line.to_owned())], |other| diff_words(line, other));
        let spans = words.into_iter().map(|(is_changed, word)| if is_changed { style(word) } else { plain(word) });
        std::iter::once(style(mark.to_owned())).chain(spans).collect()
    };
    let is_paired = removed.len() == added.len();
    for (index, line) in removed.iter().enumerate() {
        push(emphasize("-", line, added.get(index).filter(|_| is_paired), bad));
    }
    for (index, line) in added.iter().enumerate() {
        push(emphasize("+", line, removed.get(index).filter(|_| is_paired), good));
    }
}

/// Splits a line into parts, and flags the parts that are missing from the other line.
fn diff_words(line: &str, other: &str) -> Vec<(bool, String)> {
    let (words, other_words) = (split_words(line), split_words(other));
    let mut parts: Vec<(bool, String)> = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &other_words, &words) {
        let part = words[operation.new_range()].concat();
        if !part.is_empty() {
            parts.push((!matches!(operation, DiffOp::Equal { .. }), part));
        }
    }
    parts
}

/// Splits a line into words; each character between words is a separate part.
fn split_words(line: &str) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|character: char| !character.is_alphanumeric()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(if word == 0 { first.len_utf8() } else { word });
        words.push(word);
        rest = tail;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_difference(before: &str, after: &str, color: bool) -> String {
        let mut text = StyledText::new();
        add_difference(&mut text, before, after);
        text.render(Some(80), color)
    }

    #[test]
    fn diff_shows_changed_lines_with_three_lines_of_context() {
        let before = "1\n2\n3\n4\nmessage: Sale: today\n6\n7\n8\n9\n";
        let after = before.replace("Sale: today", "\"Sale: today\"");
        assert_eq!(
            render_difference(before, &after, false),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-message: Sale: today\n+message: \"Sale: today\"\n 6\n 7\n 8\n"
        );
        assert_eq!(render_difference("a\r\na\r\nb\r\n", "a\r\nb\r\n", false), "@@ -1,3 +1,2 @@\n a\n-a\n b\n");
    }

    #[test]
    fn only_changed_words_are_coloured() {
        let marked = |line: &str, other: &str| {
            let parts = diff_words(line, other).into_iter();
            parts.map(|(is_changed, part)| if is_changed { format!("<{part}>") } else { part }).collect::<String>()
        };
        assert_eq!(marked("recipents: а б", "recipients: а б"), "<recipents>: а б");
        assert_eq!(marked("x: \"a b\"", "x: a b"), "x: <\">a b<\">");
        assert_eq!(marked("x: a b", "x: \"a b\""), "x: a b");
    }

    #[test]
    fn source_with_redacted_secrets_is_recognized() {
        assert!(matches_masked_source("key: ***\n", "key: abc\n"));
        assert!(!matches_masked_source("key: ***\n", "key: abcd\n") && !matches_masked_source("a: b\n", "a: c\n"));
    }
}
