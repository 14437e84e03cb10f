//! Accounts: balance, sender names, templates and rate limit.
//!
//! The settings that never change are in the scenario.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{BalanceRecord, OperationError, VirtualTime, WireTime};
use crate::request::SendRequest;
use crate::scenario::{self, Scenario, SenderStatus};
use campaign_core::domain::{Amount, Channel, measure_sms};

/// The current state of an account.
#[derive(Debug)]
pub(crate) struct SandboxAccount {
    settings: scenario::AccountSettings,
    balance: Amount,
    /// The notification address, for statuses that are not sent to a `hook`.
    pub(crate) notify: Option<Arc<str>>,
    pub(crate) templates: Templates,
}

impl SandboxAccount {
    /// A new account.
    pub(crate) fn new(settings: scenario::AccountSettings) -> Self {
        let notify = settings.notify.as_deref().map(Arc::from);
        Self { balance: settings.balance, notify, templates: Templates::default(), settings }
    }

    /// The current balance.
    pub(crate) fn balance(&self) -> Amount {
        self.balance
    }

    /// The answer to `balance`.
    pub(crate) fn balance_record(&self) -> BalanceRecord {
        BalanceRecord { amount: self.balance.trim_decimals(), currency: self.settings.currency.clone() }
    }

    /// The answer to `sender`. The answer is empty for an account without a list of senders, because a list would
    /// exclude all other names.
    pub(crate) fn sender_records(&self) -> Value {
        let senders = self.settings.senders.iter().flatten();
        senders.map(|(name, status)| json!({ "name": name, "status": status.name() })).collect()
    }

    /// Checks that the account may use the sender names and channels of a request.
    pub(crate) fn check_allowed(&self, send: &SendRequest) -> Result<(), OperationError> {
        if !send.signatures.iter().all(|signature| self.knows_sender(signature)) {
            return Err(OperationError::ALPHA_NAME);
        }
        let has_route = self.settings.whatsapp || send.stages.iter().all(|stage| stage.channel != Channel::Whatsapp);
        if has_route { Ok(()) } else { Err(OperationError::NO_ROUTE) }
    }

    /// Deducts an amount from the balance if there is enough money.
    pub(crate) fn charge(&mut self, amount: Amount) -> Result<(), OperationError> {
        if self.balance < amount {
            return Err(OperationError::NO_MONEY);
        }
        self.balance = self.balance.saturating_sub(amount);
        Ok(())
    }

    /// Adds a refund to the balance.
    pub(crate) fn refund(&mut self, amount: Amount) {
        self.balance = self.balance.saturating_add(amount);
    }

    fn knows_sender(&self, signature: &str) -> bool {
        self.settings.senders.as_ref().is_none_or(|senders| {
            senders.iter().any(|(name, status)| name == signature && *status == SenderStatus::Checked)
        })
    }
}

/// The rate limit of an account: governor's GCRA with time as an argument.
///
/// The limiter shares no code with the client's rate limit, so that it can verify the client's limit.
pub(crate) struct OperationLimiter {
    limiter: RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, NoOpMiddleware<Nanos>>,
    /// The latest time of its clock.
    now: Option<Timestamp>,
    /// The time that it takes to refill a whole burst.
    refill: Duration,
}

impl OperationLimiter {
    /// A limiter that allows a whole burst at once.
    pub(crate) fn new(limit: scenario::OperationLimit) -> Self {
        let interval = Duration::from_secs_f64(1.0 / limit.rate);
        let quota =
            Quota::with_period(interval).expect("a million a second is the highest rate").allow_burst(limit.burst);
        let refill = quota.burst_size_replenished_in();
        Self { limiter: RateLimiter::direct_with_clock(quota, FakeRelativeClock::default()), now: None, refill }
    }

    /// Takes this many operations from the limit at the time `at`.
    ///
    /// # Errors
    /// The time to wait, if the limit is exhausted, in which case no operations are taken. A request larger than a
    /// burst never fits, so the time to wait is the time that refills a whole burst.
    pub(crate) fn take_operations(&mut self, operations: usize, at: Timestamp) -> Result<(), Duration> {
        let elapsed = self.now.map_or(Duration::ZERO, |now| at.duration_since(now).try_into().unwrap_or_default());
        self.limiter.clock().advance(elapsed);
        self.now = self.now.max(Some(at));
        let Some(operations) = NonZeroU32::new(u32::try_from(operations).unwrap_or(u32::MAX)) else { return Ok(()) };
        match self.limiter.check_n(operations) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(later)) => Err(later.wait_time_from(governor::clock::Clock::now(self.limiter.clock()))),
            Err(_) => Err(self.refill),
        }
    }
}

/// The maximum number of templates of each kind.
const MAX_TEMPLATES: usize = 10_000;
/// The maximum size of all texts and names of each kind.
const MAX_TEMPLATE_BYTES: usize = 16 << 20;

/// The templates of one account.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    pub(crate) sms: TemplateStore,
    pub(crate) viber: TemplateStore,
}

/// Templates of one kind by number.
#[derive(Debug, Default)]
pub(crate) struct TemplateStore {
    all: BTreeMap<u64, Template>,
    /// The number of the latest template. Numbers of deleted templates are not reused.
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Template {
    /// The name of an SMS template, the signature of a Viber one.
    title: Box<str>,
    text: Box<str>,
    created: VirtualTime,
}

impl Template {
    fn byte_count(&self) -> usize {
        self.title.len() + self.text.len()
    }
}

impl TemplateStore {
    fn insert(&mut self, title: &str, text: &str, created: VirtualTime) -> Result<(u64, &Template), OperationError> {
        let template = Template { title: title.into(), text: text.into(), created };
        if self.all.len() >= MAX_TEMPLATES || self.bytes + template.byte_count() > MAX_TEMPLATE_BYTES {
            return Err(OperationError::TOO_MANY_TEMPLATES);
        }
        self.bytes += template.byte_count();
        self.last += 1;
        Ok((self.last, self.all.entry(self.last).or_insert(template)))
    }

    /// Deletes a template; if `text` is given, the template must have this text. Returns the number of deleted
    /// templates.
    pub(crate) fn delete_template(&mut self, id: u64, text: Option<&str>) -> u64 {
        let has_text = |template: &&Template| text.is_none_or(|text| *text == *template.text);
        if self.all.get(&id).filter(has_text).is_none() {
            return 0;
        }
        self.bytes -= self.all.remove(&id).map_or(0, |template| template.byte_count());
        1
    }
}

impl Templates {
    /// Creates an SMS template (contract 4.3 `template/create`).
    pub(crate) fn create_sms(&mut self, name: &str, text: &str, now: VirtualTime) -> Result<Value, OperationError> {
        self.sms.insert(name, text, now).map(|(id, template)| sms_record(id, template))
    }

    /// All SMS templates, oldest first.
    pub(crate) fn list_sms(&self) -> Value {
        let dated_record = |(id, template): (&u64, &Template)| {
            let mut record = sms_record(*id, template);
            // Only the list contains the time of creation (contract 2.5).
            record["datetime"] = json!(WireTime(template.created));
            record
        };
        self.sms.all.iter().map(dated_record).collect()
    }

    /// Creates a Viber template; its status is `new`.
    pub(crate) fn create_viber(
        &mut self,
        signature: &str,
        text: &str,
        now: VirtualTime,
    ) -> Result<Value, OperationError> {
        self.viber.insert(signature, text, now).map(|(id, template)| viber_record(id, template, "new"))
    }

    /// All Viber templates with their statuses at `now`, the oldest first.
    pub(crate) fn list_viber(&self, scenario: &Scenario, now: VirtualTime) -> Value {
        let all = self.viber.all.iter();
        all.map(|(id, template)| viber_record(*id, template, review_status(scenario, template.created, now))).collect()
    }
}

/// The review status of a Viber template: submitted after a delay, and decided after the same delay again.
fn review_status(scenario: &Scenario, created: VirtualTime, now: VirtualTime) -> &'static str {
    let submitted = created.saturating_add(scenario.template_review);
    let decided = submitted.saturating_add(scenario.template_review);
    if now < submitted {
        "new"
    } else if now < decided {
        "submitted"
    } else if scenario.templates_approved {
        "approved"
    } else {
        "rejected"
    }
}

/// The record of an SMS template (contract 2.5); the `count` field contains the numbers of characters and SMS parts, as
/// in `8 / 1`.
fn sms_record(id: u64, template: &Template) -> Value {
    let size = measure_sms(&template.text);
    let count = format!("{} / {}", size.units, size.parts);
    json!({ "id": id, "name": template.title, "template": template.text, "count": count })
}

/// The record of a Viber template (contract 2.5).
fn viber_record(id: u64, Template { title, text, .. }: &Template, status: &str) -> Value {
    json!({ "id": id, "template": text, "signature": title, "status": status })
}

#[cfg(test)]
mod tests {
    use super::super::ChannelStage;
    use super::*;

    fn send_request(signature: &str, channel: Channel) -> SendRequest {
        SendRequest { stages: vec![ChannelStage::new(channel, 1, None)], signatures: vec![signature.into()] }
    }

    #[test]
    fn account_with_a_sender_list_accepts_only_checked_names() {
        let senders =
            Some(vec![("OlenaCo".to_owned(), SenderStatus::Checked), ("Fresh".to_owned(), SenderStatus::New)]);
        let listed = SandboxAccount::new(scenario::AccountSettings { senders, ..scenario::AccountSettings::default() });
        let open = SandboxAccount::new(scenario::AccountSettings::default());
        for (name, known) in [("OlenaCo", true), ("Fresh", false), ("olenaco", false), ("Other", false)] {
            let expected = if known { Ok(()) } else { Err(OperationError::ALPHA_NAME) };
            assert_eq!(listed.check_allowed(&send_request(name, Channel::Sms)), expected, "{name}");
            assert_eq!(open.check_allowed(&send_request(name, Channel::Sms)), Ok(()), "{name}");
        }
        let records = json!([{"name": "OlenaCo", "status": "Checked"}, {"name": "Fresh", "status": "New"}]);
        assert_eq!((listed.sender_records(), open.sender_records()), (records, json!([])));
    }

    #[test]
    fn whatsapp_operation_needs_a_route() {
        let no_whatsapp =
            SandboxAccount::new(scenario::AccountSettings { whatsapp: false, ..scenario::AccountSettings::default() });
        assert_eq!(
            no_whatsapp.check_allowed(&send_request("OlenaCo", Channel::Whatsapp)),
            Err(OperationError::NO_ROUTE)
        );
        assert_eq!(no_whatsapp.check_allowed(&send_request("OlenaCo", Channel::Sms)), Ok(()));
        assert_eq!(
            SandboxAccount::new(scenario::AccountSettings::default())
                .check_allowed(&send_request("OlenaCo", Channel::Whatsapp)),
            Ok(())
        );
    }

    #[test]
    fn balance_is_exact_and_never_overdrawn() {
        let amount = |text: &str| text.parse::<Amount>().expect("an amount");
        let balance = amount("1.000001");
        let mut account =
            SandboxAccount::new(scenario::AccountSettings { balance, ..scenario::AccountSettings::default() });
        assert_eq!(account.charge(amount("1.000002")), Err(OperationError::NO_MONEY));
        assert_eq!(account.charge(balance), Ok(()));
        assert_eq!(account.charge(amount("0.000001")), Err(OperationError::NO_MONEY));
        account.refund(amount("0.000001"));
        assert_eq!(account.balance(), amount("0.000001"));
    }
}

#[cfg(test)]
mod limit_tests {
    use proptest::prelude::*;

    use super::*;

    fn limiter(rate: f64, burst: u32) -> OperationLimiter {
        OperationLimiter::new(scenario::OperationLimit { rate, burst: NonZeroU32::new(burst).expect("a burst") })
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a time")
    }

    #[test]
    fn limiter_allows_a_burst_and_then_the_rate() {
        let mut limit = limiter(50.0, 50);
        assert_eq!(limit.take_operations(50, at(0)), Ok(()));
        assert_eq!(limit.take_operations(10, at(0)), Err(Duration::from_millis(200)));
        assert_eq!(limit.take_operations(10, at(200)), Ok(()));
        assert_eq!(limit.take_operations(50, at(60_000)), Ok(()), "a rest saves up a burst");
        assert_eq!(limit.take_operations(1, at(60_000)), Err(Duration::from_millis(20)), "and no more");
    }

    #[test]
    fn request_larger_than_the_burst_is_never_allowed() {
        let mut limit = limiter(50.0, 50);
        assert_eq!(limit.take_operations(51, at(0)), Err(Duration::from_secs(1)));
        assert_eq!(limit.take_operations(50, at(0)), Ok(()));
        assert_eq!(limit.take_operations(0, at(0)), Ok(()));
    }

    proptest! {
        #[test]
        fn no_window_exceeds_burst_plus_rate(
            rate in 1_u32..1_000, burst in 1_u32..200, steps in prop::collection::vec((0_i64..500, 1_usize..50), 1..200),
        ) {
            let mut limit = limiter(rate.into(), burst);
            let (mut now, mut accepted) = (at(0), Vec::new());
            for (pause, count) in steps {
                now += Duration::from_millis(pause as u64);
                if let Err(wait) = limit.take_operations(count, now) {
                    if count as u32 > burst {
                        continue;
                    }
                    // One more nanosecond makes up for the rounding of the limiter's periods to whole nanoseconds.
                    now += wait + Duration::from_nanos(1);
                    prop_assert_eq!(limit.take_operations(count, now), Ok(()));
                }
                accepted.push((now, count));
            }
            for (first, &(since, _)) in accepted.iter().enumerate() {
                let mut sum = 0;
                for &(until, count) in &accepted[first..] {
                    sum += count;
                    let max_accepted = f64::from(burst) + f64::from(rate) * until.duration_since(since).as_secs_f64();
                    prop_assert!(sum as f64 <= max_accepted + 0.001, "{sum} of {max_accepted}");
                }
            }
        }
    }
}

#[cfg(test)]
mod templates_tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use crate::platform::account::*;

    fn now() -> VirtualTime {
        VirtualTime::from_timestamp(Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn template_record_has_character_and_part_counts() {
        let mut templates = Templates::default();
        for (text, count) in
            [("Hi there", "8 / 1"), (&*"я".repeat(71), "71 / 2"), ("€", "2 / 1"), (&*"a".repeat(161), "161 / 2")]
        {
            assert_eq!(templates.create_sms("name", text, now()).expect("kept")["count"], count);
        }
    }

    #[test]
    fn viber_template_status_follows_review_time() {
        let mut scenario = Scenario { template_review: Duration::from_secs(10), ..Scenario::default() };
        let mut templates = Templates::default();
        assert_eq!(templates.create_viber("OlenaCo", "Hi", now()).expect("kept")["status"], "new");
        for (seconds, approved, status) in [
            (9, true, "new"),
            (10, true, "submitted"),
            (19, false, "submitted"),
            (20, true, "approved"),
            (20, false, "rejected"),
            (2_000_000, false, "rejected"),
        ] {
            scenario.templates_approved = approved;
            let list = templates.list_viber(&scenario, now().saturating_add(Duration::from_secs(seconds)));
            assert_eq!(list[0]["status"], status, "after {seconds} s");
        }
    }

    #[test]
    fn deleted_template_id_is_never_reused() {
        let mut templates = Templates::default();
        let first = templates.create_sms("a", "text", now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!(
            (
                templates.sms.delete_template(first, None),
                templates.sms.delete_template(first, None),
                templates.sms.delete_template(9, None)
            ),
            (1, 0, 0)
        );
        assert!(templates.create_sms("b", "text", now()).expect("kept")["id"].as_u64().expect("a number") > first);
        let viber = templates.create_viber("OlenaCo", "text", now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!([Some("another"), Some("text")].map(|text| templates.viber.delete_template(viber, text)), [0, 1]);
        assert!(templates.list_viber(&Scenario::default(), now()) == json!([]));
    }

    #[test]
    fn template_limit_applies_until_a_template_is_deleted() {
        let mut templates = Templates::default();
        for _ in 0..MAX_TEMPLATES {
            templates.create_sms("a", "b", now()).expect("kept");
        }
        assert_eq!(templates.create_sms("a", "b", now()).err(), Some(OperationError::TOO_MANY_TEMPLATES));
        assert_eq!(templates.sms.delete_template(1, None), 1);
        templates.create_sms("a", "b", now()).expect("kept");
        let largest_text = "b".repeat(MAX_TEMPLATE_BYTES);
        let id = templates.create_viber("", &largest_text, now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!(templates.create_viber("", "b", now()).err(), Some(OperationError::TOO_MANY_TEMPLATES));
        assert_eq!(templates.viber.delete_template(id, None), 1);
        templates.create_viber("", "b", now()).expect("kept");
    }
}
