//! A list and an SMS for tests.

use crate::domain::{Content, Extra, OperationKind, Row, Sms, Stage, Text};
use crate::message::{Invalid, Messages, Names, compile};

pub(super) fn names() -> Names {
    Names {
        headers: ["phone", "Ім'я", "code", "Note"].map(String::from).to_vec(),
        names: ["phone", "first_name", "code", "Note"].map(String::from).to_vec(),
        vars: vec![("shop".into(), "Olena & Co".into())],
        campaign: "autumn".into(),
        today: "2026-11-21".into(),
        ..Names::default()
    }
}

pub(super) fn sms(signature: &str, message: &str) -> Content<Text> {
    let text = |key: &str, source: &str| Text { name: format!("sms.{key}"), source: source.into() };
    let (signature, message) = (text("signature", signature), text("message", message));
    let (lifetime, short_link, fields) = (None, None, Extra::new());
    let stage = Stage::Sms(Sms { signature, message, lifetime, short_link, max_parts: 200, plain: None, fields });
    Content { kind: OperationKind::Sms, stages: vec![stage] }
}

pub(super) fn messages(message: &str, texts: &[(&str, &str)]) -> Messages {
    let mut load = |name: &str| {
        let found = texts.iter().find(|(text, _)| *text == name);
        found.map(|(_, source)| (*source).to_owned()).ok_or_else(|| "no such text".to_owned())
    };
    compile(&sms("Olena", message), &names(), &mut load).unwrap()
}

pub(super) const CELLS: [&str; 4] = ["380501234567", "Оля", "<A&B>", ""];

pub(super) fn rendered(messages: &Messages, cells: &[&str]) -> Result<String, Invalid> {
    let mut renderer = messages.renderer();
    let message = renderer.render(Row::new(7), |column| cells[column])?;
    Ok(message.billed_text().unwrap().to_owned())
}
