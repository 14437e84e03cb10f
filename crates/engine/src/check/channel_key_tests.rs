//! Tests that every channel key of a campaign is either sent or rejected, never both and never neither.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs;

use tempfile::TempDir;

use campaign_core::domain::{
    Channel, ChannelField, FieldKind, FieldRequirement, MessageId, Operation, OperationKind, Phone,
};
use campaign_gateway::encode_operation;
use campaign_manifest::{CampaignDay, load_campaign};

/// Keys that campaign itself applies: they are neither sent nor rejected.
const LOCAL_KEYS: [(Channel, &str); 2] = [(Channel::Sms, "max_parts"), (Channel::Sms, "plain")];

/// Two different values of a key in the form of a campaign file. They are equal if the key has only one value.
fn sample_values(field: &ChannelField) -> [String; 2] {
    match field.kind {
        FieldKind::Template if field.key == "signature" => ["Olena", "OlenaCo"].map(String::from),
        FieldKind::Template | FieldKind::Message => {
            ["https://a.example/1.png", "https://a.example/2.png"].map(String::from)
        }
        FieldKind::Choice(words) | FieldKind::Word(words) => [words[0], words[1]].map(String::from),
        FieldKind::Form(names) => [names[0], names[0]].map(String::from),
        FieldKind::Seconds { .. } => ["2h", "3h"].map(String::from),
        FieldKind::Number { .. } => ["4", "5"].map(String::from),
        FieldKind::Flag => ["true", "false"].map(String::from),
        FieldKind::Cards { .. } => ["one", "two"].map(|caption| {
            let card = "image: https://a.example/1.png, url: https://a.example, button: Go";
            format!("[{{ caption: {caption}, {card} }}, {{ {card} }}]")
        }),
        FieldKind::Extra => unreachable!("extra properties have no key of their own"),
    }
}

/// The YAML of a channel with all keys that an operation needs, and the given value of one key.
fn channel_yaml(channel: Channel, kind: OperationKind, extra_field: Option<(&ChannelField, &str)>) -> String {
    let facts = channel.facts();
    let given_key = extra_field.map(|(field, _)| field.key);
    let form = facts.forms.iter().find(|form| given_key.is_some_and(|key| form.required_keys.contains(&key)));
    let form = form.filter(|_| kind != OperationKind::Pipeline).or(facts.forms.first());
    let mut keys = String::new();
    for field in facts.fields {
        let needed = match field.need {
            FieldRequirement::Always => true,
            FieldRequirement::InPipeline(_) => kind == OperationKind::Pipeline,
            FieldRequirement::OutsidePipeline(_) => kind != OperationKind::Pipeline,
            FieldRequirement::Never => false,
        };
        let needed = needed || form.is_some_and(|form| form.required_keys.contains(&field.key));
        let value = match extra_field.filter(|(extra_field, _)| *extra_field == field) {
            Some((_, value)) => Some(value.to_owned()),
            None => needed.then(|| sample_values(field)[0].clone()),
        };
        if let Some(value) = value {
            let _ = write!(keys, "{}: {value}, ", field.key);
        }
    }
    format!("  - {channel}: {{ {keys} }}\n")
}

/// The encoded operation of a campaign, or the error.
fn encode_campaign(folder: &TempDir, kind: OperationKind, channels: &str) -> Result<String, String> {
    let file = folder.path().join("a.yaml");
    let forced = if kind == OperationKind::Pipeline { "operation: pipeline\n" } else { "" };
    fs::write(&file, format!("recipients: {{ file: a.csv }}\n{forced}channels:\n{channels}")).unwrap();
    let loaded = load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now()));
    let messages: Vec<String> =
        loaded.findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect();
    let Some(campaign) = loaded.value else { return Err(messages.join("\n")) };
    let content = &campaign.brief.content;
    assert_eq!(content.kind, kind);
    let content = content.try_map_texts(|text| Ok::<_, ()>(Cow::Borrowed(text.source.as_str()))).unwrap();
    let (id, phone) = (MessageId::new(1).unwrap(), Phone::new(380_501_234_567).unwrap());
    Ok(String::from_utf8(encode_operation(&Operation { id, phone, content })).unwrap())
}

#[test]
fn every_channel_key_is_either_sent_or_rejected() {
    let folder = TempDir::new().unwrap();
    let (mut checked, mut wrong) = (0, Vec::new());
    for kind in OperationKind::ALL {
        let in_pipeline = Channel::ALL.into_iter().filter(|channel| !channel.facts().single);
        let channels: Vec<Channel> = match kind {
            OperationKind::Pipeline => in_pipeline.collect(),
            _ => kind.channels().to_vec(),
        };
        for channel in &channels {
            for field in channel.facts().fields.iter().filter(|field| field.kind != FieldKind::Extra) {
                let build_channels = |value: &str| -> String {
                    let extra = |other: &Channel| Some((field, value)).filter(|_| other == channel);
                    channels.iter().map(|other| channel_yaml(*other, kind, extra(other))).collect()
                };
                let encode = |value: String| encode_campaign(&folder, kind, &build_channels(&value));
                let [first, second] = sample_values(field).map(encode);
                let is_sent = match (&first, &second) {
                    (Ok(first), Ok(_)) if matches!(field.kind, FieldKind::Form(_)) => {
                        first.contains(&format!("type\":\"{}\"", sample_values(field)[0]))
                    }
                    (Ok(first), Ok(second)) => first != second,
                    _ => false,
                };
                let rejection =
                    format!("not-carried: a `{kind}` message does not support the key `{}` of `{channel}`", field.key);
                let is_rejected = [&first, &second]
                    .iter()
                    .all(|result| result.as_ref().is_err_and(|result| result.contains(&rejection)));
                let is_local = LOCAL_KEYS.contains(&(*channel, field.key)) && first.is_ok();
                checked += 1;
                if u8::from(is_sent) + u8::from(is_rejected) + u8::from(is_local) != 1 {
                    wrong.push(format!("`{}` of `{channel}` in `{kind}`: {first:?} {second:?}", field.key));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "sent and rejected, or neither:\n{}", wrong.join("\n"));
    assert!(checked > 70, "only {checked} keys were checked");
}
