//! What the texts of a campaign show by themselves, whoever gets them.

use std::borrow::Cow;

use super::{
    broken_link, cell_is_text, code_for_all, codes_only, costly_character, damaged_text, empty_greeting,
    escaped_line_break, filter_argument, html_tag, insecure_link, long_button, markdown, two_scripts, unfinished_text,
    unused_constant, url_escape,
};
use crate::check::prepare::to_finding;
use crate::domain::{MessageContent, NamedTemplate, Stage};
use crate::finding::Finding;
use crate::manifest::{Campaign, MessageVariant};
use crate::message::{LookupTable, TextProblem, find_defined_names};

/// The rules that judge the words of a single text.
const WORDING_RULES: [fn(&NamedTemplate) -> Vec<TextProblem>; 10] = [
    two_scripts::check_mixed_alphabets,
    insecure_link::check_insecure_links,
    broken_link::check_broken_links,
    unfinished_text::check_unfinished_text,
    damaged_text::check_damaged_text,
    html_tag::check_html_tags,
    url_escape::check_url_escapes,
    markdown::check_markdown,
    escaped_line_break::check_escaped_line_breaks,
    filter_argument::check_filter_arguments,
];

/// What the texts, constants and links of a campaign show, each at its place.
#[must_use]
pub fn check_texts(campaign: &Campaign) -> Vec<Finding> {
    let brief = &campaign.brief;
    let texts = collect_texts(campaign);
    let stages = || brief.all_contents().flat_map(|content| &content.stages);
    let constants = brief.constant_names();
    let mut problems: Vec<TextProblem> = texts.iter().flat_map(|text| check_wording(text, &constants)).collect();
    let of_stages = [codes_only::check_code_text, code_for_all::check_constant_code, long_button::check_long_buttons];
    problems.extend(stages().flat_map(|stage| of_stages.into_iter().flat_map(move |judge| judge(stage))));
    // The words of a missing text are unknown.
    let problems = problems.into_iter().filter(|problem| !NamedTemplate::is_stand_in(&problem.text));
    let mut findings: Vec<Finding> = problems.map(|problem| to_finding(problem, Some(&campaign.places))).collect();
    findings.extend(unused_constant::check_unused_constants(campaign));
    findings
}

/// The texts, constants and links of a campaign; a file that several channels use appears once.
pub(super) fn collect_texts(campaign: &Campaign) -> Vec<NamedTemplate> {
    let brief = &campaign.brief;
    let mut texts: Vec<NamedTemplate> = Vec::new();
    let stages = || brief.all_contents().flat_map(|content| &content.stages);
    let said = stages().flat_map(Stage::texts).map(|(_, text)| text.clone());
    let own = |variant: &'_ MessageVariant| {
        let text = |(name, value): &(String, String)| NamedTemplate {
            name: format!("variants.{}.vars.{name}", variant.name),
            source: value.clone(),
        };
        variant.vars.iter().map(text).collect::<Vec<_>>()
    };
    let vars =
        brief.vars.iter().map(|(name, value)| NamedTemplate { name: format!("vars.{name}"), source: value.clone() });
    for text in said.chain(vars).chain(brief.variants.iter().flat_map(own)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// What texts show that others include, by name and source.
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

/// What the texts of one message show that is sent as it stands.
#[must_use]
pub fn check_message(content: &MessageContent<Cow<'_, str>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stage in &content.stages {
        for (field, text) in stage.texts() {
            let said = NamedTemplate { name: field.key.to_owned(), source: text.to_string() };
            findings.extend(WORDING_RULES.into_iter().flat_map(|judge| judge(&said)).map(finding_without_place));
            if field.key == "message" && empty_greeting::has_empty_greeting(text) {
                findings.push(empty_greeting::report_message());
            }
        }
        findings.extend(stage.billed_text().and_then(|text| costly_character::check_message(text)));
    }
    let texts = content.map_texts(|text| NamedTemplate { name: String::new(), source: text.to_string() });
    findings.extend(texts.stages.iter().flat_map(long_button::check_long_buttons).map(finding_without_place));
    findings
}

/// A problem of a text that stands in no file.
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
    problems
        .extend(cell_is_text::check_comparisons(text, |name| cell_is_text::may_be_column(&defined, constants, name)));
    problems
}
