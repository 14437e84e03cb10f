//! Suppression files that change while a run is being sent, or while it waits for its window or for the next day.

use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringTreemap;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::suppress_files::{find_file_states, read_suppressed};
use super::{Inputs, run_blocking};
use campaign_core::domain::{Phone, Purpose};
use campaign_core::finding::Finding;
use campaign_engine::delivery::{LateOptOuts, OptedOutFuture};
use campaign_manifest::FileState;

/// The interval between checks of the files for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The delay before an unreadable file is read again. Another program might be replacing the file.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The states of suppression files. `None` for a file that cannot be opened.
pub(super) type FileStates = Vec<Option<FileState>>;

/// Rereads the suppression files of a campaign and its profile if they have changed.
pub(super) struct SuppressionWatch {
    inputs: Arc<Inputs>,
    known: Mutex<KnownOptOuts>,
}

/// The opt-outs that were added since the run was prepared.
struct KnownOptOuts {
    /// The numbers in the changed files. A number that is removed from a file stays, because the file might be
    /// incomplete while another program writes it.
    numbers: RoaringTreemap,
    /// The states of the files when they were last read. `None` if they were never read.
    states: Option<FileStates>,
    checked_at: Option<Instant>,
}

impl SuppressionWatch {
    /// Watches the files from the time at which these inputs first read them. `None` if no file applies.
    pub(super) fn start(inputs: &Arc<Inputs>) -> Option<Arc<dyn LateOptOuts>> {
        let files = find_file_states(&inputs.campaign, inputs.destination.profile());
        if inputs.campaign.brief.purpose == Purpose::Service || files.is_empty() {
            return None;
        }
        let states = inputs.suppression.get().cloned();
        let known = KnownOptOuts { numbers: RoaringTreemap::new(), states, checked_at: None };
        Some(Arc::new(Self { inputs: Arc::clone(inputs), known: Mutex::new(known) }))
    }

    /// Reads the files if they have changed since they were last read.
    async fn update(&self, known: &mut KnownOptOuts) -> Result<(), String> {
        if known.checked_at.is_some_and(|at| at.elapsed() < CHECK_INTERVAL) {
            return Ok(());
        }
        let states = match self.read_changed(known.states.clone()).await {
            Err(_) => {
                sleep(RETRY_DELAY).await;
                self.read_changed(known.states.clone()).await?
            }
            Ok(read) => read,
        };
        if let Some((states, numbers)) = states {
            known.numbers |= numbers;
            known.states = Some(states);
        }
        known.checked_at = Some(Instant::now());
        Ok(())
    }

    /// Reads the files if their states differ from `known`.
    async fn read_changed(&self, known: Option<FileStates>) -> Result<Option<(FileStates, RoaringTreemap)>, String> {
        let inputs = Arc::clone(&self.inputs);
        let read = run_blocking(move || {
            let profile = inputs.destination.profile();
            let states = find_file_states(&inputs.campaign, profile);
            if known.as_ref() == Some(&states) {
                return Ok(None);
            }
            let read = read_suppressed(&inputs.campaign, profile).map_err(|findings| describe_findings(&findings))?;
            Ok(Some((states, read.numbers)))
        });
        read.await.map_err(|error| error.to_string())?
    }
}

impl LateOptOuts for SuppressionWatch {
    fn find_opted_out(&self, phones: Vec<Phone>) -> OptedOutFuture<'_> {
        Box::pin(async move {
            let mut known = self.known.lock().await;
            self.update(&mut known).await?;
            Ok(phones.into_iter().filter(|phone| known.numbers.contains(phone.to_u64())).collect())
        })
    }
}

fn describe_findings(findings: &[Finding]) -> String {
    findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}
