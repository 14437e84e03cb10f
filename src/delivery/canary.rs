//! Asking about the first messages of an asynchronous start.
//!
//! The asynchronous endpoint refuses a message only after it has queued it, so a start asks what
//! became of its first messages before it sends more.

use std::time::Duration;

use tokio::time::Instant;

use super::breaker::Breaker;
use super::stop::Stop;
use super::submission::Route;
use crate::domain::{MessageId, Status};
use crate::gateway::StatusAnswer;
use crate::ledger::LedgerError;

/// How many messages of an envelope are asked about.
const ASKED: usize = 5;
/// How long the waits between two questions are.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks until each message has left the queue or `deadline` is over; tells whether its rejections stop the run.
///
/// # Errors
/// When the ledger cannot give room for the questions.
pub(super) async fn ask(
    route: &Route,
    ids: &[MessageId],
    breaker: &mut Breaker,
    deadline: Instant,
) -> Result<Option<Stop>, LedgerError> {
    let mut open: Vec<MessageId> = ids.iter().copied().take(ASKED).collect();
    while !open.is_empty() {
        let (account, rate) = &route.account;
        let count = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let wait = route.ledger.reserve(account, count, *rate).await?;
        tokio::time::sleep(wait).await;
        let Ok(answers) = tokio::time::timeout_at(deadline, route.gateway.statuses(&open)).await else { break };
        let mut waiting = Vec::new();
        for (id, answer) in open.into_iter().zip(answers) {
            match answer {
                StatusAnswer::Known { status: Status::Rejected, .. } => {
                    if let Some(stop) = breaker.observe_rejection("REJECTED after it was queued") {
                        return Ok(Some(stop));
                    }
                }
                StatusAnswer::Known { status: Status::Queued, .. }
                | StatusAnswer::Denied(_)
                | StatusAnswer::Unclear(_) => waiting.push(id),
                StatusAnswer::Known { .. } => {}
            }
        }
        open = waiting;
        if Instant::now() + PAUSE >= deadline {
            break;
        }
        if !open.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(None)
}
