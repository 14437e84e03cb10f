//! The suppression list: opt-outs, their scope and the numbers that they suppress.
//!
//! Records are never deleted. A removed opt-out stays in the history.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::{LedgerFuture, NumberSet};
use campaign_core::domain::{Addressee, OperationKind, Phone, Purpose, Row};

/// The skip reason for suppressed numbers.
pub const OPTED_OUT: &str = "opted out";

/// The coverage of an opt-out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OptOutScope {
    /// All marketing messages.
    Marketing,
    /// All messages, except those that must arrive.
    All,
    /// The marketing messages of one campaign, by name.
    Campaign(Arc<str>),
}

impl OptOutScope {
    /// The prefix of a campaign's name in files and JSON.
    const CAMPAIGN_PREFIX: &'static str = "campaign:";
    /// The name of [`OptOutScope::Marketing`] in exports of earlier versions.
    const EARLIER_MARKETING: &'static str = "everything";

    /// The scope of one campaign, or of all marketing.
    pub fn from_campaign(campaign: Option<&str>) -> Self {
        campaign.map_or(OptOutScope::Marketing, |name| OptOutScope::Campaign(name.into()))
    }

    /// The scope of an unambiguous opt-out in a reply to messages with this purpose.
    pub fn from_reply_to(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Marketing => OptOutScope::Marketing,
            Purpose::Service => OptOutScope::All,
        }
    }

    /// Parses the form in files and JSON. The name of a campaign is not checked.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "marketing" | Self::EARLIER_MARKETING => Some(OptOutScope::Marketing),
            "all" => Some(OptOutScope::All),
            name => Some(OptOutScope::Campaign(name.strip_prefix(Self::CAMPAIGN_PREFIX)?.into())),
        }
    }

    /// The campaign, if the scope is one campaign.
    pub fn campaign(&self) -> Option<&str> {
        match self {
            OptOutScope::Marketing | OptOutScope::All => None,
            OptOutScope::Campaign(name) => Some(name),
        }
    }

    /// Whether the scope covers the messages of a campaign with this purpose.
    pub fn covers_campaign(&self, campaign: &str, purpose: Purpose) -> bool {
        match self {
            OptOutScope::Marketing => purpose.is_marketing(),
            OptOutScope::All => true,
            OptOutScope::Campaign(name) => purpose.is_marketing() && **name == *campaign,
        }
    }
}

impl fmt::Display for OptOutScope {
    /// Writes the form that is used in files and JSON. The form is unambiguous, because campaign names contain no
    /// colon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptOutScope::Marketing => f.write_str("marketing"),
            OptOutScope::All => f.write_str("all"),
            OptOutScope::Campaign(name) => write!(f, "{}{name}", Self::CAMPAIGN_PREFIX),
        }
    }
}

/// The gateways that an opt-out applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptOutReach {
    /// All gateways, including those on loopback.
    AllGateways,
    /// Gateways on loopback. A loopback gateway reported the opt-out, and it does not have real recipients.
    LoopbackGateways,
}

impl OptOutReach {
    /// The name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            OptOutReach::AllGateways => "all",
            OptOutReach::LoopbackGateways => "loopback",
        }
    }

    /// The reach with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [OptOutReach::AllGateways, OptOutReach::LoopbackGateways].into_iter().find(|reach| reach.name() == name)
    }
}

/// An entry of the suppression list, for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOut {
    /// The number.
    pub who: Addressee,
    /// The coverage of the opt-out.
    pub scope: OptOutScope,
    /// The gateways that the opt-out applies to.
    pub reach: OptOutReach,
    /// Why the number was added, in words.
    pub reason: Arc<str>,
    /// The source: a person, a file or a reply.
    pub source: Arc<str>,
    /// The time at which the recipient opted out.
    pub at: Timestamp,
}

/// Separates the parts of an import's source: file, author and time.
const PART_SEPARATOR: &str = ", ";

/// The source of opt-outs from an imported file. Earlier versions omitted the time.
pub fn import_source(file: &str, by: &str, at: Timestamp) -> String {
    [file, by, &format!("{at:.3}")].join(PART_SEPARATOR)
}

/// The position of the time among the parts of an import's source. Commas in the file name shift this position.
fn time_index(source: &str) -> Option<usize> {
    source.split(PART_SEPARATOR).position(|part| part.parse::<Timestamp>().is_ok())
}

/// The first `count` parts of an import's source.
fn first_parts(source: &str, count: usize) -> &str {
    let end = source.match_indices(PART_SEPARATOR).nth(count.saturating_sub(1));
    end.map_or(source, |(end, _)| &source[..end])
}

/// The part of a source that names the import: file, author and time, without the source that the row itself gives.
pub fn import_name(source: &str) -> &str {
    first_parts(source, time_index(source).map_or(2, |index| index + 1))
}

/// The name of the imported file in a source.
fn imported_file(source: &str) -> &str {
    first_parts(source, time_index(source).map_or(1, |index| index.saturating_sub(1)))
}

/// The prefix of the source of a reply.
const REPLY_PREFIX: &str = "reply to ";
/// Separates the run from the row in the source of an opt-in.
const ROW_SEPARATOR: &str = ", row ";

/// The reason why an imported entry left the list: an opt-out of the recipient or an operator replaced it.
pub(super) const REPLACED_REASON: &str = "replaced by an opt-out of their own";

/// The source of opt-outs by replies to a run.
pub fn reply_source(run: &str) -> String {
    format!("{REPLY_PREFIX}{run}")
}

/// The source of an opt-in by a reply to the message of a row.
pub fn opt_in_source(run: &str, row: Row) -> String {
    format!("{REPLY_PREFIX}{run}{ROW_SEPARATOR}{row}")
}

/// Whether this program wrote the source and the reason of an opt-out. Otherwise a person wrote them, or they are from
/// an imported file.
pub(crate) fn is_own_source(source: &str) -> bool {
    [REPLY_PREFIX, REJECTION_PREFIX].iter().any(|prefix| source.starts_with(prefix))
}

/// The prefix of the source of a rejection.
const REJECTION_PREFIX: &str = "rejected in ";

/// The source of opt-outs that the gateway reported by rejecting messages of a run.
pub fn rejection_source(run: &str) -> String {
    format!("{REJECTION_PREFIX}{run}")
}

impl OptOut {
    /// Whether the opt-out was imported from a file.
    pub fn is_imported(&self) -> bool {
        self.source.contains(PART_SEPARATOR)
    }

    /// Whether the opt-out was imported from this source. The source can be shortened to its first parts, such as the
    /// file name.
    pub fn is_from_import(&self, source: &str) -> bool {
        let rest = self.source.strip_prefix(source).filter(|_| self.is_imported() && !source.is_empty());
        let is_part_boundary = |rest: &str| rest.is_empty() || rest.starts_with(PART_SEPARATOR);
        rest.is_some_and(is_part_boundary) && source.len() >= imported_file(&self.source).len()
    }

    /// Whether this opt-out replaces a listed opt-out. An opt-out by a recipient or operator replaces an imported
    /// opt-out, and stays if the import is removed.
    pub fn replaces(&self, known: &OptOut) -> bool {
        self.covers(known) && known.is_imported() && !self.is_imported()
    }

    /// Whether both opt-outs have the same recipient, scope and reach, which means that one of them is enough.
    pub fn covers(&self, other: &OptOut) -> bool {
        (self.who, &self.scope, self.reach) == (other.who, &other.scope, other.reach)
    }

    /// Whether the opt-out applies to a campaign's marketing; `loopback` means that the gateway is on loopback.
    pub fn applies_to_marketing(&self, campaign: &str, loopback: bool) -> bool {
        self.scope.covers_campaign(campaign, Purpose::Marketing) && self.reaches(loopback)
    }

    /// Whether the opt-out applies to messages through a gateway; `loopback` means that the gateway is on loopback.
    fn reaches(&self, loopback: bool) -> bool {
        loopback || self.reach == OptOutReach::AllGateways
    }
}

/// A recipient's wish, in a reply, to get messages again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptIn {
    /// The number.
    pub who: Addressee,
    /// The campaign of the message that the recipient answered.
    pub campaign: Arc<str>,
    /// The purpose of that message.
    pub purpose: Purpose,
    /// The gateways to which the wish applies. The wish of an emulated recipient does not count for a real recipient.
    pub reach: OptOutReach,
    /// The reason, as text, with the word of the reply.
    pub reason: Arc<str>,
    /// The message that the recipient answered, as text.
    pub source: Arc<str>,
    /// The time at which the recipient opted in.
    pub at: Timestamp,
}

impl OptIn {
    /// Whether this opt-in ends an opt-out with the same number and reach. The opt-out must be earlier and must cover
    /// the message that the recipient answered.
    pub fn ends(&self, opt_out: &OptOut) -> bool {
        (self.who, self.reach) == (opt_out.who, opt_out.reach)
            && opt_out.at < self.at
            && opt_out.scope.covers_campaign(&self.campaign, self.purpose)
    }

    /// The latest of these opt-ins that ends an opt-out.
    pub(crate) fn find_latest<'i>(opted_in: &'i [Self], opt_out: &OptOut) -> Option<&'i Self> {
        opted_in.iter().filter(|opt_in| opt_in.ends(opt_out)).max_by_key(|opt_in| opt_in.at)
    }
}

/// The end of an opt-out that is no longer on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOutEnd {
    /// The time at which the opt-out ended.
    pub at: Timestamp,
    /// The person who removed the opt-out, or the message to which the recipient replied.
    pub by: String,
    /// The reason, as text. Empty if unknown.
    pub why: String,
}

impl OptOutEnd {
    /// Whether this end of `known` is an opt-in that is later than `other`, an opt-out with the same recipient, scope
    /// and reach.
    pub(crate) fn revokes(&self, known: &OptOut, other: &OptOut) -> bool {
        let is_opt_in = self.by.starts_with(REPLY_PREFIX) && self.by.contains(ROW_SEPARATOR);
        is_opt_in && other.covers(known) && other.at < self.at
    }
}

/// An opt-out that is no longer on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOptOut {
    /// The opt-out.
    pub opt_out: OptOut,
    /// The end of the opt-out.
    pub end: OptOutEnd,
}

/// A recorded opt-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOutRecord {
    /// The opt-out.
    pub opt_out: OptOut,
    /// The end of the opt-out. `None` while it is on the list.
    pub end: Option<OptOutEnd>,
}

/// The effect of the suppression list on a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuppressionPolicy {
    /// The purpose of the run's messages.
    pub purpose: Purpose,
    /// Whether the messages must arrive, so that the list does not apply. Only for service messages.
    pub mandatory: bool,
    /// Whether the gateway is on loopback, so that opt-outs of loopback gateways apply.
    pub loopback: bool,
    /// The version of the list at planning time.
    pub version: u64,
}

impl SuppressionPolicy {
    /// The policy of service messages at version 0 of the list.
    pub const SERVICE: SuppressionPolicy =
        SuppressionPolicy { purpose: Purpose::Service, mandatory: false, loopback: false, version: 0 };

    /// Whether the messages are mandatory service messages, to which the list does not apply.
    pub fn ignores_list(&self) -> bool {
        self.mandatory && self.purpose == Purpose::Service
    }

    /// Whether the list applies to operations of this kind. Requested lookups and verification calls ignore the list.
    pub fn covers_kind(&self, kind: OperationKind) -> bool {
        let is_requested = kind.is_single() && self.purpose == Purpose::Service;
        !(self.ignores_list() || is_requested)
    }

    /// Whether an opt-out suppresses messages of a campaign under this policy.
    pub fn applies_opt_out(&self, campaign: &str, opt_out: &OptOut) -> bool {
        let is_covered = opt_out.scope.covers_campaign(campaign, self.purpose) && opt_out.reaches(self.loopback);
        is_covered && !self.ignores_list()
    }
}

/// The suppressed numbers at a version of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuppressedNumbers {
    /// The version of the list to which the numbers belong.
    pub version: u64,
    /// The numbers to skip, including hashes of forgotten numbers.
    pub numbers: NumberSet,
}

/// Whether opt-outs are added or only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdditionMode {
    /// Adds the opt-outs.
    Add,
    /// Changes nothing. Existing opt-outs are counted but not returned.
    Preview,
}

/// The result of adding opt-outs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// The number of new opt-outs.
    pub added: u64,
    /// The existing opt-outs, as listed. Empty for large additions and previews.
    pub known: Vec<OptOut>,
    /// The number of existing opt-outs.
    pub existing: u64,
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

/// The opt-outs that a removal targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalTarget {
    /// The opt-outs of a number.
    Number {
        /// The number.
        phone: Phone,
        /// The scope to remove. `None` removes all scopes.
        scope: Option<OptOutScope>,
    },
    /// The given entries, as listed. Entries that have changed since then are kept.
    Entries(Vec<OptOut>),
}

/// Selects opt-outs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptOutFilter {
    /// At most `at_most` opt-outs of the list after a cursor.
    Listed {
        /// The cursor. `None` for the first page.
        behind: Option<i64>,
        /// The maximum number.
        at_most: u32,
    },
    /// The opt-outs of a number on the list, even if the number was forgotten.
    OfNumber(Phone),
    /// The opt-outs of a number that are no longer on the list.
    EndedOfNumber(Phone),
}

/// Opt-outs of the list, or of a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptOutPage {
    /// The opt-outs.
    pub entries: Vec<OptOutRecord>,
    /// The cursor of the next page. `None` at the end.
    pub next: Option<i64>,
}

impl OptOutPage {
    /// The opt-outs, ended or not.
    pub fn into_opt_outs(self) -> impl Iterator<Item = OptOut> {
        self.entries.into_iter().map(|record| record.opt_out)
    }
}

/// The suppression list of a ledger.
pub trait SuppressionList: Send + Sync {
    /// Adds all of these opt-outs or none; [`AdditionMode::Preview`] only counts what would change. A change raises the
    /// version of the list. An opt-out that repeats an entry leaves the entry unchanged; the latest repetition is kept
    /// in case an opt-in ends the entry.
    fn add_opt_outs(&self, opt_outs: Arc<[OptOut]>, mode: AdditionMode) -> LedgerFuture<'_, Additions>;

    /// Removes opt-outs from the list, and returns them. A change raises the version of the list.
    fn remove_opt_outs(&self, removal: OptOutRemoval) -> LedgerFuture<'_, Vec<OptOut>>;

    /// The numbers that are suppressed for a campaign under a policy. The list version in the policy is ignored.
    fn load_suppressed_numbers<'a>(
        &'a self,
        campaign: &'a str,
        policy: SuppressionPolicy,
    ) -> LedgerFuture<'a, SuppressedNumbers>;

    /// The opt-outs that match. The list and the ended opt-outs of a number are in the order of addition.
    fn list_opt_outs(&self, filter: OptOutFilter) -> LedgerFuture<'_, OptOutPage>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_is_named_by_its_file_author_and_time() {
        let opt_out = |source: &str| OptOut {
            who: Phone::new(380_501_234_567).unwrap().into(),
            scope: OptOutScope::Marketing,
            reach: OptOutReach::AllGateways,
            reason: "STOP".into(),
            source: source.into(),
            at: Timestamp::UNIX_EPOCH,
        };
        let time = "2026-11-28T10:44:33.671Z";
        let [plain, comma] = ["a", "a, b.csv"].map(|file| format!("{file}, olena, {time}"));
        let with_row = format!("{comma}, shop, {time}");
        let (plain, comma, with_row) = (plain.as_str(), comma.as_str(), with_row.as_str());
        for (source, import, files) in [
            (plain, plain, &["a", "a, olena"][..]),
            (comma, comma, &["a, b.csv", "a, b.csv, olena"]),
            (with_row, comma, &["a, b.csv", "a, b.csv, olena", comma]),
            ("a, olena", "a, olena", &["a"]),
            ("a, olena, shop", "a, olena", &["a", "a, olena"]),
        ] {
            assert_eq!(import_name(source), import);
            for file in ["a", "a, b.csv", "a, olena", "a, b.csv, olena", "b.csv", "", plain, comma, with_row] {
                let is_expected = files.contains(&file) || file == source;
                assert_eq!(opt_out(source).is_from_import(file), is_expected, "{source}: {file}");
            }
        }
    }
}
