//! The part of an account's rate that the questions of assistants may use. Pure.
//!
//! Questions have a pace of their own beside the account's. Every connector on the ledger shares it. A question never books
//! ahead: it takes room when there is some, or none at all.

use std::time::Duration;

use super::pace::{SECOND, slot_length};
use super::{AccountRateLimit, SlotWait};

/// The share of the rate for questions while messages are sent through the account.
const QUESTION_SHARE: f64 = 0.1;
/// For how long after its last message an account counts as sending, in microseconds.
const SENDING_PERIOD: i64 = 30 * SECOND;
/// At a low rate: for how many messages' time at that rate.
const SENDING_MESSAGES: u32 = 2;
/// What follows the account's name in the name of its questions.
const QUESTIONS_SUFFIX: &str = " (questions)";

/// Whether a question of an assistant may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionPermit {
    /// It has room.
    Granted {
        /// How long it waits for the account's rate.
        wait: SlotWait,
        /// How long the next question waits for room.
        next: Duration,
    },
    /// There is no room, and it took none; it can be asked again after this time.
    Later(Duration),
}

/// The pace of an account and of its questions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::ledger) struct QuestionRateLimit {
    pub(in crate::ledger) account: AccountRateLimit,
    pub(in crate::ledger) questions: AccountRateLimit,
}

/// The name under which the ledger keeps the pace of an account's questions.
pub(in crate::ledger) fn question_account_name(account: &str) -> String {
    format!("{account}{QUESTIONS_SUFFIX}")
}

/// Whether a pace of this name is of questions and of no account.
pub(in crate::ledger) fn is_question_account(name: &str) -> bool {
    name.ends_with(QUESTIONS_SUFFIX)
}

impl QuestionRateLimit {
    /// Takes room for one question at the instant `now`, if it leaves within `longest`.
    ///
    /// `rate` is the account's; `None` has no limit but the waits that the gateway asks for.
    pub(in crate::ledger) fn reserve_question(
        self,
        now: i64,
        rate: Option<f64>,
        longest: Duration,
    ) -> (Self, QuestionPermit) {
        let sent_at = self.last_message_at().min(now);
        let questions = self.questions.rebase_to(now);
        if rate.is_some() && questions.next_free > now {
            return (self, QuestionPermit::Later(duration_from_micros(questions.next_free - now)));
        }
        let reservation = self.account.reserve(now, 1, rate);
        if reservation.wait.time > longest {
            return (self, QuestionPermit::Later(reservation.wait.time));
        }
        let Some(rate) = rate else {
            let turn = QuestionPermit::Granted { wait: reservation.wait, next: Duration::ZERO };
            return (Self { account: reservation.rate_limit, ..self }, turn);
        };
        let rate = rate * self.account.share_at(now);
        let sends = now - sent_at < SENDING_PERIOD.max(slot_length(SENDING_MESSAGES, rate));
        let share = if sends { QUESTION_SHARE } else { 1.0 };
        let next = slot_length(1, rate * share);
        let questions = AccountRateLimit {
            next_free: now + next,
            share,
            slowed_at: sent_at,
            not_before: 0,
            written_at: now,
            rate: Some(rate),
            taken: questions.taken.saturating_add(1),
        };
        let turn = QuestionPermit::Granted { wait: reservation.wait, next: duration_from_micros(next) };
        (Self { account: reservation.rate_limit, questions }, turn)
    }

    /// When a message last took room from the account, as far as questions noticed.
    ///
    /// A question writes both paces at one instant. If the account's was written since, a message took room then.
    fn last_message_at(&self) -> i64 {
        match self.account.written_at == self.questions.written_at {
            true => self.questions.slowed_at,
            false => self.account.written_at,
        }
    }
}

fn duration_from_micros(time: i64) -> Duration {
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
        pace: QuestionRateLimit,
        messages: u32,
        questions: u32,
    }

    impl Account {
        fn try_question(&mut self, now: i64, rate: f64) {
            let (pace, turn) = self.pace.reserve_question(now, Some(rate), LONGEST);
            self.pace = pace;
            self.questions += u32::from(matches!(turn, QuestionPermit::Granted { .. }));
        }

        /// So many seconds, in which messages are sent or not.
        fn pass(&mut self, from: i64, seconds: i64, rate: f64, sends: bool) {
            let mut leaves = from;
            for now in (from..from + seconds * SECOND).step_by(10_000) {
                if sends && leaves <= now {
                    let reservation = self.pace.account.reserve(now, 1, Some(rate));
                    self.pace.account = reservation.rate_limit;
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
            assert!(f64::from(account.questions) <= whole * QUESTION_SHARE + 2.0, "{} at {rate}/s", account.questions);
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
    fn messages_get_the_full_rate_as_soon_as_they_start() {
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
    fn question_without_room_reserves_nothing() {
        let granted = QuestionRateLimit::default().reserve_question(START, Some(1.0), LONGEST).0;
        let (after, turn) = granted.reserve_question(START + SECOND / 4, Some(1.0), LONGEST);
        assert_eq!((after, turn), (granted, QuestionPermit::Later(Duration::from_millis(750))));
        // A wait that the gateway asked for holds for questions too, and at any rate.
        for rate in [None, Some(10.0)] {
            let asked = AccountRateLimit::default().slow_down(START, Some(60 * SECOND));
            let asked = QuestionRateLimit { account: asked, ..QuestionRateLimit::default() };
            assert_eq!(
                asked.reserve_question(START, rate, LONGEST),
                (asked, QuestionPermit::Later(Duration::from_secs(60)))
            );
        }
    }

    #[test]
    fn clock_set_back_does_not_extend_a_question_wait() {
        let mut account = Account::default();
        account.pass(START, 10, 1.0, true);
        for back in [SECOND, 86_400 * SECOND] {
            let (_, turn) = account.pace.reserve_question(START + 10 * SECOND - back, Some(1.0), LONGEST);
            assert!(matches!(turn, QuestionPermit::Later(wait) if wait <= Duration::from_secs(10)), "{turn:?}");
        }
    }

    #[test]
    fn question_account_names_are_recognised() {
        assert!(is_question_account(&question_account_name("main")) && !is_question_account("main"));
    }
}
