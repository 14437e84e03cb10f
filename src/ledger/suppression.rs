//! The suppression list: who opted out of what, since when, and what that holds back.
//!
//! A record is added and may be taken back later, but is never deleted: who was on the list when stays known.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Lease, LedgerFuture, NumberSet, Ownership};
use crate::domain::{Addressee, Phone, Purpose, Row};

/// Why a row is skipped whose number is on the suppression list.
pub const OPTED_OUT: &str = "opted out";

/// What somebody opted out of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OptOutScope {
    /// Everything that is marketing.
    Everything,
    /// One campaign, by its name.
    Campaign(Arc<str>),
}

impl OptOutScope {
    /// The scope of one campaign, or of everything.
    #[must_use]
    pub fn from_campaign(campaign: Option<&str>) -> Self {
        campaign.map_or(OptOutScope::Everything, |name| OptOutScope::Campaign(name.into()))
    }

    /// The campaign, if it is one.
    #[must_use]
    pub fn campaign(&self) -> Option<&str> {
        match self {
            OptOutScope::Everything => None,
            OptOutScope::Campaign(name) => Some(name),
        }
    }
}

impl fmt::Display for OptOutScope {
    /// As files and programs have it; a colon is in no campaign's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptOutScope::Everything => f.write_str("everything"),
            OptOutScope::Campaign(name) => write!(f, "campaign:{name}"),
        }
    }
}

/// Through which gateways an opt-out holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptOutReach {
    /// Through all.
    AllGateways,
    /// Through those on loopback alone: one of them told of it, and there nobody is a real person.
    LoopbackGateways,
}

impl OptOutReach {
    /// Its name in files and for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OptOutReach::AllGateways => "all",
            OptOutReach::LoopbackGateways => "loopback",
        }
    }

    /// The reach of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [OptOutReach::AllGateways, OptOutReach::LoopbackGateways].into_iter().find(|reach| reach.name() == name)
    }
}

/// Somebody who opted out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOut {
    /// Who.
    pub who: Addressee,
    /// Out of what.
    pub scope: OptOutScope,
    /// Through which gateways that holds.
    pub reach: OptOutReach,
    /// Why, in words.
    pub reason: Arc<str>,
    /// Who or what told of it: a person, a file, a reply.
    pub source: Arc<str>,
    /// Since when.
    pub at: Timestamp,
}

/// What separates the parts of the source of an import: the file, who imported it, and when.
const SOURCE_PARTS: &str = ", ";

/// The source of the opt-outs that an import of a file adds. Earlier versions wrote it without the time.
#[must_use]
pub fn import_source(file: &str, by: &str, at: Timestamp) -> String {
    [file, by, &format!("{at:.3}")].join(SOURCE_PARTS)
}

impl OptOut {
    /// Whether an import of a file added it.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        self.source.contains(SOURCE_PARTS)
    }

    /// Whether an import added it whose source is this, or begins with these parts, such as the name of the file alone.
    #[must_use]
    pub fn is_from_import(&self, source: &str) -> bool {
        let rest = self.source.strip_prefix(source).filter(|_| self.is_imported() && !source.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SOURCE_PARTS))
    }

    /// Whether it takes the place of one that is on the list: an opt-out that a recipient or an operator told of by itself
    /// outlives the import that had the number too.
    #[must_use]
    pub fn replaces(&self, known: &OptOut) -> bool {
        self.covers(known) && known.is_imported() && !self.is_imported()
    }

    /// Whether it is about the same as another one, so that one of them is enough.
    #[must_use]
    pub fn covers(&self, other: &OptOut) -> bool {
        (self.who, &self.scope, self.reach) == (other.who, &other.scope, other.reach)
    }

    /// Whether it holds back what a campaign sends, through a gateway on loopback or another one.
    #[must_use]
    pub fn applies_to(&self, campaign: &str, loopback: bool) -> bool {
        let meant = self.scope.campaign().is_none_or(|name| name == campaign);
        meant && (loopback || self.reach == OptOutReach::AllGateways)
    }
}

/// What of the list a run heeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuppressionPolicy {
    /// What its messages are for: one for service is held back by nobody.
    pub purpose: Purpose,
    /// Whether its gateway is on loopback, so that what such gateways told holds for it.
    pub loopback: bool,
    /// The version of the list under which it was planned.
    pub version: u64,
}

impl SuppressionPolicy {
    /// What messages for service heed: nothing.
    pub const NONE: SuppressionPolicy = SuppressionPolicy { purpose: Purpose::Service, loopback: false, version: 0 };

    /// Whether an opt-out holds back what a run of this campaign sends.
    #[must_use]
    pub fn is_suppressed_by(&self, campaign: &str, opt_out: &OptOut) -> bool {
        self.purpose.is_marketing() && opt_out.applies_to(campaign, self.loopback)
    }
}

/// The numbers that are held back, as the list stands at a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuppressedNumbers {
    /// The version.
    pub version: u64,
    /// The numbers.
    pub numbers: NumberSet,
}

/// What came of adding to the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// How many are new on it.
    pub added: u64,
    /// Those of a few that were on it already, as they stand there; of many only how many.
    pub known: Vec<OptOut>,
    /// How many were on it already.
    pub already: u64,
}

impl Additions {
    /// The most that are told one by one.
    pub const MAX_LISTED: usize = 100;
}

/// What is taken off the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOutRemoval {
    /// The number.
    pub phone: Phone,
    /// Out of what; whatever it is where there is nothing.
    pub scope: Option<OptOutScope>,
    /// Who has it taken off.
    pub by: Arc<str>,
    /// Why, in words.
    pub why: Option<Arc<str>>,
}

/// Entries that are taken off the list together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRemoval {
    /// The entries, as they stand on the list.
    pub entries: Vec<OptOut>,
    /// Who has them taken off.
    pub by: Arc<str>,
    /// Why, in words.
    pub why: Option<Arc<str>>,
}

/// A part of the list, in the order in which it was added to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptOutPage {
    /// Who opted out, and has not been taken off.
    pub entries: Vec<OptOut>,
    /// Behind what the next part begins; nothing at the end.
    pub next: Option<i64>,
}

/// The suppression list, as a part of the ledger.
pub trait SuppressionList: Send + Sync {
    /// Puts all of these on the list, or none; the list has another version where that changed it.
    fn add_opt_outs(&self, opt_outs: Vec<OptOut>) -> LedgerFuture<'_, Additions>;

    /// Takes a number off the list, and tells what was taken off; the list has another version where that changed it.
    fn remove_opt_outs(&self, removal: OptOutRemoval) -> LedgerFuture<'_, Vec<OptOut>>;

    /// What adding these would come to; changes nothing. None are told one by one.
    fn preview_additions<'a>(&'a self, opt_outs: &'a [OptOut]) -> LedgerFuture<'a, Additions>;

    /// Takes these entries off the list, as far as they are on it unchanged, and tells how many were.
    fn remove_entries(&self, removal: EntryRemoval) -> LedgerFuture<'_, u64>;

    /// The numbers that are held back from a campaign, through a gateway on loopback or another one.
    fn load_suppressed_numbers<'a>(&'a self, campaign: &'a str, loopback: bool) -> LedgerFuture<'a, SuppressedNumbers>;

    /// Leaves out rows of a run for a reason that the ledger does not know of itself, unless the run was lost. Such rows have
    /// no attempt, or one that proved to be none.
    fn skip_rows(&self, lease: Lease, rows: Vec<Row>, reason: &'static str) -> LedgerFuture<'_, Ownership>;

    /// How a number is on the list, forgotten or not.
    fn find_opt_outs(&self, phone: Phone) -> LedgerFuture<'_, Vec<OptOut>>;

    /// Who is on the list: so many at most, from behind what the part before ended with.
    fn list_opt_outs(&self, behind: Option<i64>, at_most: u32) -> LedgerFuture<'_, OptOutPage>;
}
