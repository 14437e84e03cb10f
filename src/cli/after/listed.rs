//! The recipients of a run's frozen list by row or by number.

use std::fs::File;
use std::io::{self, BufReader};

use crate::audience::{Chunk, Reader, parse};
use crate::check::{Tee, settings};
use crate::cli::failure::Failure;
use crate::delivery::{Frozen, RunFolder};
use crate::domain::{Phone, Row};
use crate::finding::Finding;
use crate::manifest::Brief;
use crate::regular;
use crate::report::ResultsError;

/// Whom a person asks about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whom {
    Row(Row),
    Number(Phone),
}

/// A recipient, with the number if it is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) row: Row,
    pub(super) phone: Option<Phone>,
}

/// Everybody in the list who is meant, in its order; a number may be there more than once.
///
/// # Errors
/// When the list cannot be read, or is not what the run began with.
pub(super) fn listed(folder: &RunFolder, frozen: &Frozen, whom: Whom) -> Result<Vec<Listed>, Failure> {
    let (path, brief) = (folder.recipients(), &frozen.brief);
    let unusable = |findings: Vec<Finding>| Failure::storage(ResultsError::from(findings));
    let unreadable = |error: io::Error| Failure::storage(ResultsError::Recipients(error.to_string()));
    let mut list = Tee::new(BufReader::new(regular::open(&path).map_err(unreadable)?), None::<File>);
    let mut reader = Reader::open(&mut list, &path, &settings(brief)).map_err(unusable)?;
    let (column, region) = (reader.header().phone(), brief.region);
    let (mut found, mut chunk) = (Vec::new(), Chunk::new());
    while reader.read_chunk(&mut chunk).map_err(|finding| unusable(vec![*finding]))? {
        for record in chunk.iter() {
            let phone = || parse(record.fields.get(column), region).ok();
            let meant = match whom {
                Whom::Row(row) => record.row == row,
                Whom::Number(number) => phone() == Some(number),
            };
            if meant {
                found.push(Listed { row: record.row, phone: phone() });
            }
        }
    }
    let (_, sha256) = list.finish().map_err(unreadable)?;
    if sha256 == frozen.recipients_sha256 { Ok(found) } else { Err(Failure::storage(ResultsError::Changed(path))) }
}

/// The number that a person names, as the list would understand it.
///
/// # Errors
/// When it is no number.
pub(super) fn number(text: &str, brief: &Brief) -> Result<Phone, Failure> {
    let international = || parse(&format!("+{}", text.trim_start_matches('+')), None);
    parse(text, brief.region).or_else(|_| international()).map_err(|problem| {
        Failure::wrong(format!("`--to` is not a number that can be used: {problem}; write it with its country's code"))
    })
}
