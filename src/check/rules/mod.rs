//! Rules about a campaign, its texts, its list and its account, one in each file.
//!
//! A file defines the rule (id, severity, cause, example, fix) and the function that applies it. Rules about a single file
//! are in [`finding::rules`](crate::finding::rules), because the code that reads the file needs them. `rows` words
//! findings about rows.

mod as_it_stands;
mod balance_too_low;
mod batch_limit;
mod broken_link;
mod cell_in_link;
mod cell_is_text;
mod changed_row;
mod closed_window;
mod code_for_all;
mod codes_only;
mod control_character;
mod costly_character;
mod damaged_text;
mod database_value;
mod dates;
mod differing_duplicates;
mod duplicate_number;
mod empty_cell;
mod empty_greeting;
mod escaped_line_break;
mod example_link;
mod fallback_outside;
mod filter_argument;
mod html_entity;
mod html_tag;
mod insecure_link;
mod invalid_row;
mod inverted_zone;
mod key_refused;
mod landline;
mod late_fallback;
mod late_start;
mod leading_apostrophe;
mod list_form;
mod long_button;
mod loop_over_text;
mod lost_letters;
mod markdown;
mod misread_encoding;
mod missing_endpoint;
mod missing_hook;
mod missing_price;
mod never_sends;
mod no_messages;
mod no_text_chosen;
mod nobody_meant;
mod notify_text;
mod odd_rows;
mod online_unknown;
mod opted_out_rows;
mod over_limits;
mod placeholder_value;
mod promised_receipts;
mod rate_limit;
mod row_within;
mod rows;
mod same_for_all;
mod same_link;
mod schedule_over;
mod sender_unknown;
mod skipped_occurrences;
mod texts;
mod too_many_invalid;
mod two_scripts;
mod unconfirmed_replica;
mod unfamiliar_ledger;
mod unfinished_text;
mod unknown_zone;
mod until_near;
mod until_over;
mod unused_column;
mod unused_constant;
mod url_escape;
mod whatsapp_route;

use jiff::Timestamp;

use crate::check::Survey;
use crate::finding::{Finding, Rule, rules};
use crate::manifest::{Campaign, Profile};

pub(super) use balance_too_low::check_balance as balance_too_low;
pub(super) use cell_in_link::{breaks_link, may_break_link};
pub(super) use cell_is_text::find_failing_comparisons;
pub use changed_row::check_changed_rows;
pub use costly_character::check_costly_characters;
pub use database_value::DatabaseValue;
pub(super) use database_value::find_database_value;
pub use differing_duplicates::check_differing_duplicates;
pub(super) use duplicate_number::check_duplicate_number as duplicate_number;
pub use empty_cell::check_empty_cells;
pub(super) use empty_greeting::has_empty_greeting as has_hole;
pub(super) use insecure_link::is_insecure_link;
pub(super) use invalid_row::check_failing_texts;
pub use invalid_row::check_invalid_rows;
pub use inverted_zone::check_inverted_zones;
pub use key_refused::RULE as KEY_REFUSED;
pub(super) use key_refused::key_rejected_finding as key_refused;
pub use landline::check_landlines;
pub(super) use late_start::check_late_start;
pub(super) use leading_apostrophe::is_code_behind_apostrophe;
pub use list_form::list_form_note;
pub use never_sends::RULE as NEVER_SENDS;
pub(super) use never_sends::{check_past_run, check_run, check_schedule};
pub use no_messages::check_no_messages;
pub(super) use no_text_chosen::check_no_text_chosen as no_text_chosen;
pub(super) use nobody_meant::check_nobody_meant as nobody_meant;
pub use notify_text::check_campaign_notices;
pub use odd_rows::check_row_anomalies;
pub use online_unknown::RULE as ONLINE_UNKNOWN;
pub(super) use online_unknown::online_unknown_finding as online_unknown;
pub use opted_out_rows::check_opted_out_rows;
pub use over_limits::{check_limits, check_list_limit};
pub use promised_receipts::check_promised_receipts;
pub use row_within::check_embedded_rows;
pub(super) use schedule_over::schedule_over_finding;
pub use sender_unknown::RULE as SENDER_UNKNOWN;
pub(super) use sender_unknown::check_sender_name as sender_unknown;
pub(super) use skipped_occurrences::{check_late_list, check_skipped_occurrences};
pub use texts::{check_includes, check_message, check_texts};
pub(super) use too_many_invalid::check_invalid_share as too_many_invalid;
pub(super) use two_scripts::find_mixed_word as slipped_word;
pub use unconfirmed_replica::check_replicas;
pub use unfamiliar_ledger::unfamiliar_ledger_finding;
pub use unknown_zone::{check_unknown_zones, missing_zone_column};
pub(super) use until_near::{check_until_near, check_until_near_on_dates};
pub use until_over::check_until_over;

/// Rules about a campaign and its gateway profile.
static CAMPAIGN: &[&Rule] = &[
    &batch_limit::RULE,
    &closed_window::RULE,
    &fallback_outside::RULE,
    &late_fallback::RULE,
    &missing_endpoint::RULE,
    &missing_hook::RULE,
    &missing_price::RULE,
    &notify_text::RULE,
    &promised_receipts::RULE,
    &rate_limit::RULE,
    &unconfirmed_replica::RULE,
    &unfamiliar_ledger::RULE,
    &whatsapp_route::RULE,
];

/// Rules about the times of sending.
static TIMING: &[&Rule] =
    &[&late_start::RULE, &never_sends::RULE, &schedule_over::RULE, &skipped_occurrences::RULE, &until_near::RULE];

/// Rules about texts.
static TEXTS: &[&Rule] = &[
    &broken_link::RULE,
    &cell_is_text::RULE,
    &code_for_all::RULE,
    &codes_only::RULE,
    &control_character::RULE,
    &escaped_line_break::RULE,
    &example_link::RULE,
    &filter_argument::RULE,
    &html_entity::RULE,
    &html_tag::RULE,
    &insecure_link::RULE,
    &long_button::RULE,
    &loop_over_text::RULE,
    &lost_letters::RULE,
    &markdown::RULE,
    &misread_encoding::RULE,
    &two_scripts::RULE,
    &unfinished_text::RULE,
    &unused_constant::RULE,
    &url_escape::RULE,
];

/// Rules about recipients and their messages.
static RECIPIENTS: &[&Rule] = &[
    &cell_in_link::RULE,
    &changed_row::RULE,
    &costly_character::RULE,
    &database_value::RULE,
    &differing_duplicates::RULE,
    &duplicate_number::RULE,
    &empty_cell::RULE,
    &empty_greeting::RULE,
    &invalid_row::RULE,
    &inverted_zone::RULE,
    &landline::RULE,
    &leading_apostrophe::RULE,
    &list_form::RULE,
    &no_messages::RULE,
    &no_text_chosen::RULE,
    &nobody_meant::RULE,
    &opted_out_rows::RULE,
    &over_limits::RULE,
    &placeholder_value::RULE,
    &row_within::RULE,
    &same_for_all::RULE,
    &same_link::RULE,
    &too_many_invalid::RULE,
    &unknown_zone::RULE,
    &unused_column::RULE,
];

/// Rules about the account at the gateway.
static ACCOUNT: &[&Rule] = &[&balance_too_low::RULE, &key_refused::RULE, &online_unknown::RULE, &sender_unknown::RULE];

/// All rules, in groups.
#[must_use]
pub fn rule_groups() -> Vec<RuleGroup> {
    let here = [
        ("Campaigns and gateways", CAMPAIGN),
        ("Sending times", TIMING),
        ("Message wording", TEXTS),
        ("Recipients and their messages", RECIPIENTS),
        ("Gateway account", ACCOUNT),
    ];
    rules::GROUPS.iter().copied().chain(here).map(|(title, rules)| RuleGroup { title, rules }).collect()
}

/// Rules about one topic.
#[derive(Clone, Copy, Debug)]
pub struct RuleGroup {
    /// The topic.
    pub title: &'static str,
    /// The rules.
    pub rules: &'static [&'static Rule],
}

/// All rules.
pub fn all_rules() -> impl Iterator<Item = &'static Rule> {
    rule_groups().into_iter().flat_map(|group| group.rules.iter().copied())
}

/// Values of a campaign file that its gateway profile does not allow.
///
/// Defaults are never a finding: they give way to the profile
/// ([`Delivery::within`](crate::manifest::Delivery::within)).
#[must_use]
pub fn check_against_profile(campaign: &Campaign, profile: &Profile) -> Vec<Finding> {
    let rules: [fn(&Campaign, &Profile) -> Option<Finding>; 8] = [
        batch_limit::check_batch_limit,
        rate_limit::check_rate_limit,
        missing_endpoint::check_endpoint,
        missing_hook::check_webhook_address,
        missing_price::check_prices,
        closed_window::check_window,
        notify_text::check_profile_notices,
        example_link::check_example_links,
    ];
    rules.into_iter().filter_map(|judge| judge(campaign, profile)).collect()
}

/// Notes about a campaign, and about its list if that is known: facts that are not mistakes.
#[must_use]
pub fn collect_notes(
    campaign: &Campaign,
    profile: Option<&Profile>,
    survey: Option<&Survey>,
    due: Option<Timestamp>,
) -> Vec<Finding> {
    let content = &campaign.brief.content;
    let messages = survey.map_or(0, Survey::count_planned);
    let notes = [
        late_fallback::check_late_fallback(campaign),
        fallback_outside::check_fallback_window((campaign, profile), messages, due),
        profile.and_then(|profile| whatsapp_route::note_whatsapp_route(campaign, profile)),
        survey.and_then(|survey| same_for_all::check_constant_message(survey, content.kind)),
        survey.and_then(|survey| same_link::check_constant_link(survey, &campaign.brief)),
        survey.and_then(|survey| unused_column::check_unused_columns(survey, content.kind)),
    ];
    notes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::finding::RuleText;
    use crate::manifest::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

    const GATEWAYS: &str = "\
production:
  base_url: https://g.example
  api_key: { env: KEY }
  rate: 100/s
local:
  base_url: http://127.0.0.1:9000
  api_key: { env: KEY }
  rate: unlimited
";

    #[test]
    fn values_beyond_the_profile_are_errors() {
        let cases: [(&str, &[&str]); 5] = [
            ("delivery: { batch: 101, rate: 101/s }\n", &["batch-limit", "rate-limit"]),
            ("delivery: { batch: 100, rate: 100/s }\n", &[]),
            ("delivery: { rate: unlimited }\n", &["unlimited-rate"]),
            ("endpoint: async\n", &["missing-endpoint"]),
            ("", &[]),
        ];
        let folder = TempDir::new().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, GATEWAYS).unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        for (delivery, rules) in cases {
            fs::write(&file, format!("{delivery}recipients: {{ file: a.csv }}\nchannels: [hlr]\n")).unwrap();
            let campaign = load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now())).value.unwrap();
            let findings = check_against_profile(&campaign, gateways.find_profile("production").unwrap());
            assert_eq!(findings.iter().map(|finding| finding.rule.id).collect::<Vec<_>>(), rules);
            let local = gateways.find_profile("local").unwrap();
            assert!(campaign.delivery.limited_by_profile(local).batch <= local.batch_limit);
        }
    }

    #[test]
    fn rule_has_a_unique_id_and_a_complete_explanation() {
        let mut ids = BTreeSet::new();
        for rule in all_rules() {
            assert!(ids.insert(rule.id), "two rules have the id `{}`", rule.id);
            assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{rule}");
            let RuleText { cause, example, fix } = &rule.text;
            let is_sentence = cause.starts_with(|c: char| c.is_uppercase() || c == '`') && cause.ends_with('.');
            assert!(is_sentence, "the cause of {rule} is not a sentence: {cause}");
            let is_fragment = fix.starts_with(|c: char| c.is_lowercase() || c == '`') && !fix.ends_with('.');
            assert!(is_fragment, "the fix of {rule} starts with a capital or ends with a full stop: {fix}");
            assert!(!example.is_empty() && example.iter().all(|line| !line.is_empty()), "{rule} has no example");
            assert!(!cause.contains("contract") && !fix.contains("contract"), "{rule} is for engineers");
        }
        assert!(ids.len() > 90, "only {} rules", ids.len());
    }
}
