//! Campaign, header and texts brought together: afterwards every message can be rendered.

use std::io::Read;
use std::path::Path;

use super::recipe::Recipe;
use crate::audience::{Reader, Settings};
use crate::finding::{Finding, rules as finding_rules};
use crate::manifest::{Brief, Places};
use crate::message::{Messages, Names, TextProblem, compile, compile_condition, load_tables, render_constant};

/// Where texts come from and where findings about them are shown.
pub struct Texts<'a> {
    /// Places in the campaign file and its text files; nothing for a frozen run.
    pub places: Option<&'a Places>,
    /// Finds a text by the name that `include` and `extends` use.
    pub load: &'a mut dyn FnMut(&str) -> Result<String, String>,
}

/// A campaign whose recipients are opened and whose texts are compiled.
pub struct CompiledCampaign<R> {
    /// The recipients, read up to the header.
    pub reader: Reader<R>,
    /// What becomes of each of them.
    pub recipe: Recipe,
    /// The campaign's edition, rendered; empty when it has none.
    pub edition: String,
}

/// Opens the recipients, compiles every text against their header, and checks what is the same for all.
///
/// `today` is a date (YYYY-MM-DD), the only clock that texts see.
///
/// # Errors
/// Everything that is wrong with the header, the columns and the texts.
pub fn prepare<R: Read>(
    brief: &Brief,
    (list, path): (R, &Path),
    texts: Texts<'_>,
    today: &str,
) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    let reader = Reader::open(list, path, &settings(brief))?;
    let names = names(brief, &reader, today);
    let tell = |problem| finding(problem, texts.places);
    let edition = match &brief.edition {
        Some(edition) => render_constant(edition, &names).map_err(|problem| vec![tell(problem)])?,
        None => String::new(),
    };
    let tables = load_tables(&brief.tables, texts.load).map_err(|problem| vec![tell(problem)])?;
    let names = Names { tables: tables.clone(), ..names };
    let condition = brief.condition.as_ref().map(|condition| compile_condition(condition, &names)).transpose();
    let (condition, arms) = match (condition, arms(brief, &names, texts.load)) {
        (Ok(condition), Ok(arms)) => (condition, arms),
        (condition, arms) => {
            let problems = condition.err().into_iter().chain(arms.err()).flatten();
            return Err(problems.map(tell).collect());
        }
    };
    let (allotment, phone_column) = (brief.allotment(), reader.header().phone());
    let recipe = Recipe { arms, allotment, condition, tables, phone_column, region: brief.region };
    Ok(CompiledCampaign { reader, recipe, edition })
}

/// The texts of each variant, compiled.
fn arms(
    brief: &Brief,
    names: &Names,
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Vec<Messages>, Vec<TextProblem>> {
    let (mut arms, mut problems) = (Vec::new(), Vec::new());
    for arm in brief.arms() {
        match compile(arm.content, &Names { vars: arm.vars.into_owned(), ..names.clone() }, load) {
            Ok(messages) => arms.push(messages),
            Err(found) => problems.extend(found),
        }
    }
    let mut told: Vec<TextProblem> = Vec::new();
    // Variants share most of their texts.
    problems.into_iter().for_each(|problem| {
        if !told.contains(&problem) {
            told.push(problem);
        }
    });
    if told.is_empty() { Ok(arms) } else { Err(told) }
}

/// The edition of a campaign on a day, where it follows from the campaign file alone; what is wrong with it is told elsewhere.
#[must_use]
pub fn edition(brief: &Brief, today: &str) -> Option<String> {
    let (vars, campaign) = (brief.vars.clone(), brief.name.clone());
    let names = Names { vars, campaign, today: today.to_owned(), ..Names::default() };
    brief.edition.as_ref().and_then(|edition| render_constant(edition, &names).ok())
}

/// What is wrong with the texts of a campaign whose list cannot be read, whatever columns it has.
#[must_use]
pub fn text_problems(brief: &Brief, texts: Texts<'_>, today: &str) -> Vec<Finding> {
    let (vars, campaign) = (brief.vars.clone(), brief.name.clone());
    // What is wrong with a table is told where it is read.
    let tables = load_tables(&brief.tables, texts.load).unwrap_or_default();
    let names = Names { vars, campaign, tables, today: today.to_owned(), ..Names::default() };
    let condition = brief.condition.as_ref().and_then(|condition| compile_condition(condition, &names).err());
    let problems = condition.into_iter().chain(arms(brief, &names, texts.load).err()).flatten();
    let may_be_a_column = [&finding_rules::UNKNOWN_VARIABLE, &finding_rules::UNKNOWN_COLUMN];
    let proven = problems.filter(|problem| !may_be_a_column.contains(&problem.rule));
    proven.map(|problem| finding(problem, texts.places)).collect()
}

/// What a campaign says about its list.
#[must_use]
pub fn settings(brief: &Brief) -> Settings {
    Settings { columns: brief.columns.clone(), region: brief.region, may_be_empty: brief.may_be_empty }
}

fn names<R: Read>(brief: &Brief, reader: &Reader<R>, today: &str) -> Names {
    Names {
        headers: reader.header().headers().to_vec(),
        names: reader.header().names().to_vec(),
        vars: brief.vars.clone(),
        campaign: brief.name.clone(),
        today: today.to_owned(),
        ..Names::default()
    }
}

/// A problem of a text, shown where the text stands.
pub(super) fn finding(problem: TextProblem, places: Option<&Places>) -> Finding {
    let place = places.and_then(|places| places.of_text(&problem.text, (problem.line, problem.column), problem.length));
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
