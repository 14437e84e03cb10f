//! Collecting findings about one file.

use std::ops::Range;

use super::keys::{CAMPAIGN, KeySpec, is_known};
use super::yaml::find_slips;
use crate::domain::{choose_plural, format_count};
use crate::finding::{Finding, Severity, SourceLocation, SourceText, rules};

/// The most findings about one file that are told.
const MAX_FINDINGS: usize = 100;

/// What came of reading a file: a value, and everything that was noticed.
#[derive(Clone, Debug)]
pub struct LoadedFile<T> {
    /// The value; nothing when a finding is an error.
    pub value: Option<T>,
    /// The readable parts of a file with errors: to find more problems, never to be used.
    pub draft: Option<T>,
    /// Every problem that was found.
    pub findings: Vec<Finding>,
}

impl<T> LoadedFile<T> {
    /// The value, unless a finding is an error or there is none.
    pub(crate) fn new(value: Option<T>, findings: Vec<Finding>) -> Self {
        let refused = findings.iter().any(Finding::is_error);
        let (value, draft) = if refused { (None, value) } else { (value, None) };
        Self { value, draft, findings }
    }
}

/// The findings about one file so far.
pub(crate) struct FindingCollector {
    /// The file as it is shown.
    pub(crate) source: SourceText,
    /// What was found.
    pub(crate) findings: Vec<Finding>,
    /// The keys of the whole file, by which a key in the wrong place is recognised.
    pub(crate) root: &'static [KeySpec],
}

impl FindingCollector {
    /// Nothing found yet in a file of campaigns or gateways.
    pub(crate) fn new(source: &SourceText) -> Self {
        Self::with_root(source, CAMPAIGN)
    }

    /// Nothing found yet in a file with these keys.
    pub(crate) fn with_root(source: &SourceText, root: &'static [KeySpec]) -> Self {
        Self { source: source.clone(), findings: Vec::new(), root }
    }

    /// Replaces findings caused by typing slips with findings about the slips; true if there are slips.
    ///
    /// A slip changes what its top-level key means. Other top-level keys keep their findings if the file `is_read`.
    pub(crate) fn replace_slip_findings(&mut self, is_read: bool) -> bool {
        if !self.findings.iter().any(Finding::is_error) {
            return false;
        }
        let slips = find_slips(self.source.text(), |name| is_known(name, self.root));
        if slips.is_empty() {
            return false;
        }
        let blocks: Vec<_> = slips.iter().map(|(span, _)| self.top_level_span(span.start)).collect();
        self.findings.retain(|finding| {
            let Some(place) = finding.place.as_ref().filter(|_| is_read) else { return false };
            // The key that is missing at the top of the file might be the one that the slip damages.
            !place.span.is_empty() && !blocks.iter().any(|block| block.contains(&place.span.start))
        });
        slips.into_iter().for_each(|(span, finding)| self.add(&span, finding));
        true
    }

    /// The bytes of the top-level key around `at`, with all its lines.
    fn top_level_span(&self, at: usize) -> Range<usize> {
        let text = self.source.text();
        let (mut start, mut begin) = (0, 0);
        for line in text.split_inclusive('\n') {
            if line.starts_with(|character: char| character.is_alphanumeric() || matches!(character, '"' | '\'')) {
                if start > at {
                    return begin..start;
                }
                begin = start;
            }
            start += line.len();
        }
        begin..text.len() + 1
    }

    /// Adds a finding about those bytes of the file.
    pub(crate) fn add(&mut self, span: &Range<usize>, finding: Finding) {
        self.findings.push(finding.at(SourceLocation::new(&self.source, span.clone())));
    }

    /// The findings in the order of the file, each once; of a great many only the first.
    pub(crate) fn into_findings(mut self) -> Vec<Finding> {
        let start = |finding: &Finding| finding.place.as_ref().map(|place| place.span.start);
        self.findings.sort_by_key(start);
        self.findings.dedup();
        let rest = self.findings.split_off(self.findings.len().min(MAX_FINDINGS));
        if !rest.is_empty() {
            let worst = rest.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Warning);
            let more = rest.len() as u64;
            let message =
                format!("{} {} not shown", format_count(more, "more problem"), choose_plural(more, "is", "are"));
            let finding = Finding { severity: worst, ..Finding::new(&rules::MORE_FINDINGS, message) };
            self.findings.push(finding.help("fix the problems above, then check again"));
        }
        self.findings
    }

    /// The bytes of the file.
    pub(crate) fn source_slice(&self, span: &Range<usize>) -> &str {
        self.source.text().get(span.clone()).unwrap_or("")
    }
}
