//! Policies for single messages: sending windows, caps and opt-outs of a profile, and of a campaign under test.
//!
//! Lookups and verification calls count as service messages: their recipients request them, so only the allowed
//! countries apply.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::guard::{combine_caps, suppression_policy};
use super::number_files::{read_suppressed_by_profile, read_suppressed_numbers};
use super::{Error, Inputs, run_blocking};
use campaign_core::domain::{CountrySet, FrequencyCap, Phone, Purpose, find_country, format_count, format_thousands};
use campaign_engine::delivery::{Departure, SendingHours, SendingRules, WallClock, ZoneSource};
use campaign_ledger::{Ledger, Run, SharedRun};
use campaign_manifest::{Campaign, Destination, Profile, SendingWindow, WindowZone};

/// The reason a policy holds a message back.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyRefusal {
    /// Recipients opted out of messages with this purpose.
    #[error("{} opted out of {}; nothing was sent", describe_held_recipients(.0), describe_opt_out_scope(*.1))]
    Suppressed(Vec<HeldRecipient>, Purpose),
    /// The profile forbids messages that ignore opt-outs.
    #[error("the profile `{gateway}` forbids `mandatory: true`, but this run sets it; nothing was sent")]
    Mandatory {
        /// The name of the profile that forbids such messages.
        gateway: String,
    },
    /// Recipients have no consent, and the campaign or the profile requires it.
    #[error("marketing requires consent, but none is recorded for {}; nothing was sent", describe_held_recipients(.0))]
    NoConsent(Vec<HeldRecipient>),
    /// The window is closed.
    #[error("{}; nothing was sent", describe_closed_window(.opens.as_ref()))]
    OutsideWindow {
        /// The time at which the window opens in the recipient's time zone. `None` if it stays closed for a year.
        opens: Option<Zoned>,
    },
    /// The recipient has reached a cap.
    #[error("the recipient has reached the message cap; nothing was sent")]
    Capped,
    /// The numbers are outside the countries of a campaign or of the profile's policy.
    #[error(
        "not in the allowed countries ({allowed}): {}; nothing was sent",
        describe_held_recipients(.held)
    )]
    OutsideCountries {
        /// The recipients.
        held: Vec<HeldRecipient>,
        /// The allowed countries.
        allowed: CountrySet,
    },
    /// A test has more recipients than an edition allows, and the profile names no approvers.
    #[error("{}; nothing was sent", describe_too_many_tests(*.number, *.limit))]
    TooManyTests {
        /// The number of recipients that the run would have.
        number: u64,
        /// The maximum number of test recipients per edition.
        limit: u64,
    },
    /// A test has more recipients than an edition allows, and the profile names approvers.
    #[error(
        "{}; the profile for the gateway `{gateway}` requires an approval for more recipients; nothing was sent",
        describe_too_many_tests(*.number, *.limit)
    )]
    UnapprovedTests {
        /// The digest of the plan that waits for an approval.
        digest: String,
        /// The name of the profile, which has an `approval` rule.
        gateway: String,
        /// The number of recipients that the run would have.
        number: u64,
        /// The maximum number of recipients that needs no approval.
        limit: u64,
    },
}

/// A recipient whose message is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRecipient {
    /// The position among the recipients of the command, from 1.
    pub place: usize,
    /// The number.
    pub phone: Phone,
}

/// Describes a closed sending window, and when the window opens.
pub fn describe_closed_window(opens: Option<&Zoned>) -> String {
    match opens {
        Some(opens) => format!("the sending window is closed; it opens at {}", format_local(opens)),
        None => "the sending window is closed and does not open within a year".to_owned(),
    }
}

/// Formats a time with its time zone.
fn format_local(time: &Zoned) -> String {
    let zone = time.time_zone().iana_name().map_or_else(|| time.offset().to_string(), str::to_owned);
    format!("{} ({zone})", time.strftime("%Y-%m-%d %H:%M"))
}

/// Describes the scope of the opt-outs that suppress messages with this purpose.
fn describe_opt_out_scope(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Marketing => "marketing messages",
        Purpose::Service => "all messages, including service messages",
    }
}

fn describe_held_recipients(recipients: &[HeldRecipient]) -> String {
    let named: Vec<String> = recipients
        .iter()
        .map(|recipient| format!("recipient {} ({})", recipient.place, recipient.phone.format_masked()))
        .collect();
    named.join(", ")
}

fn describe_too_many_tests(number: u64, limit: u64) -> String {
    let recipients = format_count(number, "recipient");
    format!("test messages for this edition would reach {recipients}; the limit is {}", format_thousands(limit))
}

/// The message caps for a message from an assistant.
pub(super) fn assistant_caps(destination: &Destination) -> Vec<FrequencyCap> {
    combine_caps(Purpose::Marketing, None, destination)
}

/// The sending hours for a message from an assistant. Without a campaign, windows use the recipient's time zone, or
/// this computer's time zone if the recipient's country has several time zones.
pub(super) fn assistant_hours(destination: &Destination) -> Option<SendingRules> {
    let window = destination.profile()?.window.as_ref()?.window.clone();
    Some(SendingRules { windows: vec![(window, ZoneSource::Country)], home: TimeZone::system(), until: None })
}

/// The sending hours for a test message: the windows of the campaign and the profile. A test has no row, so a window
/// with time zones from a column uses the campaign's time zone.
pub(super) fn test_hours(inputs: &Inputs) -> Option<SendingRules> {
    let Inputs { campaign, destination, .. } = inputs;
    let profile = Some(destination.profile()?);
    let zone_source = |zone: &WindowZone| match zone {
        WindowZone::Recipient => ZoneSource::Country,
        WindowZone::Campaign | WindowZone::Column(_) => ZoneSource::Campaign,
    };
    let windows: Vec<_> = campaign
        .effective_windows(profile)
        .map(|SendingWindow { window, zone }| (window.clone(), zone_source(zone)))
        .collect();
    (!windows.is_empty()).then(|| SendingRules { windows, home: campaign.home_zone(), until: None })
}

/// Returns a refusal if a window of the campaign or the profile is closed now for a message to this phone number.
/// Returns `None` if the windows are open, or depend on a column of the list.
pub fn find_closed_window(inputs: &Inputs, clock: fn() -> Timestamp, phone: Phone) -> Option<PolicyRefusal> {
    let mut windows = inputs.campaign.effective_windows(inputs.destination.profile());
    if windows.any(|window| matches!(window.zone, WindowZone::Column(_))) {
        return None;
    }
    refuse_closed_window(&build_hours(test_hours(inputs)?, clock), phone, clock()).err()
}

/// Refuses a message outside these sending hours. Returns the time before which the message must be sent, if there
/// is one.
pub(super) fn refuse_closed_window(
    hours: &SendingHours,
    phone: Phone,
    now: Timestamp,
) -> Result<Option<Timestamp>, PolicyRefusal> {
    match hours.check_departure(phone, now) {
        Departure::Open(until) => Ok(until),
        Departure::Closed(opens) => Err(PolicyRefusal::OutsideWindow { opens }),
    }
}

/// Refuses a message to phone numbers outside these countries.
pub(super) fn refuse_other_countries(allowed: Option<&CountrySet>, phones: &[Phone]) -> Result<(), PolicyRefusal> {
    let Some(allowed) = allowed else { return Ok(()) };
    let is_abroad = |recipient: &HeldRecipient| !allowed.contains(find_country(recipient.phone));
    let recipients = (1..).zip(phones.iter().copied()).map(|(place, phone)| HeldRecipient { place, phone });
    let recipients: Vec<HeldRecipient> = recipients.filter(is_abroad).collect();
    match recipients.is_empty() {
        true => Ok(()),
        false => Err(PolicyRefusal::OutsideCountries { held: recipients, allowed: allowed.clone() }),
    }
}

/// Builds the sending hours from these rules, with this clock.
pub(super) fn build_hours(rules: SendingRules, clock: fn() -> Timestamp) -> Arc<SendingHours> {
    let clock: WallClock = Arc::new(clock);
    Arc::new(SendingHours::new(rules, clock))
}

/// Refuses an assistant's message to a phone number in the profile's suppression files, which are read again.
pub(super) async fn refuse_suppressed_by_files(profile: &Profile, phone: Phone) -> Result<(), Error> {
    if profile.suppress.is_empty() {
        return Ok(());
    }
    let profile = profile.clone();
    // For a campaign, its `region` sets the country of national numbers in these files. Here, the recipient's country
    // is used.
    let region = find_country(phone);
    let opt_outs = run_blocking(move || read_suppressed_by_profile(&profile, region)).await?;
    match opt_outs.map_err(Error::Findings)?.numbers.contains(phone.to_u64()) {
        true => Err(PolicyRefusal::Suppressed(vec![HeldRecipient { place: 1, phone }], Purpose::Marketing).into()),
        false => Ok(()),
    }
}

/// Refuses to send a run that ignores opt-outs through a profile that forbids such runs.
pub(super) fn refuse_ignored_opt_outs(run: &Run, destination: &Destination) -> Result<(), PolicyRefusal> {
    match destination.profile() {
        Some(profile) if profile.forbids_mandatory && run.suppression.ignores_list() => {
            Err(PolicyRefusal::Mandatory { gateway: profile.name.clone() })
        }
        _ => Ok(()),
    }
}

/// Refuses a message of a run to a phone number that has opted out according to the ledger.
pub(super) async fn refuse_opted_out(ledger: &dyn Ledger, run: SharedRun, phone: Phone) -> Result<(), Error> {
    let opt_outs = ledger.find_opt_outs(phone).await?;
    match opt_outs.iter().any(|out| run.suppression.applies_opt_out(&run.campaign, out)) {
        true => {
            let held = vec![HeldRecipient { place: 1, phone }];
            Err(PolicyRefusal::Suppressed(held, run.suppression.purpose).into())
        }
        false => Ok(()),
    }
}

/// Finds the recipients of a test who opted out according to the ledger, or a suppression file of the campaign or the
/// profile.
pub(super) async fn find_suppressed(
    ledger: &dyn Ledger,
    inputs: &Arc<Inputs>,
    phones: &[Phone],
) -> Result<Vec<HeldRecipient>, Error> {
    let Campaign { brief, .. } = &inputs.campaign;
    let policy = suppression_policy(inputs, 0);
    let owned_inputs = Arc::clone(inputs);
    let in_files =
        run_blocking(move || read_suppressed_numbers(&owned_inputs.campaign, owned_inputs.destination.profile()))
            .await?;
    let in_files = in_files.map_err(Error::Findings)?.numbers;
    let mut held = Vec::new();
    for (place, phone) in (1..).zip(phones.iter().copied()) {
        let opt_outs = ledger.find_opt_outs(phone).await?;
        if in_files.contains(phone.to_u64()) || opt_outs.iter().any(|out| policy.applies_opt_out(&brief.name, out)) {
            held.push(HeldRecipient { place, phone });
        }
    }
    Ok(held)
}
