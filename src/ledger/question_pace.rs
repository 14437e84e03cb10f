//! The part of an account's rate that the questions of assistants may use. Pure.
//!
//! Questions have a pace of their own beside the account's. Every connector on the ledger shares it. A question never books
//! ahead: it takes room when there is some, or none at all.

use std::time::Duration;

use super::pace::{SECOND, spacing};
use super::{AccountPace, Wait};

/// The share of the rate for questions while messages are sent through the account.
const SHARE: f64 = 0.1;
/// For how long after its last message an account counts as sending, in microseconds.
const SENDING: i64 = 30 * SECOND;
/// At a low rate: for how many messages' time at that rate.
const MESSAGES: u32 = 2;
/// What follows the account's name in the name of its questions.
const SUFFIX: &str = " (questions)";

/// Whether a question of an assistant may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionTurn {
    /// It has room.
    Granted {
        /// How long it waits for the account's rate.
        wait: Wait,
        /// How long the next question waits for room.
        next: Duration,
    },
    /// There is no room, and it took none; it can be asked again after this time.
    Later(Duration),
}

/// The pace of an account and of its questions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::ledger) struct QuestionPace {
    pub(in crate::ledger) account: AccountPace,
    pub(in crate::ledger) questions: AccountPace,
}

/// The name under which the ledger keeps the pace of an account's questions.
pub(in crate::ledger) fn questions_of(account: &str) -> String {
    format!("{account}{SUFFIX}")
}

/// Whether a pace of this name is of questions and of no account.
pub(in crate::ledger) fn is_of_questions(name: &str) -> bool {
    name.ends_with(SUFFIX)
}

impl QuestionPace {
    /// Takes room for one question at the instant `now`, if it leaves within `longest`.
    ///
    /// `rate` is the account's; `None` has no limit but the waits that the gateway asks for.
    pub(in crate::ledger) fn reserve(self, now: i64, rate: Option<f64>, longest: Duration) -> (Self, QuestionTurn) {
        let sent_at = self.last_message().min(now);
        let questions = self.questions.at(now);
        if rate.is_some() && questions.next_free > now {
            return (self, QuestionTurn::Later(micros(questions.next_free - now)));
        }
        let reservation = self.account.reserve(now, 1, rate);
        if reservation.wait.time > longest {
            return (self, QuestionTurn::Later(reservation.wait.time));
        }
        let Some(rate) = rate else {
            let turn = QuestionTurn::Granted { wait: reservation.wait, next: Duration::ZERO };
            return (Self { account: reservation.pace, ..self }, turn);
        };
        let rate = rate * self.account.share_at(now);
        let sends = now - sent_at < SENDING.max(spacing(MESSAGES, rate));
        let share = if sends { SHARE } else { 1.0 };
        let next = spacing(1, rate * share);
        let questions = AccountPace {
            next_free: now + next,
            share,
            slowed_at: sent_at,
            not_before: 0,
            written_at: now,
            rate: Some(rate),
            taken: questions.taken.saturating_add(1),
        };
        let turn = QuestionTurn::Granted { wait: reservation.wait, next: micros(next) };
        (Self { account: reservation.pace, questions }, turn)
    }

    /// When a message last took room from the account, as far as questions noticed.
    ///
    /// A question writes both paces at one instant. If the account's was written since, a message took room then.
    fn last_message(&self) -> i64 {
        match self.account.written_at == self.questions.written_at {
            true => self.questions.slowed_at,
            false => self.account.written_at,
        }
    }
}

fn micros(time: i64) -> Duration {
    Duration::from_micros(u64::try_from(time).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_800_000_000 * SECOND;
    const LONGEST: Duration = Duration::from_secs(5);

    /// An account in use: messages leave as fast as the rate allows, and questions are tried every 10 ms.
    #[derive(Default)]
    struct Account {
        pace: QuestionPace,
        messages: u32,
        questions: u32,
    }

    impl Account {
        fn try_question(&mut self, now: i64, rate: f64) {
            let (pace, turn) = self.pace.reserve(now, Some(rate), LONGEST);
            self.pace = pace;
            self.questions += u32::from(matches!(turn, QuestionTurn::Granted { .. }));
        }

        /// So many seconds, in which messages are sent or not.
        fn pass(&mut self, from: i64, seconds: i64, rate: f64, sends: bool) {
            let mut leaves = from;
            for now in (from..from + seconds * SECOND).step_by(10_000) {
                if sends && leaves <= now {
                    let reservation = self.pace.account.reserve(now, 1, Some(rate));
                    self.pace.account = reservation.pace;
                    leaves = now + i64::try_from(reservation.wait.time.as_micros()).unwrap();
                    self.messages += 1;
                }
                (0..60).for_each(|_| self.try_question(now, rate));
            }
        }
    }

    #[test]
    fn questions_take_a_tenth_of_the_rate_beside_messages() {
        for rate in [1.0, 10.0, 50.0] {
            let mut account = Account::default();
            account.pass(START, 100, rate, true);
            let whole = 100.0 * rate;
            assert!(f64::from(account.questions) <= whole * SHARE + 2.0, "{} at {rate}/s", account.questions);
            assert!(f64::from(account.messages) >= whole * 0.85, "{} at {rate}/s", account.messages);
        }
    }

    #[test]
    fn questions_use_the_whole_rate_when_nothing_is_sent() {
        let mut account = Account::default();
        account.pass(START, 100, 10.0, false);
        assert!((990..=1_001).contains(&account.questions), "{}", account.questions);
    }

    #[test]
    fn messages_that_begin_have_the_rate_at_once_and_questions_it_after_them() {
        let mut account = Account::default();
        account.pass(START, 10, 10.0, false);
        (account.messages, account.questions) = (0, 0);
        account.pass(START + 10 * SECOND, 20, 10.0, true);
        assert!(account.messages >= 178 && account.questions <= 22, "{} {}", account.messages, account.questions);
        account.questions = 0;
        account.pass(START + 30 * SECOND, 29, 10.0, false);
        assert!(account.questions <= 31, "{} while the account may still be sending", account.questions);
        account.questions = 0;
        account.pass(START + 61 * SECOND, 10, 10.0, false);
        assert!(account.questions >= 95, "{}", account.questions);
    }

    #[test]
    fn question_without_room_takes_none() {
        let granted = QuestionPace::default().reserve(START, Some(1.0), LONGEST).0;
        let (after, turn) = granted.reserve(START + SECOND / 4, Some(1.0), LONGEST);
        assert_eq!((after, turn), (granted, QuestionTurn::Later(Duration::from_millis(750))));
        // A wait that the gateway asked for holds for questions too, and at any rate.
        for rate in [None, Some(10.0)] {
            let asked = AccountPace::default().slowed(START, Some(60 * SECOND));
            let asked = QuestionPace { account: asked, ..QuestionPace::default() };
            assert_eq!(asked.reserve(START, rate, LONGEST), (asked, QuestionTurn::Later(Duration::from_secs(60))));
        }
    }

    #[test]
    fn clock_that_is_set_back_keeps_no_question_waiting_longer() {
        let mut account = Account::default();
        account.pass(START, 10, 1.0, true);
        for back in [SECOND, 86_400 * SECOND] {
            let (_, turn) = account.pace.reserve(START + 10 * SECOND - back, Some(1.0), LONGEST);
            assert!(matches!(turn, QuestionTurn::Later(wait) if wait <= Duration::from_secs(10)), "{turn:?}");
        }
    }

    #[test]
    fn questions_of_an_account_are_told_from_accounts() {
        assert!(is_of_questions(&questions_of("main")) && !is_of_questions("main"));
    }
}
