//! How a record of the list becomes a message, or does not: the one place that decides it, for whoever looks and whoever sends.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::audience::{PhoneColumns, RecordFields, RecordRef, ValidNumber};
use crate::domain::{MessageContent, Phone, Region, TextSource, VariantAllocation};
use crate::ledger::RowState;
use crate::manifest::SourceMap;
use crate::message::{
    BranchFinder, CompiledMessages, Condition, EmptyCellFinder, FilledMessage, LookupTable, Marker, RenderError,
    Renderer, RowFilter, TextProblem,
};

/// Why a row is skipped that `where` does not mean.
pub const FILTERED: &str = "filtered";

/// What a campaign makes of each record, compiled against the header of its list.
pub struct Recipe {
    /// The compiled texts of each variant; never none.
    pub(super) arms: Vec<CompiledMessages>,
    /// How people are divided.
    pub(super) allotment: VariantAllocation,
    /// Who of the list is meant; everybody where nothing says it.
    pub(super) condition: Option<Condition>,
    /// The tables that texts look something up in, by name.
    pub(super) tables: Vec<(String, Arc<LookupTable>)>,
    /// The columns of the numbers.
    pub(super) phones: PhoneColumns,
    /// The region of national numbers.
    pub(super) region: Option<Region>,
    /// The places of its texts. `None` for a frozen run.
    pub(super) places: Option<SourceMap>,
    /// Whether cells are trimmed.
    pub(super) trims_cells: bool,
}

/// A recipe at work, with buffers of its own.
pub struct Composer<'r> {
    recipe: &'r Recipe,
    sieve: Option<RowFilter<'r>>,
    renderers: Vec<Renderer<'r>>,
}

/// What a record becomes, as long as nothing else is composed.
#[derive(Clone, Copy)]
pub struct ComposedMessage<'r> {
    /// To whom.
    pub number: ValidNumber,
    /// Which of the variants it is, counted from 0; 0 where there are none.
    pub arm: usize,
    /// What.
    pub message: FilledMessage<'r>,
}

/// Why a record becomes no message, in plain words without its number or cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposeFailure {
    /// What its row is: skipped or invalid.
    pub state: RowState,
    /// Why.
    pub reason: Cow<'static, str>,
    /// The part of a text that fails with the row, if one does.
    pub problem: Option<Box<TextProblem>>,
}

impl ComposeFailure {
    fn from_reason(why: impl ToString) -> Self {
        Self { state: RowState::Invalid, reason: why.to_string().into(), problem: None }
    }
}

impl Recipe {
    /// The reason why a row has no message. If a text fails, it names the place in the author's file.
    fn compose_failure(&self, invalid: RenderError) -> ComposeFailure {
        let RenderError::TemplateFails(problem) = invalid else { return ComposeFailure::from_reason(invalid) };
        let place = self
            .places
            .as_ref()
            .and_then(|places| places.locate_text(&problem.text, (problem.line, problem.column), problem.length));
        let reason = match place {
            Some(place) => {
                // Others can read the stored reason, so it must not contain folders of this machine.
                let path = place.source.path();
                let file = Path::new(path.file_name().unwrap_or(path.as_os_str())).display();
                let (line, column) = (place.line_number(), place.column_number());
                format!("{} ({file}:{line}:{column})", problem.message)
            }
            None => RenderError::TemplateFails(problem.clone()).to_string(),
        };
        ComposeFailure { problem: Some(problem), ..ComposeFailure::from_reason(reason) }
    }

    /// A cell in the form that texts and `where` see.
    #[must_use]
    pub fn cell_text<'c>(&self, fields: RecordFields<'c>, column: usize) -> &'c str {
        let cell = fields.get(column);
        if self.trims_cells { cell.trim() } else { cell }
    }

    /// One that composes; make one for a run or a thread, not one for a row.
    #[must_use]
    pub fn composer(&self) -> Composer<'_> {
        let sieve = self.condition.as_ref().map(Condition::row_filter);
        Composer { recipe: self, sieve, renderers: self.arms.iter().map(CompiledMessages::renderer).collect() }
    }

    /// What the messages of each variant say, with what everybody gets of their texts.
    pub fn text_sources(&self) -> impl Iterator<Item = MessageContent<TextSource<'_>>> {
        self.arms.iter().map(CompiledMessages::sources)
    }

    /// For each variant what marks its messages, to look at them.
    pub fn markers(&self) -> impl Iterator<Item = Marker<'_>> {
        self.arms.iter().map(CompiledMessages::marker)
    }

    /// The number of a record, if it has one.
    #[must_use]
    pub fn parse_phone(&self, record: RecordRef<'_>) -> Option<Phone> {
        self.phones.choose_phone(record.fields, self.region).ok()
    }

    /// The texts that were loaded for `include` and `extends`, and the tables as texts: name and source, by name.
    #[must_use]
    pub fn list_includes(&self) -> Vec<(String, String)> {
        let tables = self.tables.iter().map(|(name, table)| (LookupTable::source_name(name), table.to_source()));
        let all: BTreeSet<_> = self.arms.iter().flat_map(CompiledMessages::includes).cloned().chain(tables).collect();
        all.into_iter().collect()
    }

    /// The column that texts call by that bare name, if one of them uses it.
    pub(super) fn find_column(&self, name: &str) -> Option<usize> {
        self.arms.iter().find_map(|messages| messages.find_column(name))
    }

    /// The columns whose cells texts use.
    pub(super) fn text_columns(&self) -> BTreeSet<usize> {
        self.arms.iter().flat_map(CompiledMessages::used_columns).collect()
    }

    /// For each variant what finds the empty cells that its messages show.
    pub(super) fn empty_use_finders(&self) -> Vec<EmptyCellFinder<'_>> {
        self.arms.iter().map(CompiledMessages::empty_cell_finder).collect()
    }

    /// For each variant what finds the branches that its messages take, if it has conditions.
    pub(super) fn branch_finders(&self) -> Vec<Option<BranchFinder<'_>>> {
        self.arms.iter().map(CompiledMessages::branch_finder).collect()
    }

    /// The columns whose cells count: for texts or for who is meant.
    #[must_use]
    pub fn used_columns(&self) -> BTreeSet<usize> {
        let asked = self.condition.iter().flat_map(Condition::columns);
        self.text_columns().into_iter().chain(asked).collect()
    }
}

impl Composer<'_> {
    /// The message of a record.
    ///
    /// # Errors
    /// Why it has none. Who is not meant is not looked at any further.
    pub fn compose(&mut self, record: RecordRef<'_>) -> Result<ComposedMessage<'_>, ComposeFailure> {
        let recipe = self.recipe;
        let cell = |column| recipe.cell_text(record.fields, column);
        if let Some(sieve) = &mut self.sieve
            && !sieve.matches(record.row, cell).map_err(|invalid| recipe.compose_failure(invalid))?
        {
            return Err(ComposeFailure { state: RowState::Skipped, reason: FILTERED.into(), problem: None });
        }
        let Recipe { phones, region, allotment, .. } = recipe;
        let number = phones.choose_number(record.fields, *region).map_err(ComposeFailure::from_reason)?;
        let arm = allotment.assign_variant(number.phone);
        let message =
            self.renderers[arm].render(record.row, cell).map_err(|invalid| recipe.compose_failure(invalid))?;
        Ok(ComposedMessage { number, arm, message })
    }
}
