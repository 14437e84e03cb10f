//! A message as the arguments of a call say it: what is shown of it before it is confirmed, and what it becomes. Pure.

use std::borrow::Cow;

use serde_json::{Map, Value as Json, json};

use super::arguments::mask_phone;
use crate::domain::{
    Card, Channel, ChannelField, ExtraProperties, FieldKind, FieldValue, MessageContent, OperationKind, Stage,
    StageValues, WirePlace, find_text_violation, measure_sms,
};

/// A text of a call.
type CallText = Cow<'static, str>;

/// What a call says on one channel, by the keys of the channel.
pub(super) type ChannelArguments = Map<String, Json>;

/// A message as a call says it.
#[derive(Clone, Debug)]
pub(super) struct MessageDraft {
    kind: OperationKind,
    stages: Vec<(Channel, ChannelArguments)>,
    problems: Vec<String>,
}

impl MessageDraft {
    /// What is said on these channels, one after the other.
    pub(super) fn from_stages(stages: Vec<(Channel, ChannelArguments)>) -> Self {
        let channels: Vec<Channel> = stages.iter().map(|(channel, _)| *channel).collect();
        Self { kind: OperationKind::for_channels(&channels), stages, problems: Vec::new() }
    }

    /// The same as a pipeline, of which these are the problems that are known already.
    pub(super) fn from_pipeline(stages: Vec<(Channel, ChannelArguments)>, problems: Vec<String>) -> Self {
        Self { kind: OperationKind::Pipeline, stages, problems }
    }

    /// What a person sees before they confirm it: exactly what the operation carries. A channel whose message is not complete,
    /// which cannot be sent, shows what the call says of it.
    pub(super) fn preview(&self, phone: Option<&Json>, id: Option<&Json>) -> Json {
        let each = self.stages.iter().map(|(channel, said)| match self.build_stage(*channel, said) {
            Ok(stage) => (*channel, carried_arguments(self.kind, &stage)),
            Err(_) => (*channel, rename_arguments(*channel, said)),
        });
        let shown: Vec<(Channel, ChannelArguments)> = each.collect();
        let mut preview = shown.first().map(|(_, shown)| shown.clone()).unwrap_or_default();
        preview.insert("phone".to_owned(), json!(phone.map(mask_phone)));
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
    pub(super) fn to_content(&self) -> Result<MessageContent<CallText>, Vec<String>> {
        let (mut stages, mut problems) = (Vec::new(), self.problems.clone());
        for (channel, said) in &self.stages {
            match self.build_stage(*channel, said) {
                Ok(stage) => {
                    let broken = stage.texts().filter_map(|(field, text)| find_text_violation(&stage, field, text));
                    problems.extend(broken.map(|violation| violation.to_string()));
                    stages.push(stage);
                }
                Err(wrong) => problems.extend(wrong),
            }
        }
        if problems.is_empty() { Ok(MessageContent { kind: self.kind, stages }) } else { Err(problems) }
    }

    fn build_stage(&self, channel: Channel, said: &ChannelArguments) -> Result<Stage<CallText>, Vec<String>> {
        let mut values = StageValues::new(ExtraProperties::new());
        for field in channel.facts().fields {
            if let Some(value) = self.read_value(channel, field, said)? {
                values.set_value(field, value);
            }
        }
        let title = channel.facts().title;
        Stage::of(channel, values).ok_or_else(|| vec![format!("the {title} message is incomplete")])
    }

    fn read_value(
        &self,
        channel: Channel,
        field: &'static ChannelField,
        said: &ChannelArguments,
    ) -> Result<Option<FieldValue<CallText>>, Vec<String>> {
        let given = said.get(field.key);
        Ok(match field.kind {
            FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) => to_text(given).map(FieldValue::Text),
            FieldKind::Form(_) => {
                Some(FieldValue::Word(self.determine_form(channel, given.and_then(Json::as_str), said)?))
            }
            // How many parts a text may have is the author's own limit; here that of its characters holds.
            FieldKind::Number { most, .. } if field.place_in(self.kind) == WirePlace::LocalOnly => {
                Some(FieldValue::Number(most))
            }
            FieldKind::Seconds { .. } | FieldKind::Number { .. } => {
                given.and_then(Json::as_u64).and_then(|number| u32::try_from(number).ok()).map(FieldValue::Number)
            }
            // An assistant sees the text that it sends, and writes another one.
            FieldKind::Word(_) => None,
            FieldKind::Flag => given.and_then(Json::as_bool).map(FieldValue::Flag),
            FieldKind::Cards { .. } => given.and_then(Json::as_array).map(|cards| FieldValue::Cards(read_cards(cards))),
            FieldKind::Extra => None,
        })
    }

    /// The name of the form that the message has: the one that was named, or what follows from its keys.
    fn determine_form(
        &self,
        channel: Channel,
        named: Option<&str>,
        said: &ChannelArguments,
    ) -> Result<&'static str, Vec<String>> {
        let facts = channel.facts();
        let given: Vec<&str> = facts.form_keys().filter(|key| said.contains_key(*key)).collect();
        let form = match named {
            _ if self.kind == OperationKind::Pipeline => facts.forms.first(),
            Some(name) => facts.forms.iter().find(|form| form.name == name),
            None => facts.find_form(&given),
        };
        let (title, Some(form)) = (facts.title, form) else { return Err(vec!["unknown message type".to_owned()]) };
        let lacks = form.required_keys.iter().filter(|key| !given.contains(key));
        let lacks =
            lacks.map(|key| format!("a {title} message of type `{}` needs `{}`", form.name, argument_name(key)));
        let foreign = given.iter().filter(|key| !form.allows_key(key));
        let foreign =
            foreign.map(|key| format!("a {title} message of type `{}` has no `{}`", form.name, argument_name(key)));
        let problems: Vec<String> = lacks.chain(foreign).collect();
        if problems.is_empty() { Ok(form.name) } else { Err(problems) }
    }
}

/// What a sending tool of one channel calls a key of that channel.
pub(super) fn argument_name(key: &'static str) -> &'static str {
    match key {
        "signature" => "sender",
        "message" => "text",
        "type" => "viber_type",
        other => other,
    }
}

/// What an operation of this kind carries of a stage, by the names of the sending tools, and the parts of its text.
fn carried_arguments(kind: OperationKind, stage: &Stage<CallText>) -> ChannelArguments {
    let mut carried = ChannelArguments::new();
    for (field, value) in stage.values().filter(|(field, _)| field.place_in(kind).property().is_some()) {
        carried.insert(argument_name(field.key).to_owned(), value_json(value));
    }
    if let Some(text) = stage.billed_text() {
        carried.insert("parts".to_owned(), json!(measure_sms(text).parts));
    }
    carried
}

fn value_json(value: FieldValue<&CallText>) -> Json {
    match value {
        FieldValue::Text(text) => json!(text),
        FieldValue::Word(word) => json!(word),
        FieldValue::Number(number) => json!(number),
        FieldValue::Flag(flag) => json!(flag),
        FieldValue::Cards(cards) => cards.into_iter().map(card_json).collect(),
    }
}

fn card_json(card: Card<&CallText>) -> Json {
    Json::Object(card.into_texts().map(|(field, text)| (field.key.to_owned(), json!(text))).collect())
}

/// What a call says on a channel, by the names of the sending tools.
fn rename_arguments(channel: Channel, said: &ChannelArguments) -> ChannelArguments {
    let keys = channel.facts().fields.iter().map(|field| field.key);
    keys.filter_map(|key| Some((argument_name(key).to_owned(), said.get(key)?.clone()))).collect()
}

fn to_text(given: Option<&Json>) -> Option<CallText> {
    Some(Cow::Owned(given?.as_str()?.to_owned()))
}

/// Cards, as far as they are complete.
fn read_cards(cards: &[Json]) -> Vec<Card<CallText>> {
    let card = |card: &Json| {
        let text = |key: &str| to_text(card.get(key));
        Some(Card { caption: text("caption"), image: text("image")?, url: text("url")?, button: text("button")? })
    };
    cards.iter().filter_map(card).collect()
}
