//! What state a row is in: the one answer, from its attempts, what was learnt and decided about it, and what its run
//! is doing. Pure.
//!
//! Whoever counts, shows, guards or sends asks here, so that no two of them can disagree.

use roaring::RoaringBitmap;

use super::{
    CANCELLED, EnvelopeRecord, Judgement, KeptReceipt, Ledger, LedgerError, Progress, REPLACED, RowEvents, Run,
    SentRow, State,
};
use crate::domain::{Chain, Outcome, Row};

/// What a run is doing, as far as the states of its rows depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// A process is sending it: an intent alone is on its way.
    Sending,
    /// Nobody is sending it now: an intent alone is doubt.
    #[default]
    Idle,
    /// It is finished: what it did not send, it gave up.
    Over,
    /// It was stopped for good: what it did not send is skipped.
    Cancelled,
    /// Another run replaced it: its unsent rows are skipped.
    Replaced,
}

/// An attempt to send a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its envelope.
    pub envelope: u32,
    /// The state that it alone came to.
    pub state: State,
    /// The channels of its message, as it was sent.
    pub chain: Chain,
}

/// What is being done about the rows of a run: some processes may have some of them.
#[derive(Clone, Debug, Default)]
pub struct Activities {
    run: Activity,
    /// The rows that some process has, whatever the run is doing.
    in_hand: RoaringBitmap,
    /// The newest envelope before that was looked at: a later one is of a process that had its rows since.
    newest: Option<u32>,
}

impl Activities {
    /// What is being done about a run now; `owned` tells whether a process is sending it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn read(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let activities = Self::from(Activity::of(run.progress, owned));
        if !run.shared && run.sharing.is_none() {
            return Ok(activities);
        }
        let newest = ledger.envelope_summaries(run.key).await?.last().map_or(0, |summary| summary.envelope);
        Ok(Self { in_hand: ledger.rows_in_hand(run.key).await?, newest: Some(newest), ..activities })
    }

    /// What is being done about the run besides the rows that some process has.
    #[must_use]
    pub fn of_run(&self) -> Activity {
        self.run
    }

    /// What is being done about a row.
    #[must_use]
    pub fn of(&self, row: Row) -> Activity {
        if self.in_hand.contains(row.get()) { Activity::Sending } else { self.run }
    }

    /// The attempt of an envelope to send one of its rows, with its outcome; nothing for an intent alone.
    #[must_use]
    pub fn attempt(&self, envelope: &EnvelopeRecord, sent: &SentRow, outcome: Option<&Outcome>) -> Attempt {
        self.attempt_of(sent.row, (envelope.envelope, envelope.chain(sent)), outcome)
    }

    /// The same for the number of an envelope and the channels of the message.
    #[must_use]
    pub fn attempt_of(&self, row: Row, (envelope, chain): (u32, Chain), outcome: Option<&Outcome>) -> Attempt {
        let since = self.newest.is_some_and(|newest| envelope > newest);
        let activity = if since { Activity::Sending } else { self.of(row) };
        activity.attempt((envelope, chain), outcome)
    }
}

impl From<Activity> for Activities {
    fn from(run: Activity) -> Self {
        Self { run, in_hand: RoaringBitmap::new(), newest: None }
    }
}

impl Activity {
    /// What a run does that stands there; `owned` tells whether a process has it.
    #[must_use]
    pub fn of(progress: Progress, owned: bool) -> Self {
        match progress {
            Progress::Finished => Activity::Over,
            Progress::Cancelled => Activity::Cancelled,
            Progress::Open | Progress::Replaced if owned => Activity::Sending,
            Progress::Open => Activity::Idle,
            Progress::Replaced => Activity::Replaced,
        }
    }

    /// An attempt of an envelope on these channels with its outcome; nothing for an intent alone.
    #[must_use]
    pub fn attempt(self, (envelope, chain): (u32, Chain), outcome: Option<&Outcome>) -> Attempt {
        let state = match (outcome, self) {
            (Some(outcome), _) => State::of(outcome),
            (None, Activity::Sending) => State::Sending,
            (None, Activity::Idle | Activity::Over | Activity::Cancelled | Activity::Replaced) => State::InDoubt,
        };
        Attempt { envelope, state, chain }
    }

    /// What is known of a row by its attempts, and by the events and receipts since.
    #[must_use]
    pub fn attempted<'e>(
        self,
        row: Row,
        attempts: &[Attempt],
        events: &'e RowEvents,
        receipts: &'e [KeptReceipt],
    ) -> Judgement<'e> {
        let judgement = events.judge(row, attempts, receipts);
        Judgement { state: self.ends(judgement.state), ..judgement }
    }

    /// The state of a row whose only attempt had this outcome, and about which nothing else is known.
    #[must_use]
    pub fn once(self, outcome: Option<&Outcome>) -> State {
        self.ends(self.attempt((1, Chain::UNKNOWN), outcome).state)
    }

    /// The state of a row without an attempt: it is left out, or waits.
    #[must_use]
    pub fn unattempted(self, left_out: Option<State>) -> State {
        self.ends(left_out.unwrap_or(State::Planned))
    }

    /// The state of a row whose records leave it in this one.
    pub(super) fn ends(self, recorded: State) -> State {
        match (self, recorded) {
            (Activity::Over, State::Planned) => State::NotSent,
            (Activity::Cancelled | Activity::Replaced, State::Planned) => State::Skipped,
            _ => recorded,
        }
    }

    /// The reason for a row whose run ended before it was sent.
    #[must_use]
    pub fn skip_reason(self) -> &'static str {
        match self {
            Activity::Replaced => REPLACED,
            Activity::Sending | Activity::Idle | Activity::Over | Activity::Cancelled => CANCELLED,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::{OperationKind, Phone};
    use crate::ledger::{Author, Change, LeftOut, RowEvent, RowStates};

    const ACTIVITIES: [Activity; 4] = [Activity::Sending, Activity::Idle, Activity::Over, Activity::Cancelled];
    const ROW: Row = Row::FIRST;

    fn sent(row: Row) -> SentRow {
        let to = Phone::new(380_501_234_567).unwrap().into();
        SentRow { row, to, digest: [0; 8], chain: Chain::UNKNOWN }
    }

    fn outcomes() -> [Option<Outcome>; 6] {
        [
            None,
            Some(Outcome::Accepted { msg_id: None, parts: None, answer: None }),
            Some(Outcome::Queued { request_id: "r".into() }),
            Some(Outcome::Rejected { error: "No route".into() }),
            Some(Outcome::NotSent { reason: "refused".into() }),
            Some(Outcome::InDoubt { reason: "silence".into() }),
        ]
    }

    fn changes() -> [Change; 8] {
        let (by, why) = (Author::Person("olena".into()), None);
        let found = |status: &str| Change::Found { status: status.into(), msg_id: None, channel: None };
        [
            found("DELIVERED"),
            found("REJECTED"),
            Change::NotFound { asked: 3 },
            Change::Unresolved { asked: 20 },
            Change::AssumedSent { by: by.clone(), why: why.clone() },
            Change::NotSent { by: by.clone(), why: why.clone() },
            Change::SendAgain { by: by.clone(), why },
            Change::Retry { by, order: 1 },
        ]
    }

    /// No event, each event, and each pair of them, about either of two envelopes.
    fn events() -> Vec<Vec<RowEvent>> {
        let event = |change, envelope| RowEvent { row: ROW, envelope, at: Timestamp::UNIX_EPOCH, change };
        let single: Vec<RowEvent> =
            changes().into_iter().flat_map(|change| [1, 2].map(|envelope| event(change.clone(), envelope))).collect();
        let pairs = single.iter().flat_map(|first| single.iter().map(|second| vec![first.clone(), second.clone()]));
        [vec![]].into_iter().chain(single.iter().map(|event| vec![event.clone()])).chain(pairs).collect()
    }

    /// The outcomes of one attempt or two; the first of two was settled, or there would be no second.
    fn attempts() -> Vec<Vec<Option<Outcome>>> {
        let settled = outcomes().into_iter().filter(Option::is_some);
        let twice = settled.flat_map(|first| outcomes().map(|second| vec![first.clone(), second]));
        outcomes().map(|only| vec![only]).into_iter().chain(twice).collect()
    }

    /// The states of a row with these attempts and events: while it is sent, while nobody sends it, once that is over,
    /// and once it was stopped for good.
    fn states(attempts: &[Option<Outcome>], events: &RowEvents) -> [State; 4] {
        ACTIVITIES.map(|activity| {
            let attempt = |(envelope, outcome): (u32, &Option<Outcome>)| {
                activity.attempt((envelope, OperationKind::Sms.into()), outcome.as_ref())
            };
            let attempts: Vec<Attempt> = (1..).zip(attempts).map(attempt).collect();
            activity.attempted(ROW, &attempts, events, &[]).state
        })
    }

    fn everything(check: impl Fn(&[Option<Outcome>], &[RowEvent], [State; 4])) {
        let (attempts, events) = (attempts(), events());
        assert!(attempts.len() * events.len() > 9_000, "that is not everything");
        for events in &events {
            let folded = RowEvents::from(events.clone());
            attempts.iter().for_each(|attempts| check(attempts, events, states(attempts, &folded)));
        }
    }

    #[test]
    fn without_events_a_row_is_what_its_last_attempt_came_to() {
        let expected = [
            [State::Sending, State::InDoubt, State::InDoubt, State::InDoubt],
            [State::Accepted; 4],
            [State::Queued; 4],
            [State::Rejected; 4],
            [State::Planned, State::Planned, State::NotSent, State::Skipped],
            [State::InDoubt; 4],
        ];
        for (outcome, expected) in outcomes().into_iter().zip(expected) {
            for before in outcomes() {
                assert_eq!(states(&[before, outcome.clone()], &RowEvents::default()), expected, "{outcome:?}");
            }
        }
        let left_out = [None, Some(State::Skipped), Some(State::Invalid)];
        let told = left_out.map(|left_out| ACTIVITIES.map(|activity| activity.unattempted(left_out)));
        let waits = [State::Planned, State::Planned, State::NotSent, State::Skipped];
        assert_eq!(told, [waits, [State::Skipped; 4], [State::Invalid; 4]]);
    }

    #[test]
    fn an_intent_on_its_way_is_sending_whatever_was_decided_until_there_is_proof() {
        everything(|attempts, events, [sending, idle, ..]| {
            if attempts.last() != Some(&None) {
                assert_eq!(sending, idle, "{attempts:?} {events:?}: only an intent alone depends on who has the run");
                return;
            }
            let about = |event: &RowEvent| event.envelope as usize == attempts.len();
            let proven = events.iter().any(|event| about(event) && matches!(event.change, Change::Found { .. }));
            // Once it is known to have failed, a new message can be ordered.
            let ends = [State::Accepted, State::Failed, State::Planned];
            let expected = if proven { ends } else { [State::Sending; 3] };
            assert!(expected.contains(&sending), "{attempts:?} {events:?}: {sending}");
        });
    }

    #[test]
    fn what_a_finished_run_left_planned_it_gave_up_and_one_that_was_cancelled_skips_it_and_nothing_else() {
        everything(|attempts, events, [_, idle, over, cancelled]| {
            let planned = idle == State::Planned;
            let expected = if planned { [State::NotSent, State::Skipped] } else { [idle; 2] };
            assert_eq!([over, cancelled], expected, "{attempts:?} {events:?}");
        });
    }

    #[test]
    fn replaced_run_skips_the_rows_that_it_did_not_send() {
        for state in State::ALL {
            let expected = if state == State::Planned { State::Skipped } else { state };
            assert_eq!(Activity::Replaced.ends(state), expected, "{state}");
        }
        let replaced = Activity::of(Progress::Replaced, false);
        assert_eq!((replaced, replaced.skip_reason()), (Activity::Replaced, REPLACED));
        assert_eq!(replaced.once(None), State::InDoubt, "nobody has its requests any more");
    }

    #[test]
    fn events_about_an_earlier_attempt_leave_the_state_alone() {
        everything(|attempts, events, told| {
            let last = attempts.len();
            let about: Vec<RowEvent> = events.iter().filter(|event| event.envelope as usize == last).cloned().collect();
            assert_eq!(states(attempts, &about.into()), told, "{attempts:?} {events:?}");
        });
    }

    #[test]
    fn whoever_has_a_message_by_the_state_of_a_row_is_guarded() {
        everything(|attempts, events, told| {
            let folded = RowEvents::from(events.to_vec());
            let all: Vec<Attempt> = (1..)
                .zip(attempts)
                .map(|(envelope, outcome)| {
                    Activity::Idle.attempt((envelope, OperationKind::Sms.into()), outcome.as_ref())
                })
                .collect();
            let guarded = folded.has_message(ROW, &all, &[]);
            // Nothing is known yet of an attempt that is on its way.
            let known = events.iter().any(|event| event.envelope as usize == attempts.len());
            let told = if known { &told[1..] } else { &told[..] };
            assert!(guarded || !told.iter().any(|state| state.has_operation()), "{attempts:?} {events:?}: {told:?}");
            let any = all.iter().any(|attempt| attempt.state.has_operation());
            assert!(
                !events.is_empty() || guarded == any,
                "{attempts:?}: without events any attempt that went out guards"
            );
        });
    }

    #[test]
    fn an_intent_of_a_shared_run_is_doubt_only_where_nobody_had_its_row_after_it_was_there() {
        let in_hand = RoaringBitmap::from([3]);
        let activities = Activities { run: Activity::Over, in_hand, newest: Some(7) };
        let accepted = outcomes()[1].clone();
        for (row, envelope, outcome, expected) in [
            (2, 6, None, State::InDoubt),
            (3, 7, None, State::Sending),
            // It was begun after it was looked who has rows.
            (4, 8, None, State::Sending),
            (2, 6, accepted.as_ref(), State::Accepted),
            (4, 8, accepted.as_ref(), State::Accepted),
        ] {
            let record = EnvelopeRecord {
                envelope,
                kind: OperationKind::Sms,
                begun_at: Timestamp::UNIX_EPOCH,
                rows: vec![sent(Row::new(row))],
                costs: Vec::new(),
                settled: None,
            };
            let attempt = activities.attempt(&record, &record.rows[0], outcome);
            assert_eq!((attempt.envelope, attempt.state), (envelope, expected), "row {row} {outcome:?}");
        }
    }

    #[test]
    fn the_states_and_the_counts_of_a_run_are_those_of_its_rows() {
        everything(|attempts, events, told| {
            for (activity, told) in ACTIVITIES.into_iter().zip(told) {
                let mut states = RowStates::new(activity, events.to_vec().into());
                for (envelope, outcome) in (1..).zip(attempts) {
                    let rows = vec![sent(ROW)];
                    let settled = outcome.clone().map(|outcome| (Timestamp::UNIX_EPOCH, vec![outcome]));
                    states.add(&EnvelopeRecord {
                        envelope,
                        kind: OperationKind::Sms,
                        begun_at: Timestamp::UNIX_EPOCH,
                        rows,
                        costs: Vec::new(),
                        settled,
                    });
                }
                let none = LeftOut::default();
                assert_eq!(states.of(ROW, &none), told, "{attempts:?} {events:?} {activity:?}");
                let mut expected = crate::ledger::StateCounts::default();
                [told, activity.unattempted(None)].into_iter().for_each(|state| expected.add(state, 1));
                assert_eq!(states.counts(2, &none), expected, "{attempts:?} {events:?} {activity:?}");
            }
        });
    }
}
