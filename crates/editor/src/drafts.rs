//! Draft campaigns of the open documents, with their findings and the checks of their lists.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use campaign_core::finding::{Finding, SourceText};
use campaign_runs::{ColumnsKey, DraftCampaign, ListKey, SampledColumn};

use crate::protocol::move_finding;

/// A check of a list, for another thread. It stops once the text changes.
pub struct ListCheck {
    file: PathBuf,
    draft: Arc<DraftCampaign>,
    key: ListKey,
    stop: Arc<AtomicBool>,
}

/// The result of a list check.
pub struct ListOutcome {
    pub(crate) file: PathBuf,
    key: ListKey,
    columns: SampledList,
    findings: Vec<Finding>,
}

impl ListCheck {
    /// Reads and checks the whole list. `None` if the check was stopped.
    pub fn run(&self) -> Option<ListOutcome> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let columns = SampledList::read(&self.draft);
        let findings = self.draft.check_list(&self.stop)?;
        Some(ListOutcome { file: self.file.clone(), key: self.key.clone(), columns, findings })
    }
}

impl fmt::Debug for ListCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListCheck").field("file", &self.file).finish_non_exhaustive()
    }
}

impl fmt::Debug for ListOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListOutcome").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The columns of a list, with the state of the list that they were read from.
struct SampledList {
    key: Option<ColumnsKey>,
    columns: Vec<SampledColumn>,
}

impl SampledList {
    fn read(draft: &DraftCampaign) -> Self {
        Self { key: draft.columns_key(), columns: draft.sample_columns() }
    }
}

/// The file size below which a list is read immediately for its columns, without a background check.
const SMALL_LIST_BYTES: u64 = 1 << 22;

/// A draft campaign with the results of its checks.
pub(crate) struct CheckedDraft {
    /// The campaign as it is now.
    pub(crate) draft: Arc<DraftCampaign>,
    /// The last version that could be read. Its names are offered while the current text is invalid.
    readable: Option<Arc<DraftCampaign>>,
    columns: Option<SampledList>,
    checked: Option<CheckedList>,
    /// The state of the list that the running check reads, and the flag that stops the check.
    running: Option<(ListKey, Arc<AtomicBool>)>,
}

/// The findings of the last complete check.
struct CheckedList {
    /// The state that the findings depend on; `None` if other files might have changed since.
    key: Option<ListKey>,
    /// Whether the check covered the current text.
    is_current: bool,
    findings: Vec<Finding>,
    /// The findings that did not depend on the list.
    without_list: Vec<Finding>,
}

impl CheckedDraft {
    pub(crate) fn new(draft: Arc<DraftCampaign>) -> Self {
        Self { draft, readable: None, columns: None, checked: None, running: None }
    }

    /// Replaces the campaign with a new version. Returns the check that the list now needs, if any.
    pub(crate) fn update(&mut self, file: &Path, draft: Arc<DraftCampaign>) -> Option<ListCheck> {
        let key = draft.list_key();
        if draft.campaign().is_some() {
            self.readable = Some(Arc::clone(&draft));
        }
        self.draft = draft;
        if let Some(checked) = &mut self.checked {
            checked.is_current = checked.key.as_ref() == Some(&key);
            if checked.is_current {
                self.stop_list_check();
                return None;
            }
        }
        if self.running.as_ref().is_some_and(|(running, _)| *running == key) {
            return None;
        }
        self.stop_list_check();
        self.draft.campaign()?;
        let stop = Arc::new(AtomicBool::new(false));
        self.running = Some((key.clone(), Arc::clone(&stop)));
        Some(ListCheck { file: file.to_owned(), draft: Arc::clone(&self.draft), key, stop })
    }

    /// Stores the result of a check, unless the text has changed since the check began.
    pub(crate) fn accept(&mut self, outcome: ListOutcome) {
        let ListOutcome { key, columns, findings, .. } = outcome;
        if self.running.take_if(|(running, _)| *running == key).is_none() {
            return;
        }
        let without_list = self.draft.findings().to_vec();
        self.columns = Some(columns);
        self.checked = Some(CheckedList { key: Some(key), is_current: true, findings, without_list });
    }

    /// Makes the next update check the list again, because files might have changed on disk. Until that check finishes,
    /// the current findings about the list stay.
    pub(crate) fn invalidate_list(&mut self) {
        self.stop_list_check();
        if let Some(checked) = &mut self.checked {
            checked.key = None;
        }
    }

    pub(crate) fn stop_list_check(&mut self) {
        if let Some((_, stop)) = self.running.take() {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// All findings. Until the list is checked again, findings about the list come from the last check, moved to their
    /// new positions.
    pub(crate) fn findings(&self, texts: &BTreeMap<PathBuf, SourceText>) -> Vec<Finding> {
        let mut findings = self.draft.findings().to_vec();
        let Some(checked) = &self.checked else { return findings };
        if checked.is_current {
            return checked.findings.clone();
        }
        for finding in checked.findings.iter().filter(|finding| !checked.without_list.contains(finding)) {
            let text = finding.place.as_ref().and_then(|place| texts.get(place.source.path()));
            let moved = match text {
                Some(text) => move_finding(finding, text),
                None => Some(finding.clone()),
            };
            findings.extend(moved.filter(|moved| !findings.contains(moved)));
        }
        findings
    }

    /// The last version of the campaign that could be read.
    pub(crate) fn readable_draft(&self) -> Option<&DraftCampaign> {
        self.readable.as_deref()
    }

    /// The columns of the list. A small list is read again whenever the list or its settings have changed; the columns
    /// of a large list come from the last check.
    pub(crate) fn columns(&mut self) -> &[SampledColumn] {
        if let Some(draft) = &self.readable {
            let key = draft.columns_key();
            let is_known = self.columns.as_ref().is_some_and(|known| known.key == key);
            let state = draft.list_file().and_then(|list| list.read_state());
            if !is_known && state.is_some_and(|state| state.bytes() < SMALL_LIST_BYTES) {
                self.columns = Some(SampledList::read(draft));
            }
        }
        self.columns.as_ref().map(|known| known.columns.as_slice()).unwrap_or_default()
    }
}

impl Drop for CheckedDraft {
    fn drop(&mut self) {
        self.stop_list_check();
    }
}
