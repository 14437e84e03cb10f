//! The pace of accounts and of their questions.

use std::time::Duration;

use super::contents::LedgerContents;
use crate::ledger::question_pace::{QuestionRateLimit, is_question_account, question_account_name};
use crate::ledger::{AccountRateLimit, Allowance, LedgerError, QuestionPermit, SlotWait};

impl LedgerContents {
    pub(crate) fn slow_account(&mut self, now: i64, account: &str, wait: Option<Duration>) -> Result<(), LedgerError> {
        let pace = self.paces.entry(account.to_owned()).or_default();
        *pace = pace.slow_down(now, wait.and_then(|wait| i64::try_from(wait.as_micros()).ok()));
        Ok(())
    }

    pub(crate) fn reserve_rate(&mut self, now: i64, account: &Allowance, count: u32) -> SlotWait {
        let pace = self.paces.entry(account.name.to_string()).or_default();
        let reservation = pace.reserve(now, count, account.rate);
        *pace = reservation.rate_limit;
        reservation.wait
    }

    pub(crate) fn reserve_question(&mut self, now: i64, account: &Allowance, longest: Duration) -> QuestionPermit {
        let questions = question_account_name(&account.name);
        let pace = |name: &str| self.paces.get(name).copied().unwrap_or_default();
        let before = QuestionRateLimit { account: pace(&account.name), questions: pace(&questions) };
        let (after, turn) = before.reserve_question(now, account.rate, longest);
        if after != before {
            self.paces.insert(account.name.to_string(), after.account);
            self.paces.insert(questions, after.questions);
        }
        turn
    }

    /// The pace of every account that has one, by name.
    pub(crate) fn account_paces(&self) -> Vec<(String, AccountRateLimit)> {
        let accounts = self.paces.iter().filter(|(name, _)| !is_question_account(name));
        accounts.map(|(name, pace)| (name.clone(), *pace)).collect()
    }
}
