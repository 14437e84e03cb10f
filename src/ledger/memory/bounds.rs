//! What intents have to keep within, in memory: made of the envelopes each time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::book::StoredRun;
use super::contents::{LedgerContents, parse_instant};
use crate::domain::{Addressee, FrequencyCap, Row, Spending};
use crate::ledger::rules::{
    caps_allow, counts_for_caps, find_capped_rows, find_exceeded_budget, find_exceeded_day, share_budget, tighter_bound,
};
use crate::ledger::{Intent, LedgerError, NumberSet, Permit};

impl LedgerContents {
    /// The rows of an intent that its caps hold back.
    pub(super) fn find_capped_rows(&self, now: i64, intent: &Intent) -> Result<Vec<Row>, LedgerError> {
        let run = &self.stored_run(intent.lease.run)?.run;
        let caps = intent.bounds.as_ref().map_or(&[][..], |bounds| &bounds.caps);
        match caps.is_empty() || !counts_for_caps(run) {
            true => Ok(Vec::new()),
            false => {
                let mut times = self.contact_times(run.suppression.loopback);
                for sent in &intent.rows {
                    // Those of somebody who was forgotten meanwhile count for the number.
                    let stays = self.opt_outs.forgotten_form(sent.to).and_then(|stays| times.get(&stays)).cloned();
                    times.entry(sent.to).or_default().extend(stays.into_iter().flatten());
                }
                Ok(find_capped_rows(caps, now, &intent.rows, times))
            }
        }
    }

    /// When each number got messages that count, through gateways on loopback or through others.
    fn contact_times(&self, loopback: bool) -> FxHashMap<Addressee, Vec<i64>> {
        let mut times = FxHashMap::<Addressee, Vec<i64>>::default();
        let books = self.stored_runs().filter(|book| book.run.suppression.loopback == loopback);
        books.flat_map(StoredRun::contact_times).for_each(|(to, at)| times.entry(to).or_default().push(at));
        times
    }

    pub(crate) fn capped_numbers(&self, now: i64, caps: &[FrequencyCap], loopback: bool) -> NumberSet {
        let times = self.contact_times(loopback).into_iter();
        let held = times.filter(|(_, times)| !caps_allow(caps, now, times)).map(|(to, _)| to.to_u64());
        NumberSet::new(held.collect(), self.opt_outs.key())
    }

    /// Why an intent that leaves then would go over its bounds, if it would.
    pub(super) fn find_exceeded_bound(
        &self,
        now: i64,
        (intent, leaves): (&Intent, Timestamp),
    ) -> Result<Option<Permit>, LedgerError> {
        let Some(bounds) = &intent.bounds else { return Ok(None) };
        let run = &self.stored_run(intent.lease.run)?.run;
        let (sharing, rows) = (|| self.stored_runs().filter(|book| share_budget(run, &book.run)), intent.rows.len());
        let used = sharing().map(StoredRun::total_spending).fold(Spending::default(), Spending::add_spending);
        let mut over = find_exceeded_budget(&bounds.budget, used, rows, &intent.costs);
        if let Some(per_day) = &bounds.per_day {
            let mut left = BTreeMap::new();
            let days = sharing().flat_map(|book| book.count_by_day(per_day));
            days.for_each(|(day, count)| *left.entry(day).or_default() += count);
            over = tighter_bound(over, find_exceeded_day(per_day, &left, (parse_instant(now)?, leaves), rows));
        }
        Ok(over.map(|(fits, bound)| Permit::BoundExceeded { fits, bound }))
    }
}
