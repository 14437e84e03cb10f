//! Which rows of an `.xlsx` sheet somebody hid, by hand or by a filter.

use std::io::{BufRead, BufReader, Read, Seek};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use zip::ZipArchive;

use super::Refusal;

/// The part that says what relates to the workbook.
const RELATIONS: &str = "xl/_rels/workbook.xml.rels";

/// The hidden rows of the sheet of that name, from 1 and in their order; none where the workbook keeps its sheets elsewhere.
pub(super) fn hidden_rows<S: Read + Seek>(input: &mut S, sheet: &str) -> Result<Vec<u32>, Refusal> {
    let mut archive = ZipArchive::new(input).map_err(|error| Refusal::Damaged(error.to_string()))?;
    let relation = first(&mut archive, "xl/workbook.xml", |element| {
        let named = element.local_name().as_ref() == "sheet" && value(element, "name").as_deref() == Some(sheet);
        named.then(|| value(element, "r:id")).flatten()
    })?;
    let Some(relation) = relation else { return Ok(Vec::new()) };
    let target = first(&mut archive, RELATIONS, |element| {
        let named =
            element.local_name().as_ref() == "Relationship" && value(element, "Id").as_deref() == Some(&relation);
        named.then(|| value(element, "Target")).flatten()
    })?;
    let Some(target) = target else { return Ok(Vec::new()) };
    let part = target.strip_prefix('/').map_or_else(|| format!("xl/{target}"), str::to_owned);
    let (mut hidden, mut row) = (Vec::new(), 0_u32);
    each(&mut archive, &part, |element| {
        if element.local_name().as_ref() == "row" {
            row = value(element, "r").and_then(|number| number.parse().ok()).unwrap_or(row.saturating_add(1));
            if matches!(value(element, "hidden").as_deref(), Some("1" | "true")) {
                hidden.push(row);
            }
        }
        // What comes behind the cells has no rows.
        element.local_name().as_ref() != "mergeCells"
    })?;
    Ok(hidden)
}

/// What is found in the first element of a part that has it.
fn first<S: Read + Seek>(
    archive: &mut ZipArchive<S>,
    part: &str,
    mut look: impl FnMut(&BytesStart<'_>) -> Option<String>,
) -> Result<Option<String>, Refusal> {
    let mut found = None;
    each(archive, part, |element| {
        found = look(element);
        found.is_none()
    })?;
    Ok(found)
}

/// Looks at the elements of a part, as long as it is wanted.
fn each<S: Read + Seek>(
    archive: &mut ZipArchive<S>,
    part: &str,
    mut look: impl FnMut(&BytesStart<'_>) -> bool,
) -> Result<(), Refusal> {
    let Ok(entry) = archive.by_name(part) else { return Ok(()) };
    let mut xml = Reader::from_reader(BufReader::with_capacity(1 << 16, entry));
    let mut buffer = Vec::new();
    while let Some(event) = next(&mut xml, &mut buffer)? {
        if let Event::Start(element) | Event::Empty(element) = event
            && !look(&element)
        {
            return Ok(());
        }
        buffer.clear();
    }
    Ok(())
}

fn next<'b, B: BufRead>(xml: &mut Reader<B>, buffer: &'b mut Vec<u8>) -> Result<Option<Event<'b>>, Refusal> {
    match xml.read_event_into(buffer).map_err(|error| Refusal::Damaged(error.to_string()))? {
        Event::Eof => Ok(None),
        event => Ok(Some(event)),
    }
}

/// The value of an attribute.
pub(super) fn value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok().flatten()?;
    attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}
