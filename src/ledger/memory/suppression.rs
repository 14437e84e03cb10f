//! The suppression list in memory.

use super::adapter::MemoryLedger;
use crate::domain::{Addressee, Phone, Row};
use crate::ledger::rules::Forgotten;
use crate::ledger::{
    Additions, EntryRemoval, Lease, LedgerFuture, NumberKey, NumberSet, OptOut, OptOuts, OptedOut, Ownership, Removal,
    Run, SentRow, SuppressionList,
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
    pub(super) fn hash_with(&mut self, key: NumberKey) {
        self.key = Some(key);
    }

    /// Keeps what stays of a number instead of it, and puts it on the list if it is not there.
    pub(super) fn forget(&mut self, forgotten: Forgotten, key: NumberKey, opt_out: OptOut) {
        self.key = Some(key);
        for (known, _) in self.records.iter_mut().filter(|(known, _)| known.who == forgotten.phone.into()) {
            known.who = forgotten.who();
            known.reason = forgotten.in_words(&known.reason).into();
            known.source = forgotten.in_words(&known.source).into();
        }
        self.add(vec![OptOut { who: forgotten.who(), ..opt_out }]);
    }

    /// What stays of a number once it is forgotten.
    pub(super) fn stays_of(&self, who: Addressee) -> Option<Addressee> {
        Some(Addressee::Forgotten(self.key.as_ref()?.forgotten(who.number()?)))
    }

    /// Somebody, as the list has them.
    fn as_listed(&self, who: Addressee) -> Addressee {
        self.stays_of(who).filter(|stays| self.records.iter().any(|(known, _)| known.who == *stays)).unwrap_or(who)
    }

    /// Who is on the list.
    fn in_force(&self) -> impl Iterator<Item = &OptOut> {
        self.records.iter().filter(|(_, in_force)| *in_force).map(|(opt_out, _)| opt_out)
    }

    /// Puts all of these on the list.
    pub(crate) fn add(&mut self, opt_outs: Vec<OptOut>) -> Additions {
        let (few, mut additions) = (opt_outs.len() <= Additions::TOLD, Additions::default());
        for mut opt_out in opt_outs {
            opt_out.who = self.as_listed(opt_out.who);
            for (_, in_force) in
                self.records.iter_mut().filter(|(known, in_force)| *in_force && opt_out.replaces(known))
            {
                *in_force = false;
            }
            let known = self.in_force().find(|known| known.covers(&opt_out)).cloned();
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

    fn remove(&mut self, removal: &Removal) -> Vec<OptOut> {
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
    pub(super) fn among(&self, run: &Run, rows: &[SentRow]) -> Vec<Row> {
        let is_out = |sent: &&SentRow| {
            let who = self.as_listed(sent.to);
            self.in_force().any(|out| out.who == who && run.heed.is_held_back(&run.campaign, out))
        };
        rows.iter().filter(is_out).map(|sent| sent.row).collect()
    }
}

impl SuppressionList for MemoryLedger {
    fn suppress(&self, opt_outs: Vec<OptOut>) -> LedgerFuture<'_, Additions> {
        self.change(move |contents, _| Ok(contents.opt_outs.add(opt_outs)))
    }

    fn unsuppress(&self, removal: Removal) -> LedgerFuture<'_, Vec<OptOut>> {
        self.change(move |contents, _| Ok(contents.opt_outs.remove(&removal)))
    }

    fn additions<'a>(&'a self, opt_outs: &'a [OptOut]) -> LedgerFuture<'a, Additions> {
        self.look(move |contents| Additions { known: Vec::new(), ..contents.opt_outs.clone().add(opt_outs.to_vec()) })
    }

    fn remove_entries(&self, removal: EntryRemoval) -> LedgerFuture<'_, u64> {
        self.change(move |contents, _| Ok(contents.opt_outs.remove_entries(&removal)))
    }

    fn opted_out<'a>(&'a self, campaign: &'a str, loopback: bool) -> LedgerFuture<'a, OptedOut> {
        self.look(move |contents| {
            let list = &contents.opt_outs;
            let held = list.in_force().filter(|opt_out| opt_out.holds(campaign, loopback));
            let numbers = held.map(|opt_out| opt_out.who.get()).collect();
            OptedOut { version: list.version, numbers: NumberSet::new(numbers, list.key()) }
        })
    }

    fn opt_outs_of(&self, phone: Phone) -> LedgerFuture<'_, Vec<OptOut>> {
        self.look(move |contents| {
            let who = contents.opt_outs.as_listed(phone.into());
            contents.opt_outs.in_force().filter(|opt_out| opt_out.who == who).cloned().collect()
        })
    }

    fn leave_out(&self, lease: Lease, rows: Vec<Row>, reason: &'static str) -> LedgerFuture<'_, Ownership> {
        self.change(move |contents, _| contents.leave_out(lease, &rows, reason))
    }

    fn opt_outs(&self, behind: Option<i64>, at_most: u32) -> LedgerFuture<'_, OptOuts> {
        self.look(move |contents| {
            let behind = usize::try_from(behind.unwrap_or(0)).unwrap_or(0);
            let records = (1..).zip(&contents.opt_outs.records).skip(behind);
            let part: Vec<(i64, &OptOut)> = records
                .filter(|(_, (_, in_force))| *in_force)
                .map(|(key, (opt_out, _))| (key, opt_out))
                .take(at_most as usize)
                .collect();
            let next = part.last().filter(|_| part.len() >= at_most as usize).map(|(key, _)| *key);
            OptOuts { entries: part.into_iter().map(|(_, opt_out)| opt_out.clone()).collect(), next }
        })
    }
}
