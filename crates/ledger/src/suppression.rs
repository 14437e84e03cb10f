//! The suppression list: opt-outs, their scope and the numbers that they suppress.
//!
//! Records are never deleted. A removed opt-out stays in the history.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::{LedgerFuture, NumberSet};
use campaign_core::domain::{Addressee, Phone, Purpose};

/// The skip reason for suppressed numbers.
pub const OPTED_OUT: &str = "opted out";

/// What an opt-out covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OptOutScope {
    /// All marketing messages.
    Everything,
    /// One campaign, by name.
    Campaign(Arc<str>),
}

impl OptOutScope {
    /// The scope of one campaign, or of everything.
    #[must_use]
    pub fn from_campaign(campaign: Option<&str>) -> Self {
        campaign.map_or(OptOutScope::Everything, |name| OptOutScope::Campaign(name.into()))
    }

    /// The campaign, if the scope is one campaign.
    #[must_use]
    pub fn campaign(&self) -> Option<&str> {
        match self {
            OptOutScope::Everything => None,
            OptOutScope::Campaign(name) => Some(name),
        }
    }
}

impl fmt::Display for OptOutScope {
    /// The form in files and JSON. Campaign names contain no colon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptOutScope::Everything => f.write_str("everything"),
            OptOutScope::Campaign(name) => write!(f, "campaign:{name}"),
        }
    }
}

/// The gateways that an opt-out applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptOutReach {
    /// All gateways.
    AllGateways,
    /// Gateways on loopback. A loopback gateway reported the opt-out, and it does not have real recipients.
    LoopbackGateways,
}

impl OptOutReach {
    /// The name in files and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OptOutReach::AllGateways => "all",
            OptOutReach::LoopbackGateways => "loopback",
        }
    }

    /// The reach with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [OptOutReach::AllGateways, OptOutReach::LoopbackGateways].into_iter().find(|reach| reach.name() == name)
    }
}

/// An opt-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOut {
    /// The number.
    pub who: Addressee,
    /// What it covers.
    pub scope: OptOutScope,
    /// The gateways that it applies to.
    pub reach: OptOutReach,
    /// The reason, as text.
    pub reason: Arc<str>,
    /// The source: a person, a file or a reply.
    pub source: Arc<str>,
    /// When the recipient opted out.
    pub at: Timestamp,
}

/// Separates the parts of an import's source: file, author and time.
const SOURCE_PARTS: &str = ", ";

/// The source of opt-outs from an imported file. Earlier versions omit the time.
#[must_use]
pub fn import_source(file: &str, by: &str, at: Timestamp) -> String {
    [file, by, &format!("{at:.3}")].join(SOURCE_PARTS)
}

impl OptOut {
    /// Whether the opt-out was imported from a file.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        self.source.contains(SOURCE_PARTS)
    }

    /// Whether it was imported from this source. The source can be shortened to its first parts, such as the file name.
    #[must_use]
    pub fn is_from_import(&self, source: &str) -> bool {
        let rest = self.source.strip_prefix(source).filter(|_| self.is_imported() && !source.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SOURCE_PARTS))
    }

    /// Whether it replaces a listed opt-out. An opt-out by a recipient or operator replaces an imported one, so it
    /// outlives the import.
    #[must_use]
    pub fn replaces(&self, known: &OptOut) -> bool {
        self.covers(known) && known.is_imported() && !self.is_imported()
    }

    /// Whether this opt-out covers the same as the other, so that one is enough.
    #[must_use]
    pub fn covers(&self, other: &OptOut) -> bool {
        (self.who, &self.scope, self.reach) == (other.who, &other.scope, other.reach)
    }

    /// Whether the opt-out applies to a campaign's messages through a gateway, on loopback or not.
    #[must_use]
    pub fn applies_to(&self, campaign: &str, loopback: bool) -> bool {
        let meant = self.scope.campaign().is_none_or(|name| name == campaign);
        meant && (loopback || self.reach == OptOutReach::AllGateways)
    }
}

/// How the suppression list applies to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuppressionPolicy {
    /// The purpose of its messages. Service messages are never suppressed.
    pub purpose: Purpose,
    /// Whether its gateway is on loopback, so that opt-outs of loopback gateways apply.
    pub loopback: bool,
    /// The version of the list at planning time.
    pub version: u64,
}

impl SuppressionPolicy {
    /// The policy of service messages, which ignore the list.
    pub const NONE: SuppressionPolicy = SuppressionPolicy { purpose: Purpose::Service, loopback: false, version: 0 };

    /// Whether an opt-out suppresses messages of a campaign under this policy.
    #[must_use]
    pub fn is_suppressed_by(&self, campaign: &str, opt_out: &OptOut) -> bool {
        self.purpose.is_marketing() && opt_out.applies_to(campaign, self.loopback)
    }
}

/// The suppressed numbers at a version of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuppressedNumbers {
    /// The version.
    pub version: u64,
    /// The numbers.
    pub numbers: NumberSet,
}

/// The result of adding opt-outs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// The number of new opt-outs.
    pub added: u64,
    /// The existing opt-outs, as listed. Empty for large additions.
    pub known: Vec<OptOut>,
    /// The number of existing opt-outs.
    pub already: u64,
}

impl Additions {
    /// The largest addition whose existing opt-outs are returned.
    pub const MAX_LISTED: usize = 100;
}

/// A removal from the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOutRemoval {
    /// The opt-outs to remove.
    pub target: RemovalTarget,
    /// The author of the removal.
    pub by: Arc<str>,
    /// The reason, as text.
    pub why: Option<Arc<str>>,
}

/// The opt-outs that a removal is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalTarget {
    /// The opt-outs of a number.
    Number {
        /// The number.
        phone: Phone,
        /// The scope to remove. `None` removes all scopes.
        scope: Option<OptOutScope>,
    },
    /// These entries, as listed. Entries that changed since stay.
    Entries(Vec<OptOut>),
}

/// A page of the list, in order of addition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptOutPage {
    /// The active opt-outs.
    pub entries: Vec<OptOut>,
    /// The cursor of the next page. `None` at the end.
    pub next: Option<i64>,
}

/// The suppression list of a ledger.
pub trait SuppressionList: Send + Sync {
    /// Adds all of these opt-outs or none. A change raises the version of the list.
    fn add_opt_outs(&self, opt_outs: Vec<OptOut>) -> LedgerFuture<'_, Additions>;

    /// Removes opt-outs from the list, and returns them. A change raises the version of the list.
    fn remove_opt_outs(&self, removal: OptOutRemoval) -> LedgerFuture<'_, Vec<OptOut>>;

    /// The result of adding these opt-outs, without a change. Existing ones are counted but not returned.
    fn preview_additions<'a>(&'a self, opt_outs: &'a [OptOut]) -> LedgerFuture<'a, Additions>;

    /// The numbers that are suppressed for a campaign, through a gateway on loopback or not.
    fn load_suppressed_numbers<'a>(&'a self, campaign: &'a str, loopback: bool) -> LedgerFuture<'a, SuppressedNumbers>;

    /// The opt-outs of a number, forgotten or not.
    fn find_opt_outs(&self, phone: Phone) -> LedgerFuture<'_, Vec<OptOut>>;

    /// A page of at most `at_most` opt-outs after a cursor.
    fn list_opt_outs(&self, behind: Option<i64>, at_most: u32) -> LedgerFuture<'_, OptOutPage>;
}
