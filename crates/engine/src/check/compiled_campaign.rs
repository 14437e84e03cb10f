//! Compilation of a campaign against its list, and the recipe that turns each record into a message or a reason to
//! skip it.
//!
//! Previews, surveys and runs all compose messages here, so they cannot differ.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::rules;
use campaign_content::audience::{
    ListHeader, ListSettings, NamedColumns, PhoneColumns, RecipientReader, RecordFields, RecordRef, RejectedList,
    ValidNumber, trim_cell,
};
use campaign_content::message::{
    BranchFinder, ColumnName, CompiledMessages, Condition, EmptyCellFinder, FilledMessage, LookupTable, Marker,
    RenderError, Renderer, RowFilter, TemplateNames, TextProblem, compile_condition, compile_messages, load_tables,
    render_constant,
};
use campaign_core::domain::{MessageContent, NamedTemplate, Phone, Region, TextSource, VariantAllocation};
use campaign_core::finding::{Finding, rules as finding_rules};
use campaign_ledger::RowState;
use campaign_manifest::{CampaignBrief, SourceMap};

/// The sources of texts, and their places for findings.
pub struct TextInputs<'a> {
    /// Places in the campaign file and its text files; `None` for a frozen run.
    pub places: Option<&'a SourceMap>,
    /// Whether texts and `where` see trimmed cells. Runs of earlier versions see the original cells.
    pub trims_cells: bool,
    /// Loads a text by the name in `include` or `extends`.
    pub load: &'a mut dyn FnMut(&str) -> Result<String, String>,
}

/// A list from any source. Functions that loop over its rows take this type instead of a type parameter, so that they are
/// compiled only once, in an optimised crate.
pub type AnyList<'r> = Box<dyn Read + Send + 'r>;

/// A campaign with an open list and compiled texts.
pub struct CompiledCampaign<R> {
    /// The list, read up to the header.
    pub reader: RecipientReader<R>,
    /// Turns the records of the list into messages.
    pub recipe: Arc<Recipe>,
    /// The rendered edition; empty if the campaign has none.
    pub edition: String,
}

/// The problems of a list and of the texts that use it.
#[derive(Debug)]
pub struct PrepareError {
    /// The problems of the list, then those of the texts.
    pub findings: Vec<Finding>,
    /// Whether the list has phone columns, so that its rows can be checked.
    pub has_rows: bool,
}

/// Opens the list, compiles every text against the list's header, and checks for comparisons that fail for every row.
///
/// `today` is a date (YYYY-MM-DD); texts have no other clock.
///
/// # Errors
/// Returns all problems with the header, the columns and the texts.
pub fn prepare_campaign<R: Read>(
    brief: &CampaignBrief,
    list: R,
    path: &Path,
    texts: TextInputs<'_>,
    today: &str,
) -> Result<CompiledCampaign<R>, PrepareError> {
    compile_for_list(RecipientReader::open_with_columns(list, path, &reader_settings(brief)), brief, texts, today)
}

/// The compiled texts of a campaign, for all readings of its list.
///
/// The texts are compiled again only if the columns, the campaign or the day differ.
#[derive(Default)]
pub struct TextCache(Mutex<Option<CachedTexts>>);

struct CachedTexts {
    header: ListHeader,
    brief: CampaignBrief,
    today: String,
    recipe: Arc<Recipe>,
    edition: String,
}

impl TextCache {
    /// Opens the list like [`prepare_campaign`], but reuses the cached texts if they fit this list and campaign.
    ///
    /// # Errors
    /// Fails in the same cases as [`prepare_campaign`].
    pub fn prepare_campaign<R: Read>(
        &self,
        brief: &CampaignBrief,
        list: R,
        path: &Path,
        texts: TextInputs<'_>,
        today: &str,
    ) -> Result<CompiledCampaign<R>, PrepareError> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match (RecipientReader::open_with_columns(list, path, &reader_settings(brief)), &*cached) {
            (Ok(reader), Some(cached)) if cached.fits(reader.header(), brief, today) => {
                let (recipe, edition) = (Arc::clone(&cached.recipe), cached.edition.clone());
                return Ok(CompiledCampaign { reader, recipe, edition });
            }
            (opened, _) => opened,
        };
        let compiled = compile_for_list(opened, brief, texts, today)?;
        let CompiledCampaign { reader, recipe, edition } = &compiled;
        *cached = Some(CachedTexts {
            header: reader.header().clone(),
            brief: brief.clone(),
            today: today.to_owned(),
            recipe: Arc::clone(recipe),
            edition: edition.clone(),
        });
        Ok(compiled)
    }
}

impl CachedTexts {
    fn fits(&self, header: &ListHeader, brief: &CampaignBrief, today: &str) -> bool {
        self.header == *header && self.brief == *brief && self.today == today
    }
}

/// Shows nothing, because texts can contain data tables.
impl fmt::Debug for TextCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextCache").finish_non_exhaustive()
    }
}

/// Compiles every text against the header of an opened list.
fn compile_for_list<R: Read>(
    opened: Result<RecipientReader<R>, RejectedList>,
    brief: &CampaignBrief,
    texts: TextInputs<'_>,
    today: &str,
) -> Result<CompiledCampaign<R>, PrepareError> {
    let (reader, columns, mut findings) = match opened {
        Ok(reader) => {
            let (headers, names) = (reader.header().headers().to_vec(), reader.header().names().to_vec());
            (Some(reader), Some(NamedColumns { headers, names }), Vec::new())
        }
        // The texts are checked anyway, so that all mistakes are reported at once.
        Err(RejectedList { findings, columns }) => (None, columns, findings),
    };
    let compiled = compile_texts(brief, columns.as_ref(), today, texts.load);
    let problems = compiled.as_ref().err().into_iter().flatten().cloned();
    findings.extend(problems.map(|problem| to_finding(problem, texts.places)));
    let comparisons = find_failing_comparisons(brief, columns.as_ref(), compiled.as_ref().ok(), texts.places);
    let has_failing_comparison = !comparisons.is_empty();
    findings.extend(comparisons);
    match (reader, compiled) {
        (Some(reader), Ok(CompiledTexts { arms, edition, tables, condition })) if !has_failing_comparison => {
            let (allocation, phones) = (brief.variant_allocation(), reader.header().phones().clone());
            let (region, places) = (brief.region, texts.places.cloned());
            let trims_cells = texts.trims_cells;
            let recipe = Recipe { arms, allocation, condition, tables, phones, region, places, trims_cells };
            tracing::debug!(campaign = brief.name.as_str(), frozen = recipe.places.is_none(), "texts compiled");
            Ok(CompiledCampaign { reader, recipe: Arc::new(recipe), edition })
        }
        (reader, _) => Err(PrepareError { findings, has_rows: reader.is_some() }),
    }
}

/// Findings about comparisons that fail for every row.
///
/// Without `places`, as for a run that has already started, returns no findings: such a run continues and sends the
/// rows that do not fail.
fn find_failing_comparisons(
    brief: &CampaignBrief,
    columns: Option<&NamedColumns>,
    compiled: Option<&CompiledTexts>,
    places: Option<&SourceMap>,
) -> Vec<Finding> {
    let Some(places) = places else { return Vec::new() };
    let includes = compiled.into_iter().flat_map(|texts| texts.arms.iter().flat_map(CompiledMessages::includes));
    let includes = includes.filter(|(name, _)| !LookupTable::is_source_name(name));
    let included = includes.map(|(name, source)| NamedTemplate { name: name.clone(), source: source.clone() });
    let problems = rules::find_failing_comparisons(brief, columns.map(|columns| columns.names.as_slice()), included);
    problems.into_iter().map(|problem| to_finding(problem, Some(places))).collect()
}

/// The compiled texts of a campaign.
struct CompiledTexts {
    edition: String,
    tables: Vec<(String, Arc<LookupTable>)>,
    condition: Option<Condition>,
    arms: Vec<CompiledMessages>,
}

/// Compiles the edition, the condition and the texts of each variant, or returns all problems found in them.
///
/// If the columns are unknown, any name that could be a column is accepted.
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
    let unreadable_tables: Vec<String> = match &tables {
        Ok(_) => Vec::new(),
        Err(_) => brief.tables.iter().map(|name| format!("`{name}`")).collect(),
    };
    let names = TemplateNames { tables: tables.clone().unwrap_or_default(), ..names };
    let condition = brief.condition.as_ref().map(|condition| compile_condition(condition, &names)).transpose();
    let arms = compile_arms(brief, &names, load);
    // An unreadable table is reported once, and not again for each use.
    let is_about_unreadable_table =
        |problem: &TextProblem| unreadable_tables.iter().any(|name| problem.message.contains(name));
    let may_be_a_column = [&finding_rules::UNKNOWN_VARIABLE, &finding_rules::UNKNOWN_COLUMN];
    let text_problems = [condition.as_ref().err(), arms.as_ref().err()].into_iter().flatten().flatten();
    let is_proven = |problem: &&TextProblem| {
        (columns.is_some() || !may_be_a_column.contains(&problem.rule)) && !NamedTemplate::is_placeholder(&problem.text)
    };
    let text_problems = text_problems.filter(is_proven);
    let other_problems = [edition.as_ref().err(), tables.as_ref().err()].into_iter().flatten().flatten();
    let problems: Vec<TextProblem> =
        other_problems.chain(text_problems.filter(|problem| !is_about_unreadable_table(problem))).cloned().collect();
    match (edition, tables, condition, arms) {
        (Ok(edition), Ok(tables), Ok(condition), Ok(arms)) => {
            Ok(CompiledTexts { edition: edition.unwrap_or_default(), tables, condition, arms })
        }
        _ => Err(problems),
    }
}

/// Compiles the texts of each variant.
fn compile_arms(
    brief: &CampaignBrief,
    names: &TemplateNames,
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Vec<CompiledMessages>, Vec<TextProblem>> {
    let (mut arms, mut problems) = (Vec::new(), Vec::new());
    for arm in brief.list_arms() {
        match compile_messages(arm.content, &TemplateNames { vars: arm.vars.into_owned(), ..names.clone() }, load) {
            Ok(messages) => arms.push(messages),
            Err(arm_problems) => problems.extend(arm_problems),
        }
    }
    if problems.is_empty() {
        return Ok(arms);
    }
    let mut distinct: Vec<TextProblem> = Vec::new();
    // Variants share most of their texts, so the same problem can occur several times.
    problems.into_iter().for_each(|problem| {
        if !distinct.contains(&problem) {
            distinct.push(problem);
        }
    });
    Err(distinct)
}

/// Renders a campaign's edition for the date `today`. `None` if there is no edition, or if it depends on more than the
/// campaign file.
///
/// Errors in the edition template are reported elsewhere.
pub fn render_edition(brief: &CampaignBrief, today: &str) -> Option<String> {
    let (vars, campaign) = (brief.vars.clone(), brief.name.clone());
    let (today, language) = (today.to_owned(), brief.text_language());
    let names = TemplateNames { vars, campaign, today, language, ..TemplateNames::default() };
    brief.edition.as_ref().and_then(|edition| render_constant(edition, &names).ok())
}

/// Finds problems in a campaign's texts when its list cannot be read; any name that could be a column is accepted.
pub fn find_text_problems(brief: &CampaignBrief, texts: TextInputs<'_>, today: &str) -> Vec<Finding> {
    let compiled = compile_texts(brief, None, today, texts.load);
    let comparisons = find_failing_comparisons(brief, None, compiled.as_ref().ok(), texts.places);
    let problems = compiled.err().unwrap_or_default();
    problems.into_iter().map(|problem| to_finding(problem, texts.places)).chain(comparisons).collect()
}

/// The settings for reading a campaign's list.
pub fn reader_settings(brief: &CampaignBrief) -> ListSettings {
    ListSettings { columns: brief.columns.clone(), region: brief.region, may_be_empty: brief.may_be_empty }
}

/// Converts a text problem to a finding, with the problem's location in the campaign's files if it is known.
pub(super) fn to_finding(problem: TextProblem, places: Option<&SourceMap>) -> Finding {
    let place =
        places.and_then(|places| places.locate_text(&problem.text, problem.line, problem.column, problem.length));
    let message = match &place {
        Some(_) => problem.message,
        None => {
            format!("{} (in `{}`, line {}, column {})", problem.message, problem.text, problem.line, problem.column)
        }
    };
    Finding { subject: problem.subject, help: problem.help, ..Finding::new(problem.rule, message).at(place) }
}

/// The skip reason of a row that `where` does not select.
pub const FILTERED: &str = "filtered";

/// Composes the message of each record; compiled against the header of the list.
pub struct Recipe {
    /// The compiled texts of each variant; never empty.
    pub(super) arms: Vec<CompiledMessages>,
    /// The distribution of recipients over variants.
    pub(super) allocation: VariantAllocation,
    /// The condition that selects recipients; `None` selects all.
    pub(super) condition: Option<Condition>,
    /// The lookup tables of texts, by name.
    pub(super) tables: Vec<(String, Arc<LookupTable>)>,
    /// The phone columns.
    pub(super) phones: PhoneColumns,
    /// The region of national numbers.
    pub(super) region: Option<Region>,
    /// The places of the texts. `None` for a frozen run.
    pub(super) places: Option<SourceMap>,
    /// Whether cells are trimmed.
    pub(super) trims_cells: bool,
}

/// Composes messages with its own buffers.
pub struct Composer<'r> {
    recipe: &'r Recipe,
    filter: Option<RowFilter<'r>>,
    renderers: Vec<Renderer<'r>>,
}

/// The message of a record, which borrows the buffers of the composer.
#[derive(Clone, Copy)]
pub struct ComposedMessage<'r> {
    /// The phone number.
    pub number: ValidNumber,
    /// The index of the variant; 0 without variants.
    pub arm: usize,
    /// The message with the texts that were rendered for the record.
    pub message: FilledMessage<'r>,
}

/// The reason why a record has no message, without its number or cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposeFailure {
    /// The state of its row: skipped or invalid.
    pub state: RowState,
    /// The reason as it is recorded for the row, such as `filtered`.
    pub reason: Cow<'static, str>,
    /// The problem of the text that fails with the row, if any.
    pub problem: Option<Box<TextProblem>>,
}

impl ComposeFailure {
    fn from_reason(reason: impl ToString) -> Self {
        Self { state: RowState::Invalid, reason: reason.to_string().into(), problem: None }
    }
}

impl Recipe {
    /// The reason why a row has no message. If a text cannot be rendered, the reason names the location in the author's
    /// file.
    fn compose_failure(&self, error: RenderError) -> ComposeFailure {
        let RenderError::TemplateFails(problem) = error else { return ComposeFailure::from_reason(error) };
        let place = self
            .places
            .as_ref()
            .and_then(|places| places.locate_text(&problem.text, problem.line, problem.column, problem.length));
        let reason = match place {
            Some(place) => {
                // Other people can read the stored reason, so it must not contain folder names of this machine.
                let path = place.source.path();
                let file = Path::new(path.file_name().unwrap_or(path.as_os_str())).display();
                let (line, column) = (place.line_number(), place.column_number());
                format!("{} ({file}:{line}:{column})", problem.message)
            }
            None => RenderError::TemplateFails(problem.clone()).to_string(),
        };
        ComposeFailure { problem: Some(problem), ..ComposeFailure::from_reason(reason) }
    }

    /// The content of a cell as texts and the `where` condition see it.
    pub fn cell_text<'c>(&self, fields: RecordFields<'c>, column: usize) -> &'c str {
        let cell = fields.get(column);
        if self.trims_cells { trim_cell(cell) } else { cell }
    }

    /// A new composer. Make one per run or thread, not one per row.
    pub fn composer(&self) -> Composer<'_> {
        let filter = self.condition.as_ref().map(Condition::row_filter);
        Composer { recipe: self, filter, renderers: self.arms.iter().map(CompiledMessages::renderer).collect() }
    }

    /// The texts of each variant: constant texts in their final form, and all other texts by their index.
    pub fn text_sources(&self) -> impl Iterator<Item = MessageContent<TextSource<'_>>> {
        self.arms.iter().map(CompiledMessages::sources)
    }

    /// A marker for each variant; it marks the parts of a message that come from the row.
    pub fn markers(&self) -> impl Iterator<Item = Marker<'_>> {
        self.arms.iter().map(CompiledMessages::marker)
    }

    /// The phone number of a record, if the number is valid.
    pub fn parse_phone(&self, record: RecordRef<'_>) -> Option<Phone> {
        self.phones.choose_phone(record.fields, self.region).ok()
    }

    /// The name and source of each text loaded for `include` and `extends`, and of each lookup table, sorted by name.
    pub fn list_included_sources(&self) -> Vec<(String, String)> {
        let tables = self.tables.iter().map(|(name, table)| (LookupTable::source_name(name), table.to_source()));
        let all: BTreeSet<_> = self.arms.iter().flat_map(CompiledMessages::includes).cloned().chain(tables).collect();
        all.into_iter().collect()
    }

    /// The index of the column that texts call `name`, if a text uses this column.
    pub(super) fn find_column(&self, name: &str) -> Option<usize> {
        self.arms.iter().find_map(|messages| messages.find_column(name))
    }

    /// The index of the column that an expression in a text or in the `where` condition names.
    pub(super) fn find_named_column(&self, column: &ColumnName) -> Option<usize> {
        let in_texts = self.arms.iter().find_map(|messages| messages.find_named_column(column));
        in_texts.or_else(|| self.condition.as_ref()?.find_named_column(column))
    }

    /// The columns that texts use.
    pub(super) fn text_columns(&self) -> BTreeSet<usize> {
        self.arms.iter().flat_map(CompiledMessages::used_columns).collect()
    }

    /// One finder for each variant, which finds the empty cells that a message uses.
    pub(super) fn empty_cell_finders(&self) -> Vec<EmptyCellFinder<'_>> {
        self.arms.iter().map(CompiledMessages::empty_cell_finder).collect()
    }

    /// One finder for each variant, which finds the branches that a message takes. `None` for a variant without
    /// conditions.
    pub(super) fn branch_finders(&self) -> Vec<Option<BranchFinder<'_>>> {
        self.arms.iter().map(CompiledMessages::branch_finder).collect()
    }

    /// The columns that texts or the condition use.
    pub fn used_columns(&self) -> BTreeSet<usize> {
        let condition_columns = self.condition.iter().flat_map(Condition::columns);
        self.text_columns().into_iter().chain(condition_columns).collect()
    }
}

impl Composer<'_> {
    /// Whether the `where` condition selects a record.
    ///
    /// # Errors
    /// If the condition fails for the record.
    pub(super) fn selects(&mut self, record: RecordRef<'_>) -> Result<bool, ComposeFailure> {
        let recipe = self.recipe;
        match &mut self.filter {
            Some(filter) => filter
                .matches(record.row, |column| recipe.cell_text(record.fields, column))
                .map_err(|error| recipe.compose_failure(error)),
            None => Ok(true),
        }
    }

    /// Composes the message for a record.
    ///
    /// # Errors
    /// The reason why the record has no message. If the `where` condition does not select a record, nothing else is
    /// checked.
    pub fn compose(&mut self, record: RecordRef<'_>) -> Result<ComposedMessage<'_>, ComposeFailure> {
        let recipe = self.recipe;
        let cell = |column| recipe.cell_text(record.fields, column);
        if !self.selects(record)? {
            return Err(ComposeFailure { state: RowState::Skipped, reason: FILTERED.into(), problem: None });
        }
        let Recipe { phones, region, allocation, .. } = recipe;
        let number = phones.choose_number(record.fields, *region).map_err(ComposeFailure::from_reason)?;
        let arm = allocation.assign_variant(number.phone);
        let message = self.renderers[arm].render(record.row, cell).map_err(|error| recipe.compose_failure(error))?;
        Ok(ComposedMessage { number, arm, message })
    }
}
