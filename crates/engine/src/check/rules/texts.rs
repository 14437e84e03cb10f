//! Checks of the texts of a campaign, independent of its recipients.

use std::borrow::Cow;

use super::{cell_values, damaged_text, expressions, links, markup, wording};
use crate::check::compiled_campaign::to_finding;
use campaign_content::message::{LookupTable, TextProblem, find_defined_names};
use campaign_core::domain::{MessageContent, NamedTemplate, Stage};
use campaign_core::finding::Finding;
use campaign_manifest::{Campaign, MessageVariant};

/// The rules about a single text.
const WORDING_RULES: [fn(&NamedTemplate) -> Vec<TextProblem>; 10] = [
    wording::check_mixed_alphabets,
    links::check_insecure_links,
    links::check_broken_links,
    wording::check_unfinished_text,
    damaged_text::check_damaged_text,
    markup::check_html_tags,
    markup::check_url_escapes,
    markup::check_markdown,
    markup::check_escaped_line_breaks,
    expressions::check_filter_arguments,
];

/// Findings about the texts, constants and links of a campaign, at their places.
#[must_use]
pub fn check_texts(campaign: &Campaign) -> Vec<Finding> {
    let brief = &campaign.brief;
    let texts = collect_texts(campaign);
    let stages = || brief.all_contents().flat_map(|content| &content.stages);
    let constants = brief.constant_names();
    let mut problems: Vec<TextProblem> = texts.iter().flat_map(|text| check_wording(text, &constants)).collect();
    let of_stages = [wording::check_code_text, wording::check_constant_code, wording::check_long_buttons];
    problems.extend(stages().flat_map(|stage| of_stages.into_iter().flat_map(move |judge| judge(stage))));
    // The wording of a missing text is unknown.
    let problems = problems.into_iter().filter(|problem| !NamedTemplate::is_stand_in(&problem.text));
    let mut findings: Vec<Finding> = problems.map(|problem| to_finding(problem, Some(&campaign.places))).collect();
    findings.extend(expressions::check_unused_constants(campaign));
    findings
}

/// The texts, constants and links of a campaign; a file that several channels use appears once.
pub(super) fn collect_texts(campaign: &Campaign) -> Vec<NamedTemplate> {
    let brief = &campaign.brief;
    let mut texts: Vec<NamedTemplate> = Vec::new();
    let stages = || brief.all_contents().flat_map(|content| &content.stages);
    let stage_texts = stages().flat_map(Stage::texts).map(|(_, text)| text.clone());
    let own = |variant: &'_ MessageVariant| {
        let text = |(name, value): &(String, String)| NamedTemplate {
            name: format!("variants.{}.vars.{name}", variant.name),
            source: value.clone(),
        };
        variant.vars.iter().map(text).collect::<Vec<_>>()
    };
    let vars =
        brief.vars.iter().map(|(name, value)| NamedTemplate { name: format!("vars.{name}"), source: value.clone() });
    for text in stage_texts.chain(vars).chain(brief.variants.iter().flat_map(own)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Findings about included texts, given by name and source.
#[must_use]
pub fn check_includes(includes: &[(String, String)], campaign: &Campaign) -> Vec<Finding> {
    let texts = includes
        .iter()
        .filter(|(name, _)| !LookupTable::is_source(name))
        .map(|(name, source)| NamedTemplate { name: name.clone(), source: source.clone() });
    let constants = campaign.brief.constant_names();
    let problems = texts.flat_map(|text| check_wording(&text, &constants));
    problems.map(|problem| to_finding(problem, Some(&campaign.places))).collect()
}

/// Findings about the texts of a single, complete message.
#[must_use]
pub fn check_message(content: &MessageContent<Cow<'_, str>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stage in &content.stages {
        for (field, text) in stage.texts() {
            let template = NamedTemplate { name: field.key.to_owned(), source: text.to_string() };
            findings.extend(WORDING_RULES.into_iter().flat_map(|judge| judge(&template)).map(finding_without_place));
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

/// A finding about a text that is not in a file.
fn finding_without_place(problem: TextProblem) -> Finding {
    let finding = Finding::new(problem.rule, problem.message);
    match problem.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn check_wording(text: &NamedTemplate, constants: &[&str]) -> Vec<TextProblem> {
    let mut problems: Vec<TextProblem> = WORDING_RULES.into_iter().flat_map(|judge| judge(text)).collect();
    let defined = find_defined_names(&text.source).collect();
    problems.extend(expressions::check_comparisons(text, |name| expressions::may_be_column(&defined, constants, name)));
    problems
}
