//! What intents have to keep within, in memory: made of the envelopes each time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::book::Book;
use super::contents::{Contents, instant};
use crate::domain::{Addressee, Cap, Row, Spending};
use crate::ledger::rules::{allowed, capped, counts_for_caps, nearer, over, over_day, share_budget};
use crate::ledger::{Intent, LedgerError, NumberSet, Permit};

impl Contents {
    /// The rows of an intent that its caps hold back.
    pub(super) fn held_by_caps(&self, now: i64, intent: &Intent) -> Result<Vec<Row>, LedgerError> {
        let run = &self.book(intent.lease.run)?.run;
        let caps = intent.bounds.as_ref().map_or(&[][..], |bounds| &bounds.caps);
        match caps.is_empty() || !counts_for_caps(run) {
            true => Ok(Vec::new()),
            false => {
                let mut times = self.contacts(run.heed.loopback);
                for sent in &intent.rows {
                    // Those of somebody who was forgotten meanwhile count for the number.
                    let stays = self.opt_outs.stays_of(sent.to).and_then(|stays| times.get(&stays)).cloned();
                    times.entry(sent.to).or_default().extend(stays.into_iter().flatten());
                }
                Ok(capped(caps, now, &intent.rows, times))
            }
        }
    }

    /// When each number got messages that count, through gateways on loopback or through others.
    fn contacts(&self, loopback: bool) -> FxHashMap<Addressee, Vec<i64>> {
        let mut times = FxHashMap::<Addressee, Vec<i64>>::default();
        let books = self.books().filter(|book| book.run.heed.loopback == loopback);
        books.flat_map(Book::contacts).for_each(|(to, at)| times.entry(to).or_default().push(at));
        times
    }

    pub(crate) fn capped(&self, now: i64, caps: &[Cap], loopback: bool) -> NumberSet {
        let times = self.contacts(loopback).into_iter();
        let held = times.filter(|(_, times)| !allowed(caps, now, times)).map(|(to, _)| to.get());
        NumberSet::new(held.collect(), self.opt_outs.key())
    }

    /// Why an intent that leaves then would go over its bounds, if it would.
    pub(super) fn over(&self, now: i64, (intent, leaves): (&Intent, Timestamp)) -> Result<Option<Permit>, LedgerError> {
        let Some(bounds) = &intent.bounds else { return Ok(None) };
        let run = &self.book(intent.lease.run)?.run;
        let (sharing, rows) = (|| self.books().filter(|book| share_budget(run, &book.run)), intent.rows.len());
        let used = sharing().map(Book::spending).fold(Spending::default(), Spending::plus);
        let mut over = over(&bounds.budget, used, rows, &intent.costs);
        if let Some(per_day) = &bounds.per_day {
            let mut left = BTreeMap::new();
            let days = sharing().flat_map(|book| book.days(per_day));
            days.for_each(|(day, count)| *left.entry(day).or_default() += count);
            over = nearer(over, over_day(per_day, &left, (instant(now)?, leaves), rows));
        }
        Ok(over.map(|(fits, bound)| Permit::Over { fits, bound }))
    }
}
