//! Asking about rows in doubt: what an answer proves, and when there is nothing left to ask. Pure.
//!
//! The gateway is an oracle that may be blind, late or lying. It is believed only as far as it can
//! be tested: a probe that was never sent has to be denied, and a message that was surely taken has
//! to be known.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::{Chain, Endpoint, MessageId, Row};
use crate::gateway::StatusAnswer;
use crate::ledger::{AskedRow, Change};

/// The most questions about one row.
const MOST_QUESTIONS: u32 = 20;
/// How long after the sending a row is asked about.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// How many denials, each after its own wait, make a row `not found`.
const DENIALS: u32 = 3;

/// A row in doubt, and what was asked about it so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
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
    pub question: Option<AskedRow>,
    /// Whether it is labelled as not found already.
    pub not_found: bool,
    /// Whether it is unresolved already; only proof changes that.
    pub unresolved: bool,
}

/// What the answers about a probe and a message that was surely taken say of all the others beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// It knows what was taken and denies what was never sent: its word counts.
    Sees,
    /// It denies what was never sent, and nothing that was taken is there to compare: only what it knows counts.
    KnowsOnly,
    /// Its answers prove nothing.
    Blind,
}

impl Sight {
    /// What the two answers show; `reference` is about a message that was surely taken, if there is one.
    #[must_use]
    pub(super) fn of(probe: &StatusAnswer, reference: Option<&StatusAnswer>) -> Self {
        match (probe, reference) {
            (StatusAnswer::Denied(_), Some(StatusAnswer::Known { .. })) => Sight::Sees,
            (StatusAnswer::Denied(_), None | Some(StatusAnswer::Unclear(_))) => Sight::KnowsOnly,
            (StatusAnswer::Denied(_), Some(StatusAnswer::Denied(_)))
            | (StatusAnswer::Known { .. } | StatusAnswer::Unclear(_), _) => Sight::Blind,
        }
    }
}

/// How long a denial has to wait before it counts: after the sending, and after the one before.
///
/// `lag` is how late the gateway was seen to know a message.
#[must_use]
pub fn patience(endpoint: Endpoint, lag: Option<Duration>) -> Duration {
    let least = match endpoint {
        Endpoint::Sync => Duration::from_secs(60),
        Endpoint::Async => Duration::from_secs(600),
    };
    least.max(lag.unwrap_or_default() * 10)
}

/// What one answer comes to: the question as it is kept, and what was learnt, if something was.
#[must_use]
pub(super) fn conclude(
    doubt: &Doubt,
    sight: Sight,
    answer: &StatusAnswer,
    patience: Duration,
    now: Timestamp,
) -> (AskedRow, Option<Change>) {
    let mut question = asked(doubt, answer, now);
    if let (StatusAnswer::Known { status, msg_id, channel, .. }, Sight::Sees | Sight::KnowsOnly) = (answer, sight) {
        let (status, msg_id, channel) = (status.name().to_owned(), msg_id.clone(), channel.clone());
        return (question, Some(Change::Found { status, msg_id, channel }));
    }
    if sight == Sight::Blind && !matches!(answer, StatusAnswer::Unclear(_)) {
        question.answer = format!(
            "{}; this proves nothing, because the gateway gives the same response for sent and unsent messages",
            question.answer
        );
    }
    if matches!((answer, sight), (StatusAnswer::Denied(_), Sight::Sees)) {
        let before = question.negative_at.unwrap_or(doubt.since);
        if elapsed(before, now) >= patience {
            question.negatives += 1;
            question.negative_at = Some(now);
        }
    }
    let change = if doubt.unresolved {
        None
    } else if question.negatives >= DENIALS && !doubt.not_found {
        Some(Change::NotFound { asked: question.asked })
    } else if question.asked >= MOST_QUESTIONS || elapsed(doubt.since, now) >= LONGEST {
        Some(Change::Unresolved { asked: question.asked })
    } else {
        None
    };
    (question, change)
}

/// The question with one more answer.
fn asked(doubt: &Doubt, answer: &StatusAnswer, now: Timestamp) -> AskedRow {
    let answer = match answer {
        StatusAnswer::Known { status, .. } => format!("status {status}"),
        StatusAnswer::Denied(words) if words.is_empty() => "message unknown".to_owned(),
        StatusAnswer::Denied(words) => words.clone(),
        StatusAnswer::Unclear(why) => format!("no usable response: {why}"),
    };
    match &doubt.question {
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
    use crate::domain::{MsgId, Status};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn known() -> StatusAnswer {
        StatusAnswer::Known { status: Status::Delivered, msg_id: Some(MsgId::Number(5)), channel: None, updated: None }
    }

    fn denied() -> StatusAnswer {
        StatusAnswer::Denied("no such message".into())
    }

    fn unclear() -> StatusAnswer {
        StatusAnswer::Unclear("HTTP 502".into())
    }

    fn doubt() -> Doubt {
        let (row, id) = (Row::new(7), MessageId::new(7).unwrap());
        Doubt {
            row,
            id,
            envelope: 3,
            chain: Chain::UNKNOWN,
            since: Timestamp::UNIX_EPOCH,
            question: None,
            not_found: false,
            unresolved: false,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    /// Asks again and again, at these seconds, and gives back what was learnt at each.
    fn ask(mut doubt: Doubt, sight: Sight, answers: &[(i64, StatusAnswer)]) -> (Doubt, Vec<Option<Change>>) {
        let mut learnt = Vec::new();
        for (second, answer) in answers {
            let (question, change) = conclude(&doubt, sight, answer, PATIENCE, at(*second));
            doubt.question = Some(question);
            doubt.not_found |= matches!(change, Some(Change::NotFound { .. }));
            doubt.unresolved |= matches!(change, Some(Change::Unresolved { .. }));
            learnt.push(change);
        }
        (doubt, learnt)
    }

    #[test]
    fn the_gateway_is_believed_as_far_as_it_tells_the_sent_from_the_never_sent() {
        for (probe, reference, sight) in [
            (denied(), Some(known()), Sight::Sees),
            (denied(), None, Sight::KnowsOnly),
            (denied(), Some(unclear()), Sight::KnowsOnly),
            (denied(), Some(denied()), Sight::Blind),
            (known(), Some(known()), Sight::Blind),
            (known(), None, Sight::Blind),
            (unclear(), Some(known()), Sight::Blind),
        ] {
            assert_eq!(Sight::of(&probe, reference.as_ref()), sight, "{probe:?} {reference:?}");
        }
    }

    #[test]
    fn what_the_gateway_knows_is_proof_at_once_unless_it_is_blind() {
        let found = Change::Found { status: "DELIVERED".into(), msg_id: Some(MsgId::Number(5)), channel: None };
        for (sight, change) in
            [(Sight::Sees, Some(found.clone())), (Sight::KnowsOnly, Some(found)), (Sight::Blind, None)]
        {
            assert_eq!(ask(doubt(), sight, &[(1, known())]).1, [change], "{sight:?}");
        }
    }

    #[test]
    fn three_denials_over_three_waits_make_a_row_not_found_and_no_fewer() {
        let denials = |seconds: &[i64]| seconds.iter().map(|second| (*second, denied())).collect::<Vec<_>>();
        let not_found = |asked| Some(Change::NotFound { asked });
        let (_, learnt) = ask(doubt(), Sight::Sees, &denials(&[60, 120, 180, 240]));
        assert_eq!(learnt, [None, None, not_found(3), None], "labelled once");
        let (_, learnt) = ask(doubt(), Sight::Sees, &denials(&[1, 5, 20, 60, 61, 119, 120, 179, 180]));
        assert_eq!(learnt.iter().flatten().count(), 1);
        assert_eq!(learnt.last(), Some(&not_found(9)), "what comes too early does not count");
        for sight in [Sight::KnowsOnly, Sight::Blind] {
            let (doubt, learnt) = ask(doubt(), sight, &denials(&[60, 120, 180, 240, 300]));
            assert_eq!(learnt, vec![None; 5], "{sight:?}");
            assert_eq!(doubt.question.map(|question| question.negatives), Some(0));
        }
    }

    #[test]
    fn after_twenty_questions_or_a_day_a_row_is_unresolved() {
        let answers: Vec<_> = (1..=21).map(|second| (second, unclear())).collect();
        let (_, learnt) = ask(doubt(), Sight::Blind, &answers);
        assert_eq!(learnt[18..], [None, Some(Change::Unresolved { asked: 20 }), None], "labelled once");
        let (_, learnt) = ask(doubt(), Sight::Sees, &[(86_399, unclear()), (86_400, unclear())]);
        assert_eq!(learnt, [None, Some(Change::Unresolved { asked: 2 })]);
        let late: Vec<_> = [86_400, 90_000, 90_060, 90_120, 90_180].map(|second| (second, denied())).into();
        let (_, learnt) = ask(doubt(), Sight::Sees, &[&late[..], &[(90_240, known())]].concat());
        let found = Change::Found { status: "DELIVERED".into(), msg_id: Some(MsgId::Number(5)), channel: None };
        assert_eq!(learnt[1..], [None, None, None, None, Some(found)], "only proof changes it");
    }

    #[test]
    fn a_clock_that_went_back_makes_nothing_older() {
        let (_, learnt) = ask(doubt(), Sight::Sees, &[(-90_000, denied()), (-180_000, denied()), (-270_000, denied())]);
        assert_eq!(learnt, [None, None, None]);
    }

    #[test]
    fn a_slow_gateway_is_given_ten_times_as_long_as_it_was_seen_to_need() {
        assert_eq!(patience(Endpoint::Sync, None), Duration::from_secs(60));
        assert_eq!(patience(Endpoint::Async, Some(Duration::from_secs(2))), Duration::from_secs(600));
        assert_eq!(patience(Endpoint::Sync, Some(Duration::from_secs(30))), Duration::from_secs(300));
    }
}
