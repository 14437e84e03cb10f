//! The tables under `data`, which become texts of the campaign that others look into: frozen, digested and compared as those are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::audience::{clean_cell, decode_table, read_rows};
use crate::finding::{Finding, did_you_mean, join_names, rules};
use crate::manifest::{
    Campaign, CampaignDay, LoadedFile, PathScope, TableFile, describe_unopened_file, load_campaign_within,
};
use crate::message::LookupTable;

/// The most rows of a table.
const MAX_ROWS: usize = 10_000;
/// The most columns of a table.
const MAX_COLUMNS: usize = 500;
/// The most cells of a table. Each takes some 150 bytes of memory, even if it is empty.
const MAX_CELLS: usize = 250_000;
/// The most bytes of all cells of a table.
const MAX_BYTES: usize = 1 << 20;
/// The most bytes of its headers, which each row repeats in memory.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// The campaign of a file with its tables; what is wrong with either is among the findings.
pub(super) fn load_with_tables(file: &Path, day: CampaignDay, reach: PathScope) -> LoadedFile<Campaign> {
    let mut loaded = load_campaign_within(file, day, reach);
    let Some(campaign) = loaded.value.as_mut().or(loaded.draft.as_mut()) else { return loaded };
    for from in &campaign.data {
        match read_table(from) {
            Ok(table) => campaign.folders.add_inline_text(LookupTable::source_name(&from.name), table.to_source()),
            Err(finding) => {
                let message = format!("the table `{}` cannot be used: {}", from.name, finding.message);
                let place = campaign.places.locate_key(&format!("data.{}", from.name));
                let help = finding.help.unwrap_or_else(|| "use the same format as for recipient lists".to_owned());
                loaded.findings.push(Finding::new(&rules::DATA_FILE, message).help(help).at(place));
            }
        }
    }
    loaded
}

fn read_table(from: &TableFile) -> Result<LookupTable, Finding> {
    let path = from.file.path();
    let file = from
        .file
        .open_file()
        .map_err(|error| describe_unopened_file(&format!("`{}`", path.display()), path, &error))?;
    let text = decode_table(file, path, None).map_err(|finding| *finding)?;
    let (mut rows, mut bytes) = (BTreeMap::<String, Vec<String>>::new(), 0);
    let columns = read_rows(text, path, |headers, row, cells| {
        let refused = |message: String, help: &str| Err(Box::new(Finding::new(&rules::DATA_FILE, message).help(help)));
        if headers.len() > MAX_COLUMNS || headers.iter().map(String::len).sum::<usize>() > MAX_HEADER_BYTES {
            let message = "it has more than 500 columns or 8 KiB of headers".to_owned();
            return refused(message, "remove the columns that no template uses");
        }
        let column = find_key_column(headers, &from.key)?;
        let cells: Vec<String> = (0..headers.len()).map(|column| clean_cell(cells.get(column)).to_owned()).collect();
        let key = cells[column].clone();
        bytes += cells.iter().map(String::len).sum::<usize>();
        if key.is_empty() {
            return refused(format!("row {row} has no value under `{}`", from.key), "fill the cell, or remove the row");
        }
        if rows.len() == MAX_ROWS || (rows.len() + 1) * headers.len() > MAX_CELLS || bytes > MAX_BYTES {
            let message = "it has more than 10,000 rows, 250,000 cells or 1 MiB of text".to_owned();
            return refused(
                message,
                "keep tables small: put data that differs for each recipient into columns of the list",
            );
        }
        match rows.insert(key, cells) {
            None => Ok(()),
            Some(_) => refused(
                format!("row {row} repeats the `{}` of an earlier row", from.key),
                "remove the duplicate row: each key must be unique",
            ),
        }
    })
    .map_err(|finding| *finding)?;
    find_key_column(&columns, &from.key).map_err(|finding| *finding)?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|name| !seen.insert(name.as_str())) {
        let finding = Finding::new(&rules::DATA_FILE, format!("it has more than one column `{twice}`"));
        return Err(finding.help("rename one of them"));
    }
    Ok(LookupTable { columns, rows })
}

/// The column with the keys.
fn find_key_column(headers: &[String], key: &str) -> Result<usize, Box<Finding>> {
    headers.iter().position(|header| header == key.trim()).ok_or_else(|| {
        let finding = Finding::new(&rules::DATA_FILE, format!("it has no column `{key}`"));
        let help = match did_you_mean(key, headers.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of the columns of the table: {}", join_names(headers.iter().map(String::as_str))),
        };
        finding.help(help).into()
    })
}
