//! The suppression list in memory.

use super::adapter::MemoryLedger;
use crate::domain::{Addressee, Phone, Row};
use crate::ledger::rules::NumberErasure;
use crate::ledger::{
    Additions, EntryRemoval, Lease, LedgerFuture, NumberKey, NumberSet, OptOut, OptOutPage, OptOutRemoval, Ownership,
    Run, SentRow, SuppressedNumbers, SuppressionList,
};

/// The list with its version.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptOutList {
    /// Everybody who ever was on it; with `true` who is.
    records: Vec<(OptOut, bool)>,
    version: u64,
    /// With what numbers were hashed that are forgotten.
    key: Option<NumberKey>,
}

impl OptOutList {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn key(&self) -> Option<NumberKey> {
        self.key.clone()
    }

    /// Has numbers known by their hash with this key.
    pub(super) fn set_key(&mut self, key: NumberKey) {
        self.key = Some(key);
    }

    /// Keeps what stays of a number instead of it, and puts it on the list if it is not there.
    pub(super) fn forget_number(&mut self, forgotten: NumberErasure, key: NumberKey, opt_out: OptOut) {
        self.key = Some(key);
        for (known, _) in self.records.iter_mut().filter(|(known, _)| known.who == forgotten.phone.into()) {
            known.who = forgotten.addressee();
            known.reason = forgotten.erase_from_text(&known.reason).into();
            known.source = forgotten.erase_from_text(&known.source).into();
        }
        self.add_opt_outs(vec![OptOut { who: forgotten.addressee(), ..opt_out }]);
    }

    /// What stays of a number once it is forgotten.
    pub(super) fn forgotten_form(&self, who: Addressee) -> Option<Addressee> {
        Some(Addressee::Forgotten(self.key.as_ref()?.hash_number(who.phone()?)))
    }

    /// Somebody, as the list has them.
    fn as_listed(&self, who: Addressee) -> Addressee {
        self.forgotten_form(who)
            .filter(|stays| self.records.iter().any(|(known, _)| known.who == *stays))
            .unwrap_or(who)
    }

    /// Who is on the list.
    fn iter_active(&self) -> impl Iterator<Item = &OptOut> {
        self.records.iter().filter(|(_, in_force)| *in_force).map(|(opt_out, _)| opt_out)
    }

    /// Puts all of these on the list.
    pub(crate) fn add_opt_outs(&mut self, opt_outs: Vec<OptOut>) -> Additions {
        let (few, mut additions) = (opt_outs.len() <= Additions::MAX_LISTED, Additions::default());
        for mut opt_out in opt_outs {
            opt_out.who = self.as_listed(opt_out.who);
            for (_, in_force) in
                self.records.iter_mut().filter(|(known, in_force)| *in_force && opt_out.replaces(known))
            {
                *in_force = false;
            }
            let known = self.iter_active().find(|known| known.covers(&opt_out)).cloned();
            match known {
                Some(known) => {
                    additions.already += 1;
                    additions.known.extend(Some(known).filter(|_| few));
                }
                None => {
                    additions.added += 1;
                    self.records.push((opt_out, true));
                }
            }
        }
        self.version += u64::from(additions.added > 0);
        additions
    }

    fn remove_entries(&mut self, removal: &EntryRemoval) -> u64 {
        let mut removed = 0;
        let meant = |known: &OptOut| removal.entries.contains(known);
        for (_, in_force) in self.records.iter_mut().filter(|(known, in_force)| *in_force && meant(known)) {
            *in_force = false;
            removed += 1;
        }
        self.version += u64::from(removed > 0);
        removed
    }

    fn remove_opt_outs(&mut self, removal: &OptOutRemoval) -> Vec<OptOut> {
        let who = self.as_listed(removal.phone.into());
        let meant =
            |opt_out: &OptOut| opt_out.who == who && removal.scope.as_ref().is_none_or(|scope| *scope == opt_out.scope);
        let mut removed = Vec::new();
        for (opt_out, in_force) in self.records.iter_mut().filter(|(opt_out, in_force)| *in_force && meant(opt_out)) {
            *in_force = false;
            removed.push(opt_out.clone());
        }
        self.version += u64::from(!removed.is_empty());
        removed
    }

    /// The rows of an envelope whose people opted out of what their run sends.
    pub(super) fn find_opted_out_rows(&self, run: &Run, rows: &[SentRow]) -> Vec<Row> {
        let is_out = |sent: &&SentRow| {
            let who = self.as_listed(sent.to);
            self.iter_active().any(|out| out.who == who && run.suppression.is_suppressed_by(&run.campaign, out))
        };
        rows.iter().filter(is_out).map(|sent| sent.row).collect()
    }
}

impl SuppressionList for MemoryLedger {
    fn add_opt_outs(&self, opt_outs: Vec<OptOut>) -> LedgerFuture<'_, Additions> {
        self.write_contents(move |contents, _| Ok(contents.opt_outs.add_opt_outs(opt_outs)))
    }

    fn remove_opt_outs(&self, removal: OptOutRemoval) -> LedgerFuture<'_, Vec<OptOut>> {
        self.write_contents(move |contents, _| Ok(contents.opt_outs.remove_opt_outs(&removal)))
    }

    fn preview_additions<'a>(&'a self, opt_outs: &'a [OptOut]) -> LedgerFuture<'a, Additions> {
        self.read_contents(move |contents| Additions {
            known: Vec::new(),
            ..contents.opt_outs.clone().add_opt_outs(opt_outs.to_vec())
        })
    }

    fn remove_entries(&self, removal: EntryRemoval) -> LedgerFuture<'_, u64> {
        self.write_contents(move |contents, _| Ok(contents.opt_outs.remove_entries(&removal)))
    }

    fn load_suppressed_numbers<'a>(&'a self, campaign: &'a str, loopback: bool) -> LedgerFuture<'a, SuppressedNumbers> {
        self.read_contents(move |contents| {
            let list = &contents.opt_outs;
            let held = list.iter_active().filter(|opt_out| opt_out.applies_to(campaign, loopback));
            let numbers = held.map(|opt_out| opt_out.who.to_u64()).collect();
            SuppressedNumbers { version: list.version, numbers: NumberSet::new(numbers, list.key()) }
        })
    }

    fn find_opt_outs(&self, phone: Phone) -> LedgerFuture<'_, Vec<OptOut>> {
        self.read_contents(move |contents| {
            let who = contents.opt_outs.as_listed(phone.into());
            contents.opt_outs.iter_active().filter(|opt_out| opt_out.who == who).cloned().collect()
        })
    }

    fn skip_rows(&self, lease: Lease, rows: Vec<Row>, reason: &'static str) -> LedgerFuture<'_, Ownership> {
        self.write_contents(move |contents, _| contents.skip_rows(lease, &rows, reason))
    }

    fn list_opt_outs(&self, behind: Option<i64>, at_most: u32) -> LedgerFuture<'_, OptOutPage> {
        self.read_contents(move |contents| {
            let behind = usize::try_from(behind.unwrap_or(0)).unwrap_or(0);
            let records = (1..).zip(&contents.opt_outs.records).skip(behind);
            let part: Vec<(i64, &OptOut)> = records
                .filter(|(_, (_, in_force))| *in_force)
                .map(|(key, (opt_out, _))| (key, opt_out))
                .take(at_most as usize)
                .collect();
            let next = part.last().filter(|_| part.len() >= at_most as usize).map(|(key, _)| *key);
            OptOutPage { entries: part.into_iter().map(|(_, opt_out)| opt_out.clone()).collect(), next }
        })
    }
}
