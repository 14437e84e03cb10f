//! What the texts of a campaign show by themselves, whoever gets them.

use std::borrow::Cow;

use super::{
    broken_link, cell_is_text, code_for_all, codes_only, costly_character, damaged_text, empty_greeting,
    escaped_line_break, filter_argument, html_tag, insecure_link, long_button, markdown, two_scripts, unfinished_text,
    unused_constant, url_escape,
};
use crate::check::prepare::finding;
use crate::domain::{Content, Stage, Text};
use crate::finding::Finding;
use crate::manifest::{Campaign, Variant};
use crate::message::{Table, TextProblem, defined_names};

/// The rules that judge the words of a single text.
const OF_WORDS: [fn(&Text) -> Vec<TextProblem>; 10] = [
    two_scripts::judge,
    insecure_link::judge,
    broken_link::judge,
    unfinished_text::judge,
    damaged_text::judge,
    html_tag::judge,
    url_escape::judge,
    markdown::judge,
    escaped_line_break::judge,
    filter_argument::judge,
];

/// What the texts, constants and links of a campaign show, each at its place.
#[must_use]
pub fn against_texts(campaign: &Campaign) -> Vec<Finding> {
    let brief = &campaign.brief;
    let texts = all_texts(campaign);
    let stages = || brief.contents().flat_map(|content| &content.stages);
    let constants = brief.constants();
    let mut problems: Vec<TextProblem> = texts.iter().flat_map(|text| judged(text, &constants)).collect();
    let of_stages = [codes_only::judge, code_for_all::judge, long_button::judge];
    problems.extend(stages().flat_map(|stage| of_stages.into_iter().flat_map(move |judge| judge(stage))));
    // The words of a missing text are unknown.
    let problems = problems.into_iter().filter(|problem| !Text::is_stand_in(&problem.text));
    let mut findings: Vec<Finding> = problems.map(|problem| finding(problem, Some(&campaign.places))).collect();
    findings.extend(unused_constant::judge(campaign));
    findings
}

/// The texts, constants and links of a campaign; a file that several channels use appears once.
pub(super) fn all_texts(campaign: &Campaign) -> Vec<Text> {
    let brief = &campaign.brief;
    let mut texts: Vec<Text> = Vec::new();
    let stages = || brief.contents().flat_map(|content| &content.stages);
    let said = stages().flat_map(Stage::texts).map(|(_, text)| text.clone());
    let own = |variant: &'_ Variant| {
        let text = |(name, value): &(String, String)| Text {
            name: format!("variants.{}.vars.{name}", variant.name),
            source: value.clone(),
        };
        variant.vars.iter().map(text).collect::<Vec<_>>()
    };
    let vars = brief.vars.iter().map(|(name, value)| Text { name: format!("vars.{name}"), source: value.clone() });
    for text in said.chain(vars).chain(brief.variants.iter().flat_map(own)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// What texts show that others include, by name and source.
#[must_use]
pub fn against_includes(includes: &[(String, String)], campaign: &Campaign) -> Vec<Finding> {
    let texts = includes
        .iter()
        .filter(|(name, _)| !Table::is_source(name))
        .map(|(name, source)| Text { name: name.clone(), source: source.clone() });
    let constants = campaign.brief.constants();
    let problems = texts.flat_map(|text| judged(&text, &constants));
    problems.map(|problem| finding(problem, Some(&campaign.places))).collect()
}

/// What the texts of one message show that is sent as it stands.
#[must_use]
pub fn against_message(content: &Content<Cow<'_, str>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stage in &content.stages {
        for (field, text) in stage.texts() {
            let said = Text { name: field.key.to_owned(), source: text.to_string() };
            findings.extend(OF_WORDS.into_iter().flat_map(|judge| judge(&said)).map(without_place));
            if field.key == "message" && empty_greeting::is_shown(text) {
                findings.push(empty_greeting::in_message());
            }
        }
        findings.extend(stage.billed_text().and_then(|text| costly_character::in_message(text)));
    }
    let texts = content.map(|text| Text { name: String::new(), source: text.to_string() });
    findings.extend(texts.stages.iter().flat_map(long_button::judge).map(without_place));
    findings
}

/// A problem of a text that stands in no file.
fn without_place(problem: TextProblem) -> Finding {
    let finding = Finding::new(problem.rule, problem.message);
    match problem.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn judged(text: &Text, constants: &[&str]) -> Vec<TextProblem> {
    let mut problems: Vec<TextProblem> = OF_WORDS.into_iter().flat_map(|judge| judge(text)).collect();
    let defined = defined_names(&text.source).collect();
    problems.extend(cell_is_text::judge(text, |name| cell_is_text::may_be_column(&defined, constants, name)));
    problems
}
