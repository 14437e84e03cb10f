//! Rules about a campaign, its texts, its list and its account; each file covers one topic.
//!
//! A rule has an id, a severity, a cause, an example and a fix. Each file first defines its rules, one list for each
//! group of `campaign explain`, and then the functions that apply them. Rules about a single file are in
//! [`finding::rules`](campaign_core::finding::rules), because the code that reads the file needs them.

mod campaign_tests;
mod cell_values;
mod countries;
mod damaged_text;
mod environment;
mod expressions;
mod links;
mod list;
mod markup;
mod opt_out_instructions;
mod recipients;
mod schedule;
mod skipped_rows;
mod window;
mod wording;

use std::borrow::Cow;
use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::check::Survey;
use crate::check::compiled_campaign::to_finding;
use campaign_content::message::{LookupTable, TextProblem, find_defined_names, find_mentions};
use campaign_core::domain::{MessageContent, NamedTemplate, Stage};
use campaign_core::finding::{Finding, Rule, rules};
use campaign_manifest::{Campaign, MessageVariant, Profile};

pub(super) use campaign_tests::{TEST_FAILED, TEST_NOT_RUN};
pub use cell_values::{DatabaseValue, check_empty_cells, check_lookup_table, check_row_anomalies};
pub(super) use cell_values::{find_database_value, has_empty_greeting, is_code_after_apostrophe};
pub use countries::{
    ABROAD_LIMIT, CountryCount, RecipientCountries, check_abroad_limit, check_new_countries, describe_abroad,
    describe_countries, sum_recipients,
};
pub use damaged_text::TextDamage;
pub(super) use damaged_text::{ByteKinds, find_damage_in};
pub use environment::{
    KEY_REFUSED, ONLINE_UNKNOWN, SENDER_UNKNOWN, check_campaign_notices, check_promised_receipts, check_replicas,
    unfamiliar_ledger_finding,
};
pub(super) use environment::{check_balance, check_sender_name, key_rejected_finding, unknown_account_data_finding};
pub(super) use expressions::find_failing_comparisons;
pub(super) use links::{breaks_link, can_break_link, is_insecure_link};
pub use list::{
    check_embedded_rows, check_inverted_zones, check_unknown_zones, list_format_note, missing_zone_column_finding,
};
pub use recipients::{
    RECIPIENTS_LIMIT, check_changed_rows, check_consent_dates, check_consent_source, check_differing_duplicates,
    check_landlines, check_limits, check_list_limit, check_opted_out_rows, check_recipients_limit,
    check_unused_consents,
};
pub(super) use recipients::{check_duplicate_number, missing_consent_column_finding};
pub use schedule::NEVER_SENDS;
pub(super) use schedule::{
    check_immediate_run, check_late_list, check_past_run, check_run, check_schedule, check_skipped_occurrences,
    schedule_over_finding,
};
pub(super) use skipped_rows::{check_empty_selection, check_failing_texts, check_invalid_share, check_no_text_chosen};
pub use skipped_rows::{check_invalid_rows, check_no_messages};
pub use window::{NIGHT, check_campaign_zone_fallback, check_night, check_until_passed};
pub(super) use window::{check_late_start, check_until_near, check_until_near_on_dates};
pub use wording::check_costly_characters;
pub(super) use wording::find_mixed_word;

/// All rules, in groups.
pub fn rule_groups() -> Vec<RuleGroup> {
    let lists: [(&str, &[&[&Rule]]); 5] = [
        ("Campaigns and gateways", &[campaign_tests::CAMPAIGN, environment::CAMPAIGN, window::CAMPAIGN]),
        ("Sending times", &[schedule::TIMING, window::TIMING]),
        (
            "Message wording",
            &[
                cell_values::TEXTS,
                damaged_text::TEXTS,
                expressions::TEXTS,
                links::TEXTS,
                markup::TEXTS,
                opt_out_instructions::TEXTS,
                wording::TEXTS,
            ],
        ),
        (
            "Recipients and their messages",
            &[
                cell_values::RECIPIENTS,
                countries::RECIPIENTS,
                links::RECIPIENTS,
                list::RECIPIENTS,
                recipients::RECIPIENTS,
                skipped_rows::RECIPIENTS,
                wording::RECIPIENTS,
            ],
        ),
        ("Gateway account", &[environment::ACCOUNT]),
    ];
    let file_groups = rules::GROUPS.iter().map(|&(title, rules)| RuleGroup { title, rules: rules.to_vec() });
    let topic_groups = lists.into_iter().map(|(title, lists)| {
        let mut rules = lists.concat();
        rules.sort_by_key(|rule| rule.id);
        RuleGroup { title, rules }
    });
    file_groups.chain(topic_groups).collect()
}

/// Rules about one topic.
#[derive(Clone, Debug)]
pub struct RuleGroup {
    /// The topic.
    pub title: &'static str,
    /// The rules, in the order in which `campaign explain` lists them.
    pub rules: Vec<&'static Rule>,
}

/// All rules, group by group. No two rules have the same id.
pub fn all_rules() -> impl Iterator<Item = &'static Rule> {
    rule_groups().into_iter().flat_map(|group| group.rules)
}

/// Checks a campaign against its gateway profile: limits, endpoints, prices, windows, links and opt-out instructions.
///
/// Defaults never cause a finding, because the profile overrides them
/// ([`DeliverySettings::with_profile_limits`](campaign_manifest::DeliverySettings::with_profile_limits)).
pub fn check_against_profile(campaign: &Campaign, profile: &Profile) -> Vec<Finding> {
    let checks: [fn(&Campaign, &Profile) -> Option<Finding>; 11] = [
        environment::check_batch_limit,
        environment::check_rate_limit,
        environment::check_mandatory,
        environment::check_endpoint,
        environment::check_webhook_address,
        environment::check_prices,
        window::check_window,
        environment::check_profile_notices,
        links::check_example_links,
        opt_out_instructions::check_opt_out_instructions,
        opt_out_instructions::check_impossible_replies,
    ];
    checks.into_iter().filter_map(|check| check(campaign, profile)).collect()
}

/// Collects notes about a campaign and, if it was surveyed, about its list: facts that are not mistakes.
pub fn collect_notes(
    campaign: &Campaign,
    profile: Option<&Profile>,
    survey: Option<&Survey>,
    due: Option<Timestamp>,
) -> Vec<Finding> {
    let content = &campaign.brief.content;
    let messages = survey.map_or(0, Survey::count_planned);
    let notes = [
        window::check_late_fallback(campaign),
        window::check_fallback_window(campaign, profile, messages, due),
        profile.and_then(|profile| environment::note_manually_enabled_channel(campaign, profile)),
        survey.and_then(|survey| wording::check_constant_message(survey, content.kind)),
        survey.and_then(|survey| links::check_constant_link(survey, &campaign.brief)),
        survey.and_then(|survey| list::check_unused_columns(survey, content.kind)),
    ];
    notes.into_iter().flatten().collect()
}

/// The checks of a single text.
const TEXT_CHECKS: [fn(&NamedTemplate) -> Vec<TextProblem>; 12] = [
    wording::check_mixed_alphabets,
    links::check_insecure_links,
    links::check_broken_links,
    wording::check_unfinished_text,
    damaged_text::check_damaged_text,
    markup::check_html_tags,
    markup::check_url_escapes,
    markup::check_markdown,
    markup::check_stray_tag_ends,
    markup::check_alternative_texts,
    markup::check_escaped_line_breaks,
    expressions::check_filter_arguments,
];

/// Findings about the texts, constants and links of a campaign, each with its location.
pub fn check_texts(campaign: &Campaign) -> Vec<Finding> {
    let brief = &campaign.brief;
    let texts = collect_texts(campaign);
    let stages = || brief.all_contents().flat_map(|content| &content.stages);
    let constants = brief.constant_names();
    let mut problems: Vec<TextProblem> = texts.iter().flat_map(|text| check_wording(text, &constants)).collect();
    let stage_checks = [wording::check_code_text, wording::check_constant_code, wording::check_long_buttons];
    problems.extend(texts.iter().flat_map(|text| expressions::check_variant_names(text, brief)));
    problems.extend(stages().flat_map(|stage| stage_checks.into_iter().flat_map(move |check| check(stage))));
    // The wording of a missing text is unknown.
    let problems = problems.into_iter().filter(|problem| !NamedTemplate::is_placeholder(&problem.text));
    let mut findings: Vec<Finding> = problems.map(|problem| to_finding(problem, Some(&campaign.places))).collect();
    findings.extend(expressions::check_unused_constants(campaign));
    findings.extend(expressions::check_same_variants(campaign));
    findings
}

/// The texts, constants and links of a campaign; a file that several channels use appears once.
pub(super) fn collect_texts(campaign: &Campaign) -> Vec<NamedTemplate> {
    let brief = &campaign.brief;
    let mut texts: Vec<NamedTemplate> = Vec::new();
    let stages = || brief.all_contents().flat_map(|content| &content.stages);
    let stage_texts = stages().flat_map(Stage::texts).map(|(_, text)| text.clone());
    let variant_vars = |variant: &'_ MessageVariant| {
        let text = |(name, value): &(String, String)| NamedTemplate {
            name: format!("variants.{}.vars.{name}", variant.name),
            source: value.clone(),
        };
        variant.vars.iter().map(text).collect::<Vec<_>>()
    };
    let vars =
        brief.vars.iter().map(|(name, value)| NamedTemplate { name: format!("vars.{name}"), source: value.clone() });
    for text in stage_texts.chain(vars).chain(brief.variants.iter().flat_map(variant_vars)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Reads the texts that these texts include or extend, directly or through other texts. An unreadable text is `None`.
fn read_included_texts<'t>(
    texts: impl Iterator<Item = &'t NamedTemplate>,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> Vec<Option<NamedTemplate>> {
    let (mut names, mut included) = (BTreeSet::new(), Vec::new());
    let mut remaining: Vec<String> = texts.flat_map(|text| find_mentions(text).texts).collect();
    while let Some(name) = remaining.pop() {
        if names.insert(name.clone()) {
            let text = load(&name).map(|source| NamedTemplate { name, source });
            remaining.extend(text.iter().flat_map(|text| find_mentions(text).texts));
            included.push(text);
        }
    }
    included
}

/// Findings about included texts, given by name and source.
pub fn check_includes(includes: &[(String, String)], campaign: &Campaign) -> Vec<Finding> {
    let texts = includes
        .iter()
        .filter(|(name, _)| !LookupTable::is_source_name(name))
        .map(|(name, source)| NamedTemplate { name: name.clone(), source: source.clone() });
    let constants = campaign.brief.constant_names();
    let problems = texts.flat_map(|text| check_wording(&text, &constants));
    problems.map(|problem| to_finding(problem, Some(&campaign.places))).collect()
}

/// Findings about the texts of a single, complete message.
pub fn check_message(content: &MessageContent<Cow<'_, str>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stage in &content.stages {
        for (field, text) in stage.texts() {
            let template = NamedTemplate { name: field.key.to_owned(), source: text.to_string() };
            findings.extend(TEXT_CHECKS.into_iter().flat_map(|check| check(&template)).map(finding_without_place));
            if field.key == "message" && cell_values::has_empty_greeting(text) {
                findings.push(cell_values::report_empty_greeting_in_message());
            }
        }
        findings.extend(stage.billed_text().and_then(|text| wording::check_costly_characters_in_message(text)));
    }
    let texts = content.map_texts(|text| NamedTemplate { name: String::new(), source: text.to_string() });
    findings.extend(texts.stages.iter().flat_map(wording::check_long_buttons).map(finding_without_place));
    findings
}

/// Converts a text problem to a finding without a location, because the text is not in a file.
fn finding_without_place(problem: TextProblem) -> Finding {
    let finding = Finding::new(problem.rule, problem.message);
    match problem.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn check_wording(text: &NamedTemplate, constants: &[&str]) -> Vec<TextProblem> {
    let mut problems: Vec<TextProblem> = TEXT_CHECKS.into_iter().flat_map(|check| check(text)).collect();
    let defined = find_defined_names(&text.source).collect();
    problems.extend(expressions::check_comparisons(text, |name| expressions::can_be_column(&defined, constants, name)));
    problems
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use campaign_core::finding::RuleText;
    use campaign_manifest::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

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
    fn settings_that_the_profile_does_not_allow_are_errors() {
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
            assert!(campaign.delivery.with_profile_limits(local).batch <= local.batch_limit);
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
