//! Asking about rows in doubt: what an answer proves, and when there is nothing left to ask. Pure.
//!
//! The gateway is an oracle that may be blind, late or lying. It is believed only as far as it can
//! be tested: a probe that was never sent has to be denied, and a message that was surely taken has
//! to be known.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::{Chain, Endpoint, MessageId, Row};
use crate::gateway::StatusAnswer;
use crate::ledger::{AskedRow, RowChange};

/// The most questions about one row.
const MAX_QUESTIONS: u32 = 20;
/// How long after the sending a row is asked about.
const MAX_AGE: Duration = Duration::from_secs(24 * 3_600);
/// How many denials, each after its own wait, make a row `not found`.
const DENIALS_NEEDED: u32 = 3;

/// A row in doubt, and what was asked about it so far.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageInDoubt {
    /// The row.
    pub row: Row,
    /// Our identifier of the message.
    pub id: MessageId,
    /// The envelope of the attempt in doubt.
    pub envelope: u32,
    /// The channels of its message.
    pub chain: Chain,
    /// When that attempt came to be in doubt; an intent without an outcome may have left at any time since it began.
    pub since: Timestamp,
    /// What was asked so far.
    pub history: Option<AskedRow>,
    /// Whether it is labelled as not found already.
    pub not_found: bool,
    /// Whether it is unresolved already; only proof changes that.
    pub unresolved: bool,
}

/// What the answers about a probe and a message that was surely taken say of all the others beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusTrust {
    /// It knows what was taken and denies what was never sent: its word counts.
    Full,
    /// It denies what was never sent, and nothing that was taken is there to compare: only what it knows counts.
    KnownOnly,
    /// Its answers prove nothing.
    Blind,
}

impl StatusTrust {
    /// What the two answers show; `reference` is about a message that was surely taken, if there is one.
    #[must_use]
    pub(super) fn from_answers(probe: &StatusAnswer, reference: Option<&StatusAnswer>) -> Self {
        match (probe, reference) {
            (StatusAnswer::Denied(_), Some(StatusAnswer::Known { .. })) => StatusTrust::Full,
            (StatusAnswer::Denied(_), None | Some(StatusAnswer::Unclear(_))) => StatusTrust::KnownOnly,
            (StatusAnswer::Denied(_), Some(StatusAnswer::Denied(_)))
            | (StatusAnswer::Known { .. } | StatusAnswer::Unclear(_), _) => StatusTrust::Blind,
        }
    }
}

/// How long a denial has to wait before it counts: after the sending, and after the one before.
///
/// `lag` is how late the gateway was seen to know a message.
#[must_use]
pub fn denial_wait(endpoint: Endpoint, lag: Option<Duration>) -> Duration {
    let least = match endpoint {
        Endpoint::Sync => Duration::from_secs(60),
        Endpoint::Async => Duration::from_secs(600),
    };
    least.max(lag.unwrap_or_default() * 10)
}

/// What one answer comes to: the question as it is kept, and what was learnt, if something was.
#[must_use]
pub(super) fn evaluate_answer(
    doubt: &MessageInDoubt,
    sight: StatusTrust,
    answer: &StatusAnswer,
    patience: Duration,
    now: Timestamp,
) -> (AskedRow, Option<RowChange>) {
    let mut question = next_question(doubt, answer, now);
    if let (StatusAnswer::Known { status, msg_id, channel, .. }, StatusTrust::Full | StatusTrust::KnownOnly) =
        (answer, sight)
    {
        let (status, msg_id, channel) = (status.name().to_owned(), msg_id.clone(), channel.clone());
        return (question, Some(RowChange::Found { status, msg_id, channel }));
    }
    if sight == StatusTrust::Blind && !matches!(answer, StatusAnswer::Unclear(_)) {
        question.answer = format!(
            "{}; this proves nothing, because the gateway gives the same response for sent and unsent messages",
            question.answer
        );
    }
    if matches!((answer, sight), (StatusAnswer::Denied(_), StatusTrust::Full)) {
        let before = question.negative_at.unwrap_or(doubt.since);
        if elapsed(before, now) >= patience {
            question.negatives += 1;
            question.negative_at = Some(now);
        }
    }
    let change = if doubt.unresolved {
        None
    } else if question.negatives >= DENIALS_NEEDED && !doubt.not_found {
        Some(RowChange::NotFound { asked: question.asked })
    } else if question.asked >= MAX_QUESTIONS || elapsed(doubt.since, now) >= MAX_AGE {
        Some(RowChange::Unresolved { asked: question.asked })
    } else {
        None
    };
    (question, change)
}

/// The question with one more answer.
fn next_question(doubt: &MessageInDoubt, answer: &StatusAnswer, now: Timestamp) -> AskedRow {
    let answer = match answer {
        StatusAnswer::Known { status, .. } => format!("status {status}"),
        StatusAnswer::Denied(words) if words.is_empty() => "message unknown".to_owned(),
        StatusAnswer::Denied(words) => words.clone(),
        StatusAnswer::Unclear(why) => format!("no usable response: {why}"),
    };
    match &doubt.history {
        Some(known) => AskedRow { asked: known.asked + 1, last_at: now, answer, ..known.clone() },
        None => AskedRow {
            row: doubt.row,
            envelope: doubt.envelope,
            asked: 1,
            negatives: 0,
            first_at: now,
            last_at: now,
            negative_at: None,
            answer,
        },
    }
}

/// The time from one instant to a later one; none if the clock went back.
fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::domain::{GatewayMessageId, Status};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn known() -> StatusAnswer {
        StatusAnswer::Known {
            status: Status::Delivered,
            msg_id: Some(GatewayMessageId::Number(5)),
            channel: None,
            updated: None,
        }
    }

    fn denied() -> StatusAnswer {
        StatusAnswer::Denied("no such message".into())
    }

    fn unclear() -> StatusAnswer {
        StatusAnswer::Unclear("HTTP 502".into())
    }

    fn doubt() -> MessageInDoubt {
        let (row, id) = (Row::new(7), MessageId::new(7).unwrap());
        MessageInDoubt {
            row,
            id,
            envelope: 3,
            chain: Chain::UNKNOWN,
            since: Timestamp::UNIX_EPOCH,
            history: None,
            not_found: false,
            unresolved: false,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    /// Asks again and again, at these seconds, and gives back what was learnt at each.
    fn ask_repeatedly(
        mut doubt: MessageInDoubt,
        sight: StatusTrust,
        answers: &[(i64, StatusAnswer)],
    ) -> (MessageInDoubt, Vec<Option<RowChange>>) {
        let mut learnt = Vec::new();
        for (second, answer) in answers {
            let (question, change) = evaluate_answer(&doubt, sight, answer, PATIENCE, at(*second));
            doubt.history = Some(question);
            doubt.not_found |= matches!(change, Some(RowChange::NotFound { .. }));
            doubt.unresolved |= matches!(change, Some(RowChange::Unresolved { .. }));
            learnt.push(change);
        }
        (doubt, learnt)
    }

    #[test]
    fn gateway_is_trusted_if_it_knows_sent_messages() {
        for (probe, reference, sight) in [
            (denied(), Some(known()), StatusTrust::Full),
            (denied(), None, StatusTrust::KnownOnly),
            (denied(), Some(unclear()), StatusTrust::KnownOnly),
            (denied(), Some(denied()), StatusTrust::Blind),
            (known(), Some(known()), StatusTrust::Blind),
            (known(), None, StatusTrust::Blind),
            (unclear(), Some(known()), StatusTrust::Blind),
        ] {
            assert_eq!(StatusTrust::from_answers(&probe, reference.as_ref()), sight, "{probe:?} {reference:?}");
        }
    }

    #[test]
    fn known_status_is_proof_unless_the_gateway_is_blind() {
        let found =
            RowChange::Found { status: "DELIVERED".into(), msg_id: Some(GatewayMessageId::Number(5)), channel: None };
        for (sight, change) in [
            (StatusTrust::Full, Some(found.clone())),
            (StatusTrust::KnownOnly, Some(found)),
            (StatusTrust::Blind, None),
        ] {
            assert_eq!(ask_repeatedly(doubt(), sight, &[(1, known())]).1, [change], "{sight:?}");
        }
    }

    #[test]
    fn three_denials_after_waits_make_a_row_not_found() {
        let denials = |seconds: &[i64]| seconds.iter().map(|second| (*second, denied())).collect::<Vec<_>>();
        let not_found = |asked| Some(RowChange::NotFound { asked });
        let (_, learnt) = ask_repeatedly(doubt(), StatusTrust::Full, &denials(&[60, 120, 180, 240]));
        assert_eq!(learnt, [None, None, not_found(3), None], "labelled once");
        let (_, learnt) = ask_repeatedly(doubt(), StatusTrust::Full, &denials(&[1, 5, 20, 60, 61, 119, 120, 179, 180]));
        assert_eq!(learnt.iter().flatten().count(), 1);
        assert_eq!(learnt.last(), Some(&not_found(9)), "what comes too early does not count");
        for sight in [StatusTrust::KnownOnly, StatusTrust::Blind] {
            let (doubt, learnt) = ask_repeatedly(doubt(), sight, &denials(&[60, 120, 180, 240, 300]));
            assert_eq!(learnt, vec![None; 5], "{sight:?}");
            assert_eq!(doubt.history.map(|question| question.negatives), Some(0));
        }
    }

    #[test]
    fn row_is_unresolved_after_twenty_questions_or_a_day() {
        let answers: Vec<_> = (1..=21).map(|second| (second, unclear())).collect();
        let (_, learnt) = ask_repeatedly(doubt(), StatusTrust::Blind, &answers);
        assert_eq!(learnt[18..], [None, Some(RowChange::Unresolved { asked: 20 }), None], "labelled once");
        let (_, learnt) = ask_repeatedly(doubt(), StatusTrust::Full, &[(86_399, unclear()), (86_400, unclear())]);
        assert_eq!(learnt, [None, Some(RowChange::Unresolved { asked: 2 })]);
        let late: Vec<_> = [86_400, 90_000, 90_060, 90_120, 90_180].map(|second| (second, denied())).into();
        let (_, learnt) = ask_repeatedly(doubt(), StatusTrust::Full, &[&late[..], &[(90_240, known())]].concat());
        let found =
            RowChange::Found { status: "DELIVERED".into(), msg_id: Some(GatewayMessageId::Number(5)), channel: None };
        assert_eq!(learnt[1..], [None, None, None, None, Some(found)], "only proof changes it");
    }

    #[test]
    fn clock_set_back_makes_nothing_older() {
        let (_, learnt) = ask_repeatedly(
            doubt(),
            StatusTrust::Full,
            &[(-90_000, denied()), (-180_000, denied()), (-270_000, denied())],
        );
        assert_eq!(learnt, [None, None, None]);
    }

    #[test]
    fn slow_gateway_gets_ten_times_its_observed_lag() {
        assert_eq!(denial_wait(Endpoint::Sync, None), Duration::from_secs(60));
        assert_eq!(denial_wait(Endpoint::Async, Some(Duration::from_secs(2))), Duration::from_secs(600));
        assert_eq!(denial_wait(Endpoint::Sync, Some(Duration::from_secs(30))), Duration::from_secs(300));
    }
}
