//! The cells of a row that texts use, and how they get to the texts.

use tera::value::Key;
use tera::{Context, Value};

use super::engine::MAX_BYTES;
use super::judge::TemplateNeeds;
use super::names::{TemplateNames, intern_name};
use super::render::RenderError;
use crate::domain::Row;

/// Columns whose cells the texts use.
#[derive(Clone, Debug, Default)]
pub(super) struct TemplateCells {
    /// Columns that have a bare name: the column and the name.
    pub(super) by_name: Vec<(usize, &'static str)>,
    /// Columns in `recipient`: the column and the header.
    pub(super) by_header: Vec<(usize, Key<'static>)>,
    /// Whether the row's number is used.
    pub(super) row: bool,
}

impl TemplateCells {
    /// The cells that a row has to bring.
    pub(super) fn from_needs(names: &TemplateNames, needs: &TemplateNeeds) -> Self {
        let by_name = needs.columns.iter().filter_map(|&column| Some((column, intern_name(names.names.get(column)?))));
        let headers = names.headers.iter().enumerate();
        let by_header = headers.filter(|(column, _)| needs.all_headers || needs.headers.contains(column));
        Self {
            by_name: by_name.collect(),
            by_header: by_header.map(|(column, header)| (column, header.clone().into())).collect(),
            row: needs.row,
        }
    }

    /// The columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.by_name.iter().map(|(column, _)| *column).chain(self.by_header.iter().map(|(column, _)| *column))
    }

    /// Refuses a row with a cell under a bare name that is longer than any message.
    pub(super) fn check_lengths<'f>(&self, field: impl Fn(usize) -> &'f str) -> Result<(), RenderError> {
        match self.by_name.iter().find(|(column, _)| field(*column).len() > MAX_BYTES) {
            Some((_, name)) => Err(RenderError::CellTooLong { column: (*name).to_owned() }),
            None => Ok(()),
        }
    }

    /// Puts the cells of a row into a context.
    pub(super) fn fill_context<'f>(
        &self,
        context: &mut Context,
        row: Row,
        field: impl Fn(usize) -> &'f str,
    ) -> Result<(), RenderError> {
        self.check_lengths(&field)?;
        for &(column, name) in &self.by_name {
            context.insert_value(name, Value::normal_string(field(column)));
        }
        if self.row {
            context.insert_value("row", Value::from(row.get()));
        }
        if !self.by_header.is_empty() {
            let entry = |(column, header): &(usize, Key<'static>)| match cell_value(field(*column)) {
                Some(value) => Ok((header.clone(), value)),
                None => Err(RenderError::CellTooLong { column: header.as_str().unwrap_or("").to_owned() }),
            };
            let recipient = self.by_header.iter().map(entry).collect::<Result<tera::Map, _>>()?;
            context.insert_value("recipient", Value::from(recipient));
        }
        Ok(())
    }
}

fn cell_value(text: &str) -> Option<Value> {
    (text.len() <= MAX_BYTES).then(|| Value::normal_string(text))
}
