//! A message as the arguments of a call say it: what is shown of it before it is confirmed, and what it becomes. Pure.

use std::borrow::Cow;

use serde_json::{Map, Value as Json, json};

use super::arguments::masked;
use crate::domain::{
    Card, Channel, Content, Extra, Field, FieldKind, OperationKind, Stage, Value, Values, WirePlace, sms_text,
    text_violation,
};

/// A text of a call.
type Text = Cow<'static, str>;

/// What a call says on one channel, by the keys of the channel.
pub(super) type Said = Map<String, Json>;

/// A message as a call says it.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    kind: OperationKind,
    stages: Vec<(Channel, Said)>,
    problems: Vec<String>,
}

impl Draft {
    /// What is said on these channels, one after the other.
    pub(super) fn of(stages: Vec<(Channel, Said)>) -> Self {
        let channels: Vec<Channel> = stages.iter().map(|(channel, _)| *channel).collect();
        Self { kind: OperationKind::of(&channels), stages, problems: Vec::new() }
    }

    /// The same as a pipeline, of which these are the problems that are known already.
    pub(super) fn chain(stages: Vec<(Channel, Said)>, problems: Vec<String>) -> Self {
        Self { kind: OperationKind::Pipeline, stages, problems }
    }

    /// What a person sees before they confirm it: exactly what the operation carries. A channel whose message is not complete,
    /// which cannot be sent, shows what the call says of it.
    pub(super) fn preview(&self, phone: Option<&Json>, id: Option<&Json>) -> Json {
        let each = self.stages.iter().map(|(channel, said)| match self.stage(*channel, said) {
            Ok(stage) => (*channel, carried(self.kind, &stage)),
            Err(_) => (*channel, renamed(*channel, said)),
        });
        let shown: Vec<(Channel, Said)> = each.collect();
        let mut preview = shown.first().map(|(_, shown)| shown.clone()).unwrap_or_default();
        preview.insert("phone".to_owned(), json!(phone.map(masked)));
        preview.insert("channels".to_owned(), shown.iter().map(|(channel, _)| channel.name()).collect());
        if let Some(id) = id {
            preview.insert("id".to_owned(), id.clone());
        }
        if shown.len() > 1 {
            let each = shown.into_iter().map(|(channel, mut shown)| {
                shown.insert("channel".to_owned(), json!(channel.name()));
                Json::Object(shown)
            });
            preview.insert("messages".to_owned(), each.collect());
        }
        Json::Object(preview)
    }

    /// The message, whose texts every channel takes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn content(&self) -> Result<Content<Text>, Vec<String>> {
        let (mut stages, mut problems) = (Vec::new(), self.problems.clone());
        for (channel, said) in &self.stages {
            match self.stage(*channel, said) {
                Ok(stage) => {
                    let broken = stage.texts().filter_map(|(field, text)| text_violation(&stage, field, text));
                    problems.extend(broken.map(|violation| violation.to_string()));
                    stages.push(stage);
                }
                Err(wrong) => problems.extend(wrong),
            }
        }
        if problems.is_empty() { Ok(Content { kind: self.kind, stages }) } else { Err(problems) }
    }

    fn stage(&self, channel: Channel, said: &Said) -> Result<Stage<Text>, Vec<String>> {
        let mut values = Values::new(Extra::new());
        for field in channel.facts().fields {
            if let Some(value) = self.value(channel, field, said)? {
                values.set(field, value);
            }
        }
        let title = channel.facts().title;
        Stage::of(channel, values).ok_or_else(|| vec![format!("the {title} message is incomplete")])
    }

    fn value(&self, channel: Channel, field: &'static Field, said: &Said) -> Result<Option<Value<Text>>, Vec<String>> {
        let given = said.get(field.key);
        Ok(match field.kind {
            FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) => text(given).map(Value::Text),
            FieldKind::Form(_) => Some(Value::Word(self.form(channel, given.and_then(Json::as_str), said)?)),
            // How many parts a text may have is the author's own limit; here that of its characters holds.
            FieldKind::Number { most, .. } if field.place(self.kind) == WirePlace::Ours => Some(Value::Number(most)),
            FieldKind::Seconds { .. } | FieldKind::Number { .. } => {
                given.and_then(Json::as_u64).and_then(|number| u32::try_from(number).ok()).map(Value::Number)
            }
            // An assistant sees the text that it sends, and writes another one.
            FieldKind::Word(_) => None,
            FieldKind::Flag => given.and_then(Json::as_bool).map(Value::Flag),
            FieldKind::Cards { .. } => given.and_then(Json::as_array).map(|cards| Value::Cards(cards_of(cards))),
            FieldKind::Extra => None,
        })
    }

    /// The name of the form that the message has: the one that was named, or what follows from its keys.
    fn form(&self, channel: Channel, named: Option<&str>, said: &Said) -> Result<&'static str, Vec<String>> {
        let facts = channel.facts();
        let given: Vec<&str> = facts.keys_of_forms().filter(|key| said.contains_key(*key)).collect();
        let form = match named {
            _ if self.kind == OperationKind::Pipeline => facts.forms.first(),
            Some(name) => facts.forms.iter().find(|form| form.name == name),
            None => facts.form_of(&given),
        };
        let (title, Some(form)) = (facts.title, form) else { return Err(vec!["unknown message type".to_owned()]) };
        let lacks = form.needs.iter().filter(|key| !given.contains(key));
        let lacks = lacks.map(|key| format!("a {title} message of type `{}` needs `{}`", form.name, called(key)));
        let foreign = given.iter().filter(|key| !form.has(key));
        let foreign = foreign.map(|key| format!("a {title} message of type `{}` has no `{}`", form.name, called(key)));
        let problems: Vec<String> = lacks.chain(foreign).collect();
        if problems.is_empty() { Ok(form.name) } else { Err(problems) }
    }
}

/// What a sending tool of one channel calls a key of that channel.
pub(super) fn called(key: &'static str) -> &'static str {
    match key {
        "signature" => "sender",
        "message" => "text",
        "type" => "viber_type",
        other => other,
    }
}

/// What an operation of this kind carries of a stage, by the names of the sending tools, and the parts of its text.
fn carried(kind: OperationKind, stage: &Stage<Text>) -> Said {
    let mut carried = Said::new();
    for (field, value) in stage.values().filter(|(field, _)| field.place(kind).property().is_some()) {
        carried.insert(called(field.key).to_owned(), json_of(value));
    }
    if let Some(text) = stage.billed_text() {
        carried.insert("parts".to_owned(), json!(sms_text(text).parts));
    }
    carried
}

fn json_of(value: Value<&Text>) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Word(word) => json!(word),
        Value::Number(number) => json!(number),
        Value::Flag(flag) => json!(flag),
        Value::Cards(cards) => cards.into_iter().map(card_json).collect(),
    }
}

fn card_json(card: Card<&Text>) -> Json {
    Json::Object(card.into_texts().map(|(field, text)| (field.key.to_owned(), json!(text))).collect())
}

/// What a call says on a channel, by the names of the sending tools.
fn renamed(channel: Channel, said: &Said) -> Said {
    let keys = channel.facts().fields.iter().map(|field| field.key);
    keys.filter_map(|key| Some((called(key).to_owned(), said.get(key)?.clone()))).collect()
}

fn text(given: Option<&Json>) -> Option<Text> {
    Some(Cow::Owned(given?.as_str()?.to_owned()))
}

/// Cards, as far as they are complete.
fn cards_of(cards: &[Json]) -> Vec<Card<Text>> {
    let card = |card: &Json| {
        let text = |key: &str| text(card.get(key));
        Some(Card { caption: text("caption"), image: text("image")?, url: text("url")?, button: text("button")? })
    };
    cards.iter().filter_map(card).collect()
}
