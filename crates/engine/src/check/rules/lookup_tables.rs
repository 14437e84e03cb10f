//! Rules about cells of lookup tables that recipients would see: empty cells, placeholders and damaged text.

use std::collections::BTreeMap;

use super::cell_values::EMPTY_CELL;
use super::{cell_values, collect_texts, damaged_text, links, wording};
use crate::check::RowAnomaly;
use crate::check::row_anomalies::find_cell_anomaly;
use campaign_content::message::LookupTable;
use campaign_core::domain::{NamedTemplate, format_count};
use campaign_core::finding::Finding;
use campaign_manifest::Campaign;

/// Findings about the cells of a lookup table, one per column and kind, in the columns that the campaign's own texts
/// name.
pub fn check_lookup_table(campaign: &Campaign, name: &str, table: &LookupTable) -> Vec<Finding> {
    let texts = collect_texts(campaign);
    let uses = |text: &&NamedTemplate, header: &str| text.source.contains(name) && text.source.contains(header);
    let mut findings = Vec::new();
    for (column, header) in table.columns.iter().enumerate() {
        let users: Vec<&NamedTemplate> = texts.iter().filter(|text| !header.is_empty() && uses(text, header)).collect();
        if users.is_empty() {
            continue;
        }
        let cells = || table.rows.values().filter_map(|cells| cells.get(column)).map(|cell| cell.trim());
        let place = |rows: u64| format!("{} of the table `{name}`", format_count(rows, "row"));
        let empty = cells().filter(|cell| cell.is_empty()).count() as u64;
        if empty > 0 && users.iter().any(|text| leaves_gap(&text.source, name, header)) {
            findings.push(report_empty_cells(name, header, &place(empty)));
        }
        let mut anomalies: BTreeMap<RowAnomaly, (&str, u64)> = BTreeMap::new();
        for (anomaly, example) in cells().filter_map(find_cell_anomaly) {
            anomalies.entry(anomaly).or_insert((example, 0)).1 += 1;
        }
        findings.extend(anomalies.into_iter().filter_map(|(anomaly, (example, rows))| {
            let place = place(rows);
            Some(match anomaly {
                RowAnomaly::EmptyMarker(_) => cell_values::report_placeholder_value(header, example, &place),
                RowAnomaly::Damaged(damage) => damaged_text::report_damaged_text(damage, header, example, &place),
                RowAnomaly::MixedAlphabets => wording::report_mixed_alphabets(header, example, &place),
                RowAnomaly::Apostrophe => cell_values::report_leading_apostrophe(header, example, &place),
                RowAnomaly::InsecureLink => links::report_insecure_link(header, &place),
                _ => return None,
            })
        }));
    }
    let key = campaign.places.locate_key(&format!("data.{name}"));
    findings.into_iter().map(|finding| finding.at(key.clone())).collect()
}

/// Whether a text shows an empty cell as a gap: it prints the cell without a default, and no condition tests the cell.
fn leaves_gap(source: &str, table: &str, header: &str) -> bool {
    let tags = |open: &'static str, close: &'static str| {
        source.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(tag, _)| tag)
    };
    let is_tested = tags("{%", "%}").any(|tag| tag.contains(header));
    !is_tested && tags("{{", "}}").any(|tag| tag.contains(table) && tag.contains(header) && !tag.contains("default"))
}

fn report_empty_cells(table: &str, header: &str, rows: &str) -> Finding {
    let message = format!("the column `{header}` is empty in {rows}, which leaves a gap in messages");
    Finding::new(&EMPTY_CELL, message).help(format!(
        "fill in the cells, or set a default: `{{{{ {table}[COLUMN].{header} | default(value='…', boolean=true) }}}}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_or_condition_closes_a_gap() {
        for (source, expected) in [
            ("At {{ stores[city].address }}!", true),
            ("At {{ stores[city].address | upper }}!", true),
            ("At {{ stores[city].address | default(value='us', boolean=true) }}!", false),
            ("{% if stores[city].address %}At {{ stores[city].address }}{% endif %}!", false),
            ("At {{ stores[city].hours }}!", false),
        ] {
            assert_eq!(leaves_gap(source, "stores", "address"), expected, "{source}");
        }
    }
}
