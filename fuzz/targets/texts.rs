//! Fuzz target for message texts: each row gets its own text, whatever the rows before it contained.

use campaign_content::message::{CompiledMessages, Renderer, TemplateNames, compile_messages};
use campaign_core::domain::{ExtraProperties, MessageContent, NamedTemplate, OperationKind, Row, Sms, Stage};

/// Separates the text, the text that it can include as `part`, and the rows.
const SECTION: &str = "\n=\n";
const COLUMNS: [&str; 4] = ["phone", "first_name", "code", "Note"];
const SHOP: &str = "Olena & Co";
/// The maximum number of rows. More rows take longer and find nothing new.
const MAX_ROWS: usize = 8;

/// Checks the messages of rows. The bytes are a text, a text to include, and rows whose cells are separated by bars.
pub(super) fn check(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let mut sections = input.split(SECTION);
    let (message, part) = (sections.next().unwrap_or_default(), sections.next().unwrap_or_default());
    let rows: Vec<Vec<&str>> = sections.take(MAX_ROWS).map(|row| row.split('|').collect()).collect();
    let messages = match compile(message, part) {
        Ok(messages) => messages,
        Err(problems) => {
            assert!(problems > 0, "rejected without a problem: {message:?}");
            assert_eq!(compile(message, part).err(), Some(problems), "compiled on the second attempt: {message:?}");
            return;
        }
    };
    let mut shared = messages.renderer();
    for (index, cells) in rows.iter().enumerate() {
        let row = Row::new(index as u32 + 2);
        let text = render(&mut shared, row, cells);
        assert_eq!(text, render(&mut messages.renderer(), row, cells), "row {} shows other rows", row.get());
        if let (Ok(text), Some(expected)) = (&text, replace_names(message, cells)) {
            assert_eq!(text, &expected, "names are replaced differently in {message:?}");
        }
    }
}

/// The compiled text, or the number of its problems.
fn compile(message: &str, part: &str) -> Result<CompiledMessages, usize> {
    let text = |name: &str, source: &str| NamedTemplate { name: name.to_owned(), source: source.to_owned() };
    let sms = Sms {
        signature: text("sms.signature", "Olena"),
        message: text("sms.message", message),
        lifetime: None,
        short_link: None,
        unsubscribe_link: None,
        max_parts: 200,
        plain: None,
        fields: ExtraProperties::new(),
    };
    let content = MessageContent { kind: OperationKind::Sms, stages: vec![Stage::Sms(sms)] };
    let columns: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
    let names = TemplateNames {
        headers: columns.clone(),
        names: columns,
        vars: vec![("shop".to_owned(), SHOP.to_owned())],
        campaign: "autumn".to_owned(),
        today: "2026-11-21".to_owned(),
        ..TemplateNames::default()
    };
    let mut load = |name: &str| (name == "part").then(|| part.to_owned()).ok_or_else(|| "no such text".to_owned());
    compile_messages(&content, &names, &mut load).map_err(|problems| problems.len())
}

fn render(renderer: &mut Renderer<'_>, row: Row, cells: &[&str]) -> Result<String, String> {
    let message = renderer.render(row, |column| cells.get(column).copied().unwrap_or_default());
    message.map(|message| message.billed_text().unwrap_or_default().to_owned()).map_err(|error| error.to_string())
}

/// The text with the values of its names, if it contains nothing else of the template language.
fn replace_names(message: &str, cells: &[&str]) -> Option<String> {
    let mut pieces = message.split("{{");
    let mut filled = pieces.next()?.to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}")?;
        let name = name.trim_matches(' ');
        filled += match COLUMNS.iter().position(|column| *column == name) {
            Some(column) => cells.get(column).copied().unwrap_or_default(),
            None if name == "shop" => SHOP,
            None => return None,
        };
        filled += rest;
    }
    let is_plain = !["{%", "%}", "{#", "#}", "}}"].iter().any(|sign| {
        message.split("{{").enumerate().any(|(index, piece)| {
            let outside = if index == 0 { piece } else { piece.split_once("}}").map_or(piece, |(_, rest)| rest) };
            outside.contains(sign)
        })
    });
    is_plain.then_some(filled)
}
