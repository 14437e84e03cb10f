//! The pace of accounts and of their questions.

use std::time::Duration;

use super::contents::Contents;
use crate::ledger::question_pace::{QuestionPace, is_of_questions, questions_of};
use crate::ledger::{AccountPace, Allowance, LedgerError, QuestionTurn, Wait};

impl Contents {
    pub(crate) fn slow_down(&mut self, now: i64, account: &str, wait: Option<Duration>) -> Result<(), LedgerError> {
        let pace = self.paces.entry(account.to_owned()).or_default();
        *pace = pace.slowed(now, wait.and_then(|wait| i64::try_from(wait.as_micros()).ok()));
        Ok(())
    }

    pub(crate) fn reserve(&mut self, now: i64, account: &Allowance, count: u32) -> Wait {
        let pace = self.paces.entry(account.name.to_string()).or_default();
        let reservation = pace.reserve(now, count, account.rate);
        *pace = reservation.pace;
        reservation.wait
    }

    pub(crate) fn reserve_question(&mut self, now: i64, account: &Allowance, longest: Duration) -> QuestionTurn {
        let questions = questions_of(&account.name);
        let pace = |name: &str| self.paces.get(name).copied().unwrap_or_default();
        let before = QuestionPace { account: pace(&account.name), questions: pace(&questions) };
        let (after, turn) = before.reserve(now, account.rate, longest);
        if after != before {
            self.paces.insert(account.name.to_string(), after.account);
            self.paces.insert(questions, after.questions);
        }
        turn
    }

    /// The pace of every account that has one, by name.
    pub(crate) fn account_paces(&self) -> Vec<(String, AccountPace)> {
        let accounts = self.paces.iter().filter(|(name, _)| !is_of_questions(name));
        accounts.map(|(name, pace)| (name.clone(), *pace)).collect()
    }
}
