//! The list and the SMS that the tests of this module share, tests with hostile texts, and a test of header spellings.

mod hostile;

use crate::message::{CompiledMessages, RenderError, TemplateNames, compile_messages};
use campaign_core::domain::{ExtraProperties, MessageContent, NamedTemplate, OperationKind, Row, Sms, Stage};

pub(super) fn names() -> TemplateNames {
    TemplateNames {
        headers: ["phone", "Ім'я", "code", "Note"].map(String::from).to_vec(),
        names: ["phone", "first_name", "code", "Note"].map(String::from).to_vec(),
        vars: vec![("shop".into(), "Olena & Co".into())],
        campaign: "autumn".into(),
        today: "2026-11-21".into(),
        ..TemplateNames::default()
    }
}

pub(super) fn sms_content(signature: &str, message: &str) -> MessageContent<NamedTemplate> {
    let text = |key: &str, source: &str| NamedTemplate { name: format!("sms.{key}"), source: source.into() };
    let (signature, message) = (text("signature", signature), text("message", message));
    let (lifetime, short_link, unsubscribe_link, fields) = (None, None, None, ExtraProperties::new());
    let (max_parts, plain) = (200, None);
    let stage =
        Stage::Sms(Sms { signature, message, lifetime, short_link, unsubscribe_link, max_parts, plain, fields });
    MessageContent { kind: OperationKind::Sms, stages: vec![stage] }
}

pub(super) fn compile_sms(message: &str, texts: &[(&str, &str)]) -> CompiledMessages {
    let mut load = |name: &str| {
        let entry = texts.iter().find(|(text, _)| *text == name);
        entry.map(|(_, source)| (*source).to_owned()).ok_or_else(|| "no such text".to_owned())
    };
    compile_messages(&sms_content("Olena", message), &names(), &mut load).unwrap()
}

pub(super) const CELLS: [&str; 4] = ["380501234567", "Оля", "<A&B>", ""];

pub(super) fn render_sms(messages: &CompiledMessages, cells: &[&str]) -> Result<String, RenderError> {
    let mut renderer = messages.renderer();
    let message = renderer.render(Row::new(7), |column| cells[column])?;
    Ok(message.billed_text().unwrap().to_owned())
}

#[test]
fn header_matches_composed_and_decomposed_accents() {
    let (composed, separate, mixed) = ("Pr\u{e9}nom \u{e9}", "Pre\u{301}nom e\u{301}", "Pre\u{301}nom \u{e9}");
    let render = |headers: &[&str], text: &str| {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        let names = TemplateNames { names: headers.clone(), headers, ..names() };
        let mut load = |_: &str| Err(String::new());
        let messages = compile_messages(&sms_content("Olena", text), &names, &mut load).unwrap();
        render_sms(&messages, &CELLS).unwrap()
    };
    for header in [composed, separate] {
        for spelling in [composed, separate, mixed] {
            assert_eq!(render(&["phone", header], &format!("{{{{ recipient['{spelling}'] }}}}")), "Оля", "{spelling}");
        }
        for spelling in [composed, separate] {
            let text = format!("{{{{ recipient['{spelling}' ~ ''] }}}}");
            assert_eq!(render(&["phone", header], &text), "Оля", "{spelling}");
        }
    }
    // If both spellings are headers, each spelling selects its own column.
    for (spelling, expected) in [(composed, "Оля"), (separate, "<A&B>")] {
        for text in [format!("{{{{ recipient['{spelling}'] }}}}"), format!("{{{{ recipient['{spelling}' ~ ''] }}}}")] {
            assert_eq!(render(&["phone", composed, separate], &text), expected, "{text}");
        }
    }
}
