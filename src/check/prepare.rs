//! Campaign, header and texts brought together: afterwards every message can be rendered.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::recipe::Recipe;
use super::rules;
use crate::audience::{ListSettings, NamedColumns, RecipientReader, RejectedList};
use crate::domain::NamedTemplate;
use crate::finding::{Finding, rules as finding_rules};
use crate::manifest::{CampaignBrief, SourceMap};
use crate::message::{
    CompiledMessages, Condition, LookupTable, TemplateNames, TextProblem, compile_condition, compile_messages,
    load_tables, render_constant,
};

/// Where texts come from and where findings about them are shown.
pub struct TextInputs<'a> {
    /// Places in the campaign file and its text files; nothing for a frozen run.
    pub places: Option<&'a SourceMap>,
    /// Whether texts and `where` see trimmed cells. Runs of earlier versions see the original cells.
    pub trims_cells: bool,
    /// Finds a text by the name that `include` and `extends` use.
    pub load: &'a mut dyn FnMut(&str) -> Result<String, String>,
}

/// A campaign whose recipients are opened and whose texts are compiled.
pub struct CompiledCampaign<R> {
    /// The recipients, read up to the header.
    pub reader: RecipientReader<R>,
    /// What becomes of each of them.
    pub recipe: Recipe,
    /// The campaign's edition, rendered; empty when it has none.
    pub edition: String,
}

/// The problems of a list and of the texts that use it.
#[derive(Debug)]
pub struct PrepareError {
    /// The problems of the list, then those of the texts.
    pub findings: Vec<Finding>,
    /// Whether the list has columns with numbers, so that its rows can be judged.
    pub has_rows: bool,
}

/// Opens the recipients, compiles every text against their header, and checks what is the same for all.
///
/// `today` is a date (YYYY-MM-DD), the only clock that texts see.
///
/// # Errors
/// Everything that is wrong with the header, the columns and the texts.
pub fn prepare_campaign<R: Read>(
    brief: &CampaignBrief,
    (list, path): (R, &Path),
    texts: TextInputs<'_>,
    today: &str,
) -> Result<CompiledCampaign<R>, PrepareError> {
    let (reader, columns, mut findings) = match RecipientReader::open_with_columns(list, path, &reader_settings(brief))
    {
        Ok(reader) => {
            let (headers, names) = (reader.header().headers().to_vec(), reader.header().names().to_vec());
            (Some(reader), Some(NamedColumns { headers, names }), Vec::new())
        }
        // The texts are judged anyway, so that all mistakes are reported at once.
        Err(RejectedList { findings, columns }) => (None, columns, findings),
    };
    let compiled = compile_texts(brief, columns.as_ref(), today, texts.load);
    let problems = compiled.as_ref().err().into_iter().flatten().cloned();
    findings.extend(problems.map(|problem| to_finding(problem, texts.places)));
    let orders = find_failing_comparisons(brief, columns.as_ref(), compiled.as_ref().ok(), texts.places);
    let fails = !orders.is_empty();
    findings.extend(orders);
    match (reader, compiled) {
        (Some(reader), Ok(CompiledTexts { arms, edition, tables, condition })) if !fails => {
            let (allotment, phones) = (brief.variant_allocation(), reader.header().phones().clone());
            let (region, places) = (brief.region, texts.places.cloned());
            let trims_cells = texts.trims_cells;
            let recipe = Recipe { arms, allotment, condition, tables, phones, region, places, trims_cells };
            Ok(CompiledCampaign { reader, recipe, edition })
        }
        (reader, _) => Err(PrepareError { findings, has_rows: reader.is_some() }),
    }
}

/// The comparisons of texts that fail with every row.
///
/// A run that began with such a text goes on: its other rows are sent, and its places are not known.
fn find_failing_comparisons(
    brief: &CampaignBrief,
    columns: Option<&NamedColumns>,
    compiled: Option<&CompiledTexts>,
    places: Option<&SourceMap>,
) -> Vec<Finding> {
    let Some(places) = places else { return Vec::new() };
    let includes = compiled.into_iter().flat_map(|texts| texts.arms.iter().flat_map(CompiledMessages::includes));
    let includes = includes.filter(|(name, _)| !LookupTable::is_source(name));
    let included = includes.map(|(name, source)| NamedTemplate { name: name.clone(), source: source.clone() });
    let problems = rules::find_failing_comparisons(brief, columns.map(|columns| columns.names.as_slice()), included);
    problems.into_iter().map(|problem| to_finding(problem, Some(places))).collect()
}

/// The texts of a campaign, compiled.
struct CompiledTexts {
    edition: String,
    tables: Vec<(String, Arc<LookupTable>)>,
    condition: Option<Condition>,
    arms: Vec<CompiledMessages>,
}

/// Compiles the edition, the condition and the texts of each variant; all problems of all of them, if there are some.
///
/// If the columns are unknown, a name that can be a column is accepted.
fn compile_texts(
    brief: &CampaignBrief,
    columns: Option<&NamedColumns>,
    today: &str,
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<CompiledTexts, Vec<TextProblem>> {
    let (vars, campaign, today) = (brief.vars.clone(), brief.name.clone(), today.to_owned());
    let NamedColumns { headers, names } = columns.cloned().unwrap_or_default();
    let language = brief.text_language();
    let names = TemplateNames { headers, names, vars, campaign, today, language, ..TemplateNames::default() };
    let edition = brief.edition.as_ref().map(|edition| render_constant(edition, &names)).transpose();
    let tables = load_tables(&brief.tables, load);
    let lost: Vec<String> = match &tables {
        Ok(_) => Vec::new(),
        Err(_) => brief.tables.iter().map(|name| format!("`{name}`")).collect(),
    };
    let names = TemplateNames { tables: tables.clone().unwrap_or_default(), ..names };
    let condition = brief.condition.as_ref().map(|condition| compile_condition(condition, &names)).transpose();
    let arms = compile_arms(brief, &names, load);
    // An unreadable table is reported once, and not again for each use.
    let is_lost = |problem: &TextProblem| lost.iter().any(|name| problem.message.contains(name));
    let may_be_a_column = [&finding_rules::UNKNOWN_VARIABLE, &finding_rules::UNKNOWN_COLUMN];
    let of_names = [condition.as_ref().err(), arms.as_ref().err()].into_iter().flatten().flatten();
    let is_proven = |problem: &&TextProblem| {
        (columns.is_some() || !may_be_a_column.contains(&problem.rule)) && !NamedTemplate::is_stand_in(&problem.text)
    };
    let of_names = of_names.filter(is_proven);
    let others = [edition.as_ref().err(), tables.as_ref().err()].into_iter().flatten().flatten();
    let problems: Vec<TextProblem> = others.chain(of_names.filter(|problem| !is_lost(problem))).cloned().collect();
    match (edition, tables, condition, arms) {
        (Ok(edition), Ok(tables), Ok(condition), Ok(arms)) => {
            Ok(CompiledTexts { edition: edition.unwrap_or_default(), tables, condition, arms })
        }
        _ => Err(problems),
    }
}

/// The texts of each variant, compiled.
fn compile_arms(
    brief: &CampaignBrief,
    names: &TemplateNames,
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Vec<CompiledMessages>, Vec<TextProblem>> {
    let (mut arms, mut problems) = (Vec::new(), Vec::new());
    for arm in brief.list_arms() {
        match compile_messages(arm.content, &TemplateNames { vars: arm.vars.into_owned(), ..names.clone() }, load) {
            Ok(messages) => arms.push(messages),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        return Ok(arms);
    }
    let mut told: Vec<TextProblem> = Vec::new();
    // Variants share most of their texts.
    problems.into_iter().for_each(|problem| {
        if !told.contains(&problem) {
            told.push(problem);
        }
    });
    Err(told)
}

/// The edition of a campaign on a day, where it follows from the campaign file alone; what is wrong with it is told elsewhere.
#[must_use]
pub fn render_edition(brief: &CampaignBrief, today: &str) -> Option<String> {
    let (vars, campaign) = (brief.vars.clone(), brief.name.clone());
    let (today, language) = (today.to_owned(), brief.text_language());
    let names = TemplateNames { vars, campaign, today, language, ..TemplateNames::default() };
    brief.edition.as_ref().and_then(|edition| render_constant(edition, &names).ok())
}

/// What is wrong with the texts of a campaign whose list cannot be read, whatever columns it has.
#[must_use]
pub fn find_text_problems(brief: &CampaignBrief, texts: TextInputs<'_>, today: &str) -> Vec<Finding> {
    let compiled = compile_texts(brief, None, today, texts.load);
    let orders = find_failing_comparisons(brief, None, compiled.as_ref().ok(), texts.places);
    let problems = compiled.err().unwrap_or_default();
    problems.into_iter().map(|problem| to_finding(problem, texts.places)).chain(orders).collect()
}

/// What a campaign says about its list.
#[must_use]
pub fn reader_settings(brief: &CampaignBrief) -> ListSettings {
    ListSettings { columns: brief.columns.clone(), region: brief.region, may_be_empty: brief.may_be_empty }
}

/// A problem of a text, shown where the text stands.
pub(super) fn to_finding(problem: TextProblem, places: Option<&SourceMap>) -> Finding {
    let place =
        places.and_then(|places| places.locate_text(&problem.text, (problem.line, problem.column), problem.length));
    let message = match &place {
        Some(_) => problem.message,
        None => {
            format!("{} (in `{}`, line {}, column {})", problem.message, problem.text, problem.line, problem.column)
        }
    };
    let finding = Finding::new(problem.rule, message).at(place);
    match problem.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}
