//! How a record of the list becomes a message, or does not: the one place that decides it, for whoever looks and whoever sends.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::audience::{Number, RecordRef, parse_number};
use crate::domain::{Content, Region};
use crate::ledger::State;
use crate::message::{Condition, Messages, Renderer, Sieve};

/// Why a row is skipped that `where` does not mean.
pub const FILTERED: &str = "filtered";

/// What a campaign makes of each record, compiled against the header of its list.
pub struct Recipe {
    /// The compiled texts.
    pub(super) messages: Messages,
    /// Who of the list is meant; everybody where nothing says it.
    pub(super) condition: Option<Condition>,
    /// The column of the numbers.
    pub(super) phone_column: usize,
    /// The region of national numbers.
    pub(super) region: Option<Region>,
}

/// A recipe at work, with buffers of its own.
pub struct Composer<'r> {
    recipe: &'r Recipe,
    sieve: Option<Sieve<'r>>,
    renderer: Renderer<'r>,
}

/// What a record becomes.
#[derive(Clone, Debug)]
pub struct Composed<'r> {
    /// To whom.
    pub number: Number,
    /// What.
    pub content: Content<Cow<'r, str>>,
}

/// Why a record becomes no message, in plain words without its number or cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncomposed {
    /// What its row is: skipped or invalid.
    pub state: State,
    /// Why.
    pub reason: Cow<'static, str>,
}

impl Uncomposed {
    fn invalid(why: impl ToString) -> Self {
        Self { state: State::Invalid, reason: why.to_string().into() }
    }
}

impl Recipe {
    /// One that composes; make one for a run or a thread, not one for a row.
    #[must_use]
    pub fn composer(&self) -> Composer<'_> {
        let sieve = self.condition.as_ref().map(Condition::sieve);
        Composer { recipe: self, sieve, renderer: self.messages.renderer() }
    }

    /// The texts that were loaded for `include` and `extends`: name and source, by name.
    #[must_use]
    pub fn includes(&self) -> &[(String, String)] {
        self.messages.includes()
    }

    /// The columns whose cells count: for texts or for who is meant.
    #[must_use]
    pub fn columns(&self) -> BTreeSet<usize> {
        let asked = self.condition.iter().flat_map(Condition::columns);
        self.messages.columns().into_iter().chain(asked).collect()
    }
}

impl<'r> Composer<'r> {
    /// The message of a record.
    ///
    /// # Errors
    /// Why it has none. Who is not meant is not looked at any further.
    pub fn compose(&mut self, record: RecordRef<'_>) -> Result<Composed<'r>, Uncomposed> {
        let cell = |column| record.fields.get(column);
        if let Some(sieve) = &mut self.sieve
            && !sieve.is_meant(record.row, cell).map_err(Uncomposed::invalid)?
        {
            return Err(Uncomposed { state: State::Skipped, reason: FILTERED.into() });
        }
        let Recipe { phone_column, region, .. } = self.recipe;
        let number = parse_number(cell(*phone_column), *region).map_err(Uncomposed::invalid)?;
        let content = self.renderer.render(record.row, cell).map_err(Uncomposed::invalid)?;
        Ok(Composed { number, content })
    }
}
