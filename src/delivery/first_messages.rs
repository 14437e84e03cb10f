//! Asking about the first messages of an asynchronous start.
//!
//! The asynchronous endpoint refuses a message only after it has queued it, so a start asks what
//! became of its first messages before it sends more.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::course::QueuedMessage;
use super::submission::Route;
use crate::domain::{MessageId, ReportedChannel, Status};
use crate::gateway::StatusAnswer;
use crate::ledger::LedgerError;

/// How many messages of an envelope are asked about.
const ASKED: usize = 5;
/// How long the waits between two questions are.
const PAUSE: Duration = Duration::from_millis(500);

/// What was learned by asking.
pub(super) struct LateRefusals {
    /// The messages that the gateway refused after it had queued them, with the channels that it named.
    pub(super) refused: Vec<(QueuedMessage, Option<ReportedChannel>)>,
    /// How many were asked about.
    pub(super) asked: usize,
    /// How late the gateway knew the last of those that it came to know.
    pub(super) lag: Option<Duration>,
}

/// Asks until each message has left the queue or `deadline` is over.
///
/// # Errors
/// When the ledger cannot give room for the questions.
pub(super) async fn ask(
    route: &Route,
    queued: &[QueuedMessage],
    deadline: Instant,
) -> Result<LateRefusals, LedgerError> {
    let mut open: Vec<QueuedMessage> = queued.iter().copied().take(ASKED).collect();
    let mut learned = LateRefusals { refused: Vec::new(), asked: open.len(), lag: None };
    let (began, mut known) = (Instant::now(), HashSet::new());
    while !open.is_empty() && Instant::now() < deadline {
        let count = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let wait = route.ledger.reserve(&route.account, count).await?.time;
        sleep_until(deadline.min(Instant::now() + wait)).await;
        let ids: Vec<MessageId> = open.iter().map(|message| message.id).collect();
        let Ok(answers) = timeout_at(deadline, route.gateway.statuses(&ids)).await else { break };
        let mut waiting = Vec::new();
        for (message, answer) in open.into_iter().zip(answers) {
            if matches!(answer, StatusAnswer::Known { .. }) && known.insert(message.id) {
                learned.lag = Some(began.elapsed());
            }
            match answer {
                StatusAnswer::Known { status: Status::Rejected, channel, .. } => {
                    learned.refused.push((message, channel))
                }
                StatusAnswer::Known { status: Status::Queued, .. }
                | StatusAnswer::Denied(_)
                | StatusAnswer::Unclear(_) => waiting.push(message),
                StatusAnswer::Known { .. } => {}
            }
        }
        open = waiting;
        if !open.is_empty() {
            sleep_until(deadline.min(Instant::now() + PAUSE)).await;
        }
    }
    Ok(learned)
}
