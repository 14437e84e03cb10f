//! Parser of results files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One row: its values by column name.
pub(crate) type Row = BTreeMap<String, String>;

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

impl Results {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
        let rows = reader.records().map(|record| {
            let record = record.expect("a record");
            header.iter().cloned().zip(record.iter().map(str::to_owned)).collect()
        });
        Self { rows: rows.collect(), header }
    }

    /// The values of a column, in row order.
    pub(crate) fn column(&self, name: &str) -> Vec<&str> {
        self.rows.iter().map(|row| row[name].as_str()).collect()
    }

    /// The state of each row.
    pub(crate) fn states(&self) -> Vec<&str> {
        self.column("state")
    }

    /// The number of rows in each state.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.states().into_iter().fold(BTreeMap::new(), |mut counts, state| {
            *counts.entry(state.to_owned()).or_default() += 1;
            counts
        })
    }
}
