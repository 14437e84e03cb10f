//! What state a row is in: the one answer, from its attempts, what was learnt and decided about it, and what its run
//! is doing. Pure.
//!
//! Whoever counts, shows, guards or sends asks here, so that no two of them can disagree.

use roaring::RoaringBitmap;

use super::{
    CANCELLED, EnvelopeRecord, Judgement, KeptReceipt, Ledger, LedgerError, REPLACED, RowEvents, RowState, Run,
    RunProgress, SentRow,
};
use crate::domain::{Chain, OperationOutcome, Row};

/// What a run is doing, as far as the states of its rows depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunActivity {
    /// A process is sending it: an intent alone is on its way.
    Sending,
    /// Nobody is sending it now: an intent alone is doubt.
    #[default]
    Idle,
    /// It is finished: what it did not send, it gave up.
    Finished,
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
    pub state: RowState,
    /// The channels of its message, as it was sent.
    pub chain: Chain,
}

/// What is being done about the rows of a run: some processes may have some of them.
#[derive(Clone, Debug, Default)]
pub struct RowActivities {
    run: RunActivity,
    /// The rows that some process has, whatever the run is doing.
    claimed: RoaringBitmap,
    /// The newest envelope before that was looked at: a later one is of a process that had its rows since.
    newest_envelope: Option<u32>,
}

impl RowActivities {
    /// What is being done about a run now; `owned` tells whether a process is sending it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let activities = Self::from(RunActivity::from_progress(run.progress, owned));
        if !run.shared && run.sharding.is_none() {
            return Ok(activities);
        }
        let newest = ledger.list_envelope_summaries(run.key).await?.last().map_or(0, |summary| summary.envelope);
        Ok(Self { claimed: ledger.load_claimed_rows(run.key).await?, newest_envelope: Some(newest), ..activities })
    }

    /// What is being done about the run besides the rows that some process has.
    #[must_use]
    pub fn run_activity(&self) -> RunActivity {
        self.run
    }

    /// What is being done about a row.
    #[must_use]
    pub fn row_activity(&self, row: Row) -> RunActivity {
        if self.claimed.contains(row.get()) { RunActivity::Sending } else { self.run }
    }

    /// The attempt of an envelope to send one of its rows, with its outcome; nothing for an intent alone.
    #[must_use]
    pub fn build_attempt(
        &self,
        envelope: &EnvelopeRecord,
        sent: &SentRow,
        outcome: Option<&OperationOutcome>,
    ) -> Attempt {
        self.build_row_attempt(sent.row, (envelope.envelope, envelope.chain(sent)), outcome)
    }

    /// The same for the number of an envelope and the channels of the message.
    #[must_use]
    pub fn build_row_attempt(
        &self,
        row: Row,
        (envelope, chain): (u32, Chain),
        outcome: Option<&OperationOutcome>,
    ) -> Attempt {
        let since = self.newest_envelope.is_some_and(|newest| envelope > newest);
        let activity = if since { RunActivity::Sending } else { self.row_activity(row) };
        activity.build_attempt((envelope, chain), outcome)
    }
}

impl From<RunActivity> for RowActivities {
    fn from(run: RunActivity) -> Self {
        Self { run, claimed: RoaringBitmap::new(), newest_envelope: None }
    }
}

impl RunActivity {
    /// What a run does that stands there; `owned` tells whether a process has it.
    #[must_use]
    pub fn from_progress(progress: RunProgress, owned: bool) -> Self {
        match progress {
            RunProgress::Finished => RunActivity::Finished,
            RunProgress::Cancelled => RunActivity::Cancelled,
            RunProgress::Open | RunProgress::Replaced if owned => RunActivity::Sending,
            RunProgress::Open => RunActivity::Idle,
            RunProgress::Replaced => RunActivity::Replaced,
        }
    }

    /// An attempt of an envelope on these channels with its outcome; nothing for an intent alone.
    #[must_use]
    pub fn build_attempt(self, (envelope, chain): (u32, Chain), outcome: Option<&OperationOutcome>) -> Attempt {
        let state = match (outcome, self) {
            (Some(outcome), _) => RowState::from_outcome(outcome),
            (None, RunActivity::Sending) => RowState::Sending,
            (None, RunActivity::Idle | RunActivity::Finished | RunActivity::Cancelled | RunActivity::Replaced) => {
                RowState::InDoubt
            }
        };
        Attempt { envelope, state, chain }
    }

    /// What is known of a row by its attempts, and by the events and receipts since.
    #[must_use]
    pub fn judge_row<'e>(
        self,
        row: Row,
        attempts: &[Attempt],
        events: &'e RowEvents,
        receipts: &'e [KeptReceipt],
    ) -> Judgement<'e> {
        let judgement = events.judge_row(row, attempts, receipts);
        Judgement { state: self.final_state(judgement.state), ..judgement }
    }

    /// The state of a row whose only attempt had this outcome, and about which nothing else is known.
    #[must_use]
    pub fn single_attempt_state(self, outcome: Option<&OperationOutcome>) -> RowState {
        self.final_state(self.build_attempt((1, Chain::UNKNOWN), outcome).state)
    }

    /// The state of a row without an attempt: it is left out, or waits.
    #[must_use]
    pub fn unattempted_state(self, left_out: Option<RowState>) -> RowState {
        self.final_state(left_out.unwrap_or(RowState::Planned))
    }

    /// The state of a row whose records leave it in this one.
    pub(super) fn final_state(self, recorded: RowState) -> RowState {
        match (self, recorded) {
            (RunActivity::Finished, RowState::Planned) => RowState::NotSent,
            (RunActivity::Cancelled | RunActivity::Replaced, RowState::Planned) => RowState::Skipped,
            _ => recorded,
        }
    }

    /// The reason for a row whose run ended before it was sent.
    #[must_use]
    pub fn skip_reason(self) -> &'static str {
        match self {
            RunActivity::Replaced => REPLACED,
            RunActivity::Sending | RunActivity::Idle | RunActivity::Finished | RunActivity::Cancelled => CANCELLED,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::{OperationKind, Phone};
    use crate::ledger::{Author, ExcludedRows, RowChange, RowEvent, RowStates};

    const ACTIVITIES: [RunActivity; 4] =
        [RunActivity::Sending, RunActivity::Idle, RunActivity::Finished, RunActivity::Cancelled];
    const ROW: Row = Row::FIRST;

    fn sent(row: Row) -> SentRow {
        let to = Phone::new(380_501_234_567).unwrap().into();
        SentRow { row, to, digest: [0; 8], chain: Chain::UNKNOWN }
    }

    fn outcomes() -> [Option<OperationOutcome>; 6] {
        [
            None,
            Some(OperationOutcome::Accepted { msg_id: None, parts: None, answer: None }),
            Some(OperationOutcome::Queued { request_id: "r".into() }),
            Some(OperationOutcome::Rejected { error: "No route".into() }),
            Some(OperationOutcome::NotSent { reason: "refused".into() }),
            Some(OperationOutcome::InDoubt { reason: "silence".into() }),
        ]
    }

    fn changes() -> [RowChange; 8] {
        let (by, why) = (Author::Person("olena".into()), None);
        let found = |status: &str| RowChange::Found { status: status.into(), msg_id: None, channel: None };
        [
            found("DELIVERED"),
            found("REJECTED"),
            RowChange::NotFound { asked: 3 },
            RowChange::Unresolved { asked: 20 },
            RowChange::AssumedSent { by: by.clone(), why: why.clone() },
            RowChange::NotSent { by: by.clone(), why: why.clone() },
            RowChange::SendAgain { by: by.clone(), why },
            RowChange::Retry { by, order: 1 },
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
    fn attempts() -> Vec<Vec<Option<OperationOutcome>>> {
        let settled = outcomes().into_iter().filter(Option::is_some);
        let twice = settled.flat_map(|first| outcomes().map(|second| vec![first.clone(), second]));
        outcomes().map(|only| vec![only]).into_iter().chain(twice).collect()
    }

    /// The states of a row with these attempts and events: while it is sent, while nobody sends it, once that is over,
    /// and once it was stopped for good.
    fn states(attempts: &[Option<OperationOutcome>], events: &RowEvents) -> [RowState; 4] {
        ACTIVITIES.map(|activity| {
            let attempt = |(envelope, outcome): (u32, &Option<OperationOutcome>)| {
                activity.build_attempt((envelope, OperationKind::Sms.into()), outcome.as_ref())
            };
            let attempts: Vec<Attempt> = (1..).zip(attempts).map(attempt).collect();
            activity.judge_row(ROW, &attempts, events, &[]).state
        })
    }

    fn everything(check: impl Fn(&[Option<OperationOutcome>], &[RowEvent], [RowState; 4])) {
        let (attempts, events) = (attempts(), events());
        assert!(attempts.len() * events.len() > 9_000, "that is not everything");
        for events in &events {
            let folded = RowEvents::from(events.clone());
            attempts.iter().for_each(|attempts| check(attempts, events, states(attempts, &folded)));
        }
    }

    #[test]
    fn row_without_events_has_the_state_of_its_last_attempt() {
        let expected = [
            [RowState::Sending, RowState::InDoubt, RowState::InDoubt, RowState::InDoubt],
            [RowState::Accepted; 4],
            [RowState::Queued; 4],
            [RowState::Rejected; 4],
            [RowState::Planned, RowState::Planned, RowState::NotSent, RowState::Skipped],
            [RowState::InDoubt; 4],
        ];
        for (outcome, expected) in outcomes().into_iter().zip(expected) {
            for before in outcomes() {
                assert_eq!(states(&[before, outcome.clone()], &RowEvents::default()), expected, "{outcome:?}");
            }
        }
        let left_out = [None, Some(RowState::Skipped), Some(RowState::Invalid)];
        let told = left_out.map(|left_out| ACTIVITIES.map(|activity| activity.unattempted_state(left_out)));
        let waits = [RowState::Planned, RowState::Planned, RowState::NotSent, RowState::Skipped];
        assert_eq!(told, [waits, [RowState::Skipped; 4], [RowState::Invalid; 4]]);
    }

    #[test]
    fn open_intent_is_sending_until_there_is_proof() {
        everything(|attempts, events, [sending, idle, ..]| {
            if attempts.last() != Some(&None) {
                assert_eq!(sending, idle, "{attempts:?} {events:?}: only an intent alone depends on who has the run");
                return;
            }
            let about = |event: &RowEvent| event.envelope as usize == attempts.len();
            let proven = events.iter().any(|event| about(event) && matches!(event.change, RowChange::Found { .. }));
            // Once it is known to have failed, a new message can be ordered.
            let ends = [RowState::Accepted, RowState::Failed, RowState::Planned];
            let expected = if proven { ends } else { [RowState::Sending; 3] };
            assert!(expected.contains(&sending), "{attempts:?} {events:?}: {sending}");
        });
    }

    #[test]
    fn planned_rows_are_not_sent_or_skipped_when_a_run_ends() {
        everything(|attempts, events, [_, idle, over, cancelled]| {
            let planned = idle == RowState::Planned;
            let expected = if planned { [RowState::NotSent, RowState::Skipped] } else { [idle; 2] };
            assert_eq!([over, cancelled], expected, "{attempts:?} {events:?}");
        });
    }

    #[test]
    fn replaced_run_skips_the_rows_that_it_did_not_send() {
        for state in RowState::ALL {
            let expected = if state == RowState::Planned { RowState::Skipped } else { state };
            assert_eq!(RunActivity::Replaced.final_state(state), expected, "{state}");
        }
        let replaced = RunActivity::from_progress(RunProgress::Replaced, false);
        assert_eq!((replaced, replaced.skip_reason()), (RunActivity::Replaced, REPLACED));
        assert_eq!(replaced.single_attempt_state(None), RowState::InDoubt, "nobody has its requests any more");
    }

    #[test]
    fn events_about_an_earlier_attempt_keep_the_state() {
        everything(|attempts, events, told| {
            let last = attempts.len();
            let about: Vec<RowEvent> = events.iter().filter(|event| event.envelope as usize == last).cloned().collect();
            assert_eq!(states(attempts, &about.into()), told, "{attempts:?} {events:?}");
        });
    }

    #[test]
    fn row_state_with_a_message_implies_the_guard() {
        everything(|attempts, events, told| {
            let folded = RowEvents::from(events.to_vec());
            let all: Vec<Attempt> = (1..)
                .zip(attempts)
                .map(|(envelope, outcome)| {
                    RunActivity::Idle.build_attempt((envelope, OperationKind::Sms.into()), outcome.as_ref())
                })
                .collect();
            let guarded = folded.has_message(ROW, &all, &[]);
            // Nothing is known yet of an attempt that is on its way.
            let known = events.iter().any(|event| event.envelope as usize == attempts.len());
            let told = if known { &told[1..] } else { &told[..] };
            assert!(guarded || !told.iter().any(|state| state.is_guarded()), "{attempts:?} {events:?}: {told:?}");
            let any = all.iter().any(|attempt| attempt.state.is_guarded());
            assert!(
                !events.is_empty() || guarded == any,
                "{attempts:?}: without events any attempt that went out guards"
            );
        });
    }

    #[test]
    fn open_intent_of_a_claimed_row_is_not_in_doubt() {
        let in_hand = RoaringBitmap::from([3]);
        let activities = RowActivities { run: RunActivity::Finished, claimed: in_hand, newest_envelope: Some(7) };
        let accepted = outcomes()[1].clone();
        for (row, envelope, outcome, expected) in [
            (2, 6, None, RowState::InDoubt),
            (3, 7, None, RowState::Sending),
            // It was begun after it was looked who has rows.
            (4, 8, None, RowState::Sending),
            (2, 6, accepted.as_ref(), RowState::Accepted),
            (4, 8, accepted.as_ref(), RowState::Accepted),
        ] {
            let record = EnvelopeRecord {
                envelope,
                kind: OperationKind::Sms,
                begun_at: Timestamp::UNIX_EPOCH,
                rows: vec![sent(Row::new(row))],
                costs: Vec::new(),
                settled: None,
            };
            let attempt = activities.build_attempt(&record, &record.rows[0], outcome);
            assert_eq!((attempt.envelope, attempt.state), (envelope, expected), "row {row} {outcome:?}");
        }
    }

    #[test]
    fn run_counts_match_the_states_of_its_rows() {
        everything(|attempts, events, told| {
            for (activity, told) in ACTIVITIES.into_iter().zip(told) {
                let mut states = RowStates::new(activity, events.to_vec().into());
                for (envelope, outcome) in (1..).zip(attempts) {
                    let rows = vec![sent(ROW)];
                    let settled = outcome.clone().map(|outcome| (Timestamp::UNIX_EPOCH, vec![outcome]));
                    states.add_envelope(&EnvelopeRecord {
                        envelope,
                        kind: OperationKind::Sms,
                        begun_at: Timestamp::UNIX_EPOCH,
                        rows,
                        costs: Vec::new(),
                        settled,
                    });
                }
                let none = ExcludedRows::default();
                assert_eq!(states.row_state(ROW, &none), told, "{attempts:?} {events:?} {activity:?}");
                let mut expected = crate::ledger::StateCounts::default();
                [told, activity.unattempted_state(None)].into_iter().for_each(|state| expected.add(state, 1));
                assert_eq!(states.count_states(2, &none), expected, "{attempts:?} {events:?} {activity:?}");
            }
        });
    }
}
