//! Asking about the first messages of an asynchronous start.
//!
//! The asynchronous endpoint refuses a message only after it has queued it, so a start asks what
//! became of its first messages before it sends more.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::course::QueuedMessage;
use super::submission::Submitter;
use crate::domain::{MessageId, ReportedChannel, Status};
use crate::gateway::StatusAnswer;
use crate::ledger::LedgerError;

/// How many messages of an envelope are asked about.
const MAX_ASKED: usize = 5;
/// How long the waits between two questions are.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// What was learned by asking.
pub(super) struct LateRejections {
    /// The messages that the gateway refused after it had queued them, with the channels that it named.
    pub(super) rejected: Vec<(QueuedMessage, Option<ReportedChannel>)>,
    /// How many were asked about.
    pub(super) asked: usize,
    /// How late the gateway knew the last of those that it came to know.
    pub(super) lag: Option<Duration>,
}

/// Asks until each message has left the queue or `deadline` is over.
///
/// # Errors
/// When the ledger cannot give room for the questions.
pub(super) async fn ask_until_known(
    route: &Submitter,
    queued: &[QueuedMessage],
    deadline: Instant,
) -> Result<LateRejections, LedgerError> {
    let mut open: Vec<QueuedMessage> = queued.iter().copied().take(MAX_ASKED).collect();
    let mut learned = LateRejections { rejected: Vec::new(), asked: open.len(), lag: None };
    let (began, mut known) = (Instant::now(), HashSet::new());
    while !open.is_empty() && Instant::now() < deadline {
        let count = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let wait = route.ledger.reserve_rate(&route.account, count).await?.time;
        sleep_until(deadline.min(Instant::now() + wait)).await;
        let ids: Vec<MessageId> = open.iter().map(|message| message.id).collect();
        let Ok(answers) = timeout_at(deadline, route.gateway.ask_statuses(&ids)).await else { break };
        let mut waiting = Vec::new();
        for (message, answer) in open.into_iter().zip(answers) {
            if matches!(answer, StatusAnswer::Known { .. }) && known.insert(message.id) {
                learned.lag = Some(began.elapsed());
            }
            match answer {
                StatusAnswer::Known { status: Status::Rejected, channel, .. } => {
                    learned.rejected.push((message, channel))
                }
                StatusAnswer::Known { status: Status::Queued, .. }
                | StatusAnswer::Denied(_)
                | StatusAnswer::Unclear(_) => waiting.push(message),
                StatusAnswer::Known { .. } => {}
            }
        }
        open = waiting;
        if !open.is_empty() {
            sleep_until(deadline.min(Instant::now() + ASK_INTERVAL)).await;
        }
    }
    Ok(learned)
}
