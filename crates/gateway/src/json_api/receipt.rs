//! Delivery receipts from webhooks (contract 2.4).
//!
//! The contract shows one JSON object. Similar gateways also send a list of them, alone or in `data`, or form data with
//! the same names (`data[0][id]=…`); all of these are read. A member of the wrong type does not hide the others. Replies
//! are read in every form that a gateway could use, because a lost reply can be a lost opt-out.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::members::{SuccessFlag, read_msg_id, read_object, read_text, read_timestamp, read_whole_number};
use campaign_core::domain::{GatewayMessageId, Media, Receipt, ReceiptSource, RecipientReply, ReportedChannel, Status};

/// The maximum number of receipts in a webhook.
const MAX_RECEIPTS: usize = 1_000;

/// A receipt with the identifier of its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifiedReceipt {
    /// Our identifier, if the receipt has one; `Some(None)` if the value is not a whole number.
    pub id: Option<Option<u64>>,
    /// The receipt, whose source is always [`ReceiptSource::Webhook`].
    pub receipt: Receipt,
}

/// A body that is not a receipt.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not a delivery status: {0}")]
pub struct UnreadableReceipt(&'static str);

/// The members of a webhook's payload.
#[derive(Deserialize)]
struct ReceiptPayload<'a> {
    #[serde(borrow)]
    success: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    channel: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    updated: Option<&'a RawValue>,
    #[serde(borrow)]
    reply: Option<&'a RawValue>,
    #[serde(borrow)]
    duration: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    replies: Option<&'a RawValue>,
}

/// An item of `replies`.
#[derive(Deserialize)]
struct WireReply<'a> {
    #[serde(borrow)]
    datetime: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    media: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireMedia<'a> {
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    filename: Option<&'a RawValue>,
    #[serde(borrow)]
    filesize: Option<&'a RawValue>,
}

/// Receipts in a `data` member.
#[derive(Deserialize)]
struct WrappedReceipts<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Reads the receipts in the body of a webhook request. At least one receipt is returned.
///
/// # Errors
/// If the body cannot be read or contains no receipt.
pub fn read_receipts(body: &[u8]) -> Result<Vec<IdentifiedReceipt>, UnreadableReceipt> {
    let body = std::str::from_utf8(body).map_err(|_| UnreadableReceipt("it is not UTF-8"))?;
    let body = body.trim_start_matches('\u{feff}').trim();
    if !body.starts_with(['{', '[', '"']) {
        let json = form_data_to_json(body).ok_or(UnreadableReceipt("it is neither JSON nor form data"))?;
        return read_json_receipts(&json);
    }
    read_json_receipts(body)
}

fn read_json_receipts(json: &str) -> Result<Vec<IdentifiedReceipt>, UnreadableReceipt> {
    let not_json = |_: serde_json::Error| UnreadableReceipt("it is not JSON");
    let items: Vec<&RawValue> = if json.starts_with('[') {
        serde_json::from_str(json).map_err(not_json)?
    } else {
        let whole: &RawValue = serde_json::from_str(json).map_err(not_json)?;
        match read_object::<WrappedReceipts<'_>>(json).and_then(|wrapped| wrapped.data) {
            Some(data) if data.get().starts_with('[') => serde_json::from_str(data.get()).map_err(not_json)?,
            Some(data) if data.get().starts_with('{') => vec![data],
            _ => vec![whole],
        }
    };
    if items.is_empty() || items.len() > MAX_RECEIPTS {
        return Err(UnreadableReceipt("it contains no receipt, or too many"));
    }
    items.into_iter().map(|item| read_receipt(item.get())).collect()
}

fn read_receipt(json: &str) -> Result<IdentifiedReceipt, UnreadableReceipt> {
    let payload: ReceiptPayload<'_> =
        read_object(json).ok_or(UnreadableReceipt("it is not a JSON object, or it repeats a member"))?;
    let (error, status_name) = (read_text(payload.error), read_text(payload.status));
    let success = match payload.success.map(|success| success.get().trim_matches('"')) {
        Some("true" | "1") => SuccessFlag::True,
        Some("false" | "0") => SuccessFlag::False,
        _ => SuccessFlag::Unclear,
    };
    let status = match (status_name, success) {
        (Some(word), _) => Status::from_name(&word),
        // Success means delivered or read (contract 2.4), so the weaker of the two is recorded.
        (None, SuccessFlag::True) => Status::Delivered,
        (None, SuccessFlag::False) if error.is_some() => Status::Rejected,
        (None, SuccessFlag::False) => Status::Unknown,
        (None, SuccessFlag::Unclear) => return Err(UnreadableReceipt("it has neither `status` nor `success`")),
    };
    let channel = read_text(payload.channel).and_then(|word| ReportedChannel::parse(&word));
    let receipt = Receipt {
        source: ReceiptSource::Webhook,
        status,
        channel,
        updated: read_timestamp(payload.updated),
        msg_id: read_msg_id(payload.msg_id).map(GatewayMessageId::normalize),
        request_id: read_text(payload.request_id),
        error,
        digit: read_text(payload.reply),
        duration: payload.duration.and_then(read_seconds),
        replies: read_replies(payload.replies, payload.reply),
    };
    Ok(IdentifiedReceipt { id: payload.id.filter(|id| id.get() != "null").map(read_whole_number), receipt })
}

/// Reads a duration, truncated to whole seconds. `None` if the value is not a number, negative or implausibly large.
fn read_seconds(raw: &RawValue) -> Option<u64> {
    /// 2^32 seconds, or 136 years.
    const LIMIT: f64 = 4_294_967_296.0;
    let seconds: f64 = raw.get().trim_matches('"').parse().ok()?;
    (0.0..LIMIT).contains(&seconds).then_some(seconds as u64)
}

/// Reads `replies`: a list of replies or a single one, as JSON or as a text with JSON. Without replies, a text in
/// `reply` is a reply, unless it is a digit that the recipient pressed.
fn read_replies(raw: Option<&RawValue>, pressed: Option<&RawValue>) -> Vec<RecipientReply> {
    let unquoted = raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let is_json = |text: &str| text.trim_start().starts_with(['[', '{']);
    let json = match &unquoted {
        Some(text) if is_json(text) => Some(text.as_str()),
        _ => raw.map(RawValue::get),
    };
    let items: Option<Vec<&RawValue>> = json.and_then(|json| serde_json::from_str(json).ok());
    let replies: Vec<RecipientReply> = match (items, json) {
        (Some(items), _) => items.into_iter().filter_map(|item| read_reply(item.get())).collect(),
        (None, Some(json)) => read_reply(json).into_iter().collect(),
        (None, None) => Vec::new(),
    };
    let is_key = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, '*' | '#'));
    match read_text(pressed).filter(|text| replies.is_empty() && !is_key(text)) {
        Some(text) => vec![RecipientReply { at: None, text, media: None }],
        None => replies,
    }
}

/// Reads a reply: an object, or only its text.
fn read_reply(json: &str) -> Option<RecipientReply> {
    if !json.trim_start().starts_with('{') {
        let text = serde_json::from_str::<String>(json).ok().filter(|text| !text.trim().is_empty())?;
        return Some(RecipientReply { at: None, text, media: None });
    }
    // Of members with the same name, the last one counts.
    let json = &serde_json::from_str::<Value>(json).ok()?.to_string();
    let wire: WireReply<'_> = read_object(json)?;
    let media = wire.media.and_then(|media| read_object::<WireMedia<'_>>(media.get())).and_then(|media| {
        let filesize = media.filesize.and_then(read_whole_number);
        Some(Media { url: read_text(media.url)?, filename: read_text(media.filename), filesize })
    });
    let reply =
        RecipientReply { at: read_timestamp(wire.datetime), text: read_text(wire.message).unwrap_or_default(), media };
    (!reply.text.is_empty() || reply.media.is_some()).then_some(reply)
}

/// Converts form data to the JSON that it represents: `id=1&status=READ`, `data[0][id]=1`, or `data={…}`. `None` for
/// other text.
fn form_data_to_json(body: &str) -> Option<String> {
    let mut whole = Map::new();
    let mut items: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
    for (key, value) in form_urlencoded::parse(body.as_bytes()) {
        if matches!(key.as_ref(), "data" | "data[0]") && value.trim_start().starts_with(['{', '[']) {
            return Some(value.into_owned());
        }
        let FormKey { item, path } = FormKey::parse(&key)?;
        let members = match item {
            Some(item) => items.entry(item).or_default(),
            None => &mut whole,
        };
        let value = Value::String(value.into_owned());
        match path.as_slice() {
            ["replies", inner @ ..] if !inner.is_empty() => add_form_reply(members, inner, value),
            // Two values of the same member contradict each other.
            _ if members.insert(path.join("."), value).is_some() => return None,
            _ => {}
        }
    }
    if items.is_empty() {
        return Some(form_replies_to_list(whole).to_string());
    }
    Some(Value::Array(items.into_values().map(form_replies_to_list).collect()).to_string())
}

/// A key of form data, such as `data[0][id]`, `data[id]`, `id` or `replies[0][message]`.
struct FormKey<'k> {
    /// The index of the receipt, if there are several.
    item: Option<u32>,
    /// The member of the receipt, and the members within it.
    path: Vec<&'k str>,
}

impl<'k> FormKey<'k> {
    fn parse(key: &'k str) -> Option<Self> {
        let plain = Self { item: None, path: vec![key] };
        let Some((first, rest)) = key.split_once('[') else { return Some(plain) };
        let inner = rest.strip_suffix(']').map(|inner| inner.split("]["));
        let mut path: Vec<&str> = match (first, inner) {
            ("replies", Some(inner)) => {
                return Some(Self { item: None, path: [first].into_iter().chain(inner).collect() });
            }
            ("data", inner) => inner?.collect(),
            _ => return Some(plain),
        };
        let item = if path.len() > 1 { path[0].parse().ok() } else { None };
        if item.is_some() {
            path.remove(0);
        }
        Some(Self { item, path })
    }
}

/// Adds a value of form data to the replies in `members`: `replies[0][message]`, `replies[message]` or `replies[0]`.
fn add_form_reply(members: &mut Map<String, Value>, path: &[&str], value: Value) {
    let (index, path) = match path {
        [index, path @ ..] if index.parse::<u32>().is_ok() || index.is_empty() => (*index, path),
        path => ("0", path),
    };
    // Replies are collected by index first: `form_replies_to_list` makes a list of them.
    let replies = members.entry("replies").or_insert_with(|| Value::Object(Map::new()));
    let Some(replies) = replies.as_object_mut() else { return };
    let reply = replies.entry(format!("{index:0>10}")).or_insert_with(|| Value::Object(Map::new()));
    match (path, reply.as_object_mut()) {
        ([], _) => *reply = value,
        ([member], Some(reply)) => drop(reply.insert((*member).to_owned(), value)),
        ([member, inner], Some(reply)) => {
            let inside = reply.entry(*member).or_insert_with(|| Value::Object(Map::new()));
            if let Some(inside) = inside.as_object_mut() {
                inside.insert((*inner).to_owned(), value);
            }
        }
        _ => {}
    }
}

/// Replaces replies that [`add_form_reply`] collected by index with a list.
fn form_replies_to_list(mut members: Map<String, Value>) -> Value {
    if let Some(Value::Object(replies)) = members.get_mut("replies") {
        let mut replies: Vec<(String, Value)> = std::mem::take(replies).into_iter().collect();
        replies.sort_by(|(one, _), (other, _)| one.cmp(other));
        members.insert("replies".to_owned(), replies.into_iter().map(|(_, reply)| reply).collect());
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn read_single(body: &str) -> IdentifiedReceipt {
        let mut receipts = read_receipts(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(receipts.len(), 1, "{body}");
        receipts.remove(0)
    }

    fn timestamp(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn every_member_of_the_contract_is_read() {
        let body = r#"{"success":true,"id":"10017","msg_id":"42","type":"viber","status":"REPLIED","error":"none",
            "updated":"2026-11-22T12:00:00.123456+02:00","reply":"5","duration":12.7,"request_id":"cf-1",
            "replies":[{"datetime":"2026-11-22T12:01:00+02:00","message":"Так",
                        "media":{"url":"https://cdn.example/a.jpg","filename":"a.jpg","filesize":1024}}]}"#;
        let media =
            Media { url: "https://cdn.example/a.jpg".into(), filename: Some("a.jpg".into()), filesize: Some(1024) };
        let expected = Receipt {
            source: ReceiptSource::Webhook,
            status: Status::Replied,
            channel: ReportedChannel::parse("viber"),
            updated: timestamp("2026-11-22T10:00:00.123Z"),
            msg_id: Some(GatewayMessageId::Number(42)),
            request_id: Some("cf-1".into()),
            error: Some("none".into()),
            digit: Some("5".into()),
            duration: Some(12),
            replies: vec![RecipientReply {
                at: timestamp("2026-11-22T10:01:00Z"),
                text: "Так".into(),
                media: Some(media),
            }],
        };
        assert_eq!(read_single(body), IdentifiedReceipt { id: Some(Some(10_017)), receipt: expected });
    }

    #[test]
    fn receipt_is_read_from_every_known_format() {
        let plain = read_single(r#"{"id":"17","status":"DELIVERED","msg_id":"42"}"#);
        for body in [
            r#"{"id":17,"status":"DELIVERED","msg_id":42}"#,
            r#"{"id":17.0,"status":"delivered","msg_id":42,"success":null,"more":{"deep":[1]}}"#,
            r#"[{"id":"17","status":"DELIVERED","msg_id":"42"}]"#,
            r#"{"data":[{"id":"17","status":"DELIVERED","msg_id":"42"}]}"#,
            r#"{"data":{"id":"17","status":"DELIVERED","msg_id":"42"}}"#,
            "id=17&status=DELIVERED&msg_id=42",
            "data%5B0%5D%5Bid%5D=17&data%5B0%5D%5Bstatus%5D=DELIVERED&data[0][msg_id]=42",
            "data[id]=17&data[status]=DELIVERED&data[msg_id]=42",
            "data=%7B%22id%22%3A%2217%22%2C%22status%22%3A%22DELIVERED%22%2C%22msg_id%22%3A%2242%22%7D",
        ] {
            assert_eq!(read_single(body), plain, "{body}");
        }
        let two = "data[0][id]=1&data[0][status]=READ&data[1][id]=2&data[1][status]=SIM+FULL";
        let ids: Vec<_> = read_receipts(two.as_bytes()).unwrap().into_iter().map(|identified| identified.id).collect();
        assert_eq!(ids, [Some(Some(1)), Some(Some(2))]);
    }

    #[test]
    fn missing_status_is_inferred_from_success() {
        for (body, status) in [
            (r#"{"success":true}"#, Status::Delivered),
            (r#"{"success":"true"}"#, Status::Delivered),
            (r#"{"success":false,"error":"No route"}"#, Status::Rejected),
            (r#"{"success":false}"#, Status::Unknown),
            (r#"{"success":true,"status":"EXPIRED"}"#, Status::Expired),
            (r#"{"status":"PAUSED BY OPERATOR"}"#, Status::Other("PAUSED BY OPERATOR".into())),
        ] {
            assert_eq!(read_single(body).receipt.status, status, "{body}");
        }
    }

    #[test]
    fn reply_is_read_in_every_form() {
        for body in [
            r#"{"status":"REPLIED","replies":[{"message":"STOP"}]}"#,
            r#"{"status":"REPLIED","replies":{"message":"STOP"}}"#,
            r#"{"status":"REPLIED","replies":["STOP"]}"#,
            r#"{"status":"REPLIED","replies":"STOP"}"#,
            r#"{"status":"REPLIED","replies":"[{\"message\":\"STOP\"}]"}"#,
            r#"{"status":"REPLIED","replies":[{"message":"hm","message":"STOP"}]}"#,
            r#"{"status":"REPLIED","reply":"STOP"}"#,
            "status=REPLIED&replies[0][message]=STOP",
            "status=REPLIED&replies[message]=STOP",
            "status=REPLIED&replies[]=STOP",
            "status=REPLIED&replies=STOP",
            "data[0][status]=REPLIED&data[0][replies][0][message]=STOP",
            "data[status]=REPLIED&data[replies][0][message]=STOP",
            "status=REPLIED&replies=%5B%7B%22message%22%3A%22STOP%22%7D%5D",
        ] {
            let texts: Vec<String> = read_single(body).receipt.replies.into_iter().map(|reply| reply.text).collect();
            assert_eq!(texts, ["STOP"], "{body}");
        }
        let two = "status=REPLIED&replies[1][message]=b&replies[0][message]=a&replies[0][media][url]=https://x.example";
        let replies = read_single(two).receipt.replies;
        assert_eq!(replies.iter().map(|reply| reply.text.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(replies[0].media.is_some());
        assert_eq!(read_single(r#"{"status":"READ","reply":"5"}"#).receipt.replies, []);
    }

    #[test]
    fn last_of_many_replies_is_read() {
        let replies = vec![r#"{"message":"?"}"#; 40].join(",");
        let identified = read_single(&format!(r#"{{"status":"REPLIED","replies":[{replies},{{"message":"STOP"}}]}}"#));
        assert_eq!(identified.receipt.replies.last().map(|reply| reply.text.as_str()), Some("STOP"));
    }

    #[test]
    fn member_of_the_wrong_type_does_not_hide_others() {
        let identified =
            read_single(r#"{"id":true,"msg_id":[1],"status":"READ","updated":"yesterday","duration":-1,"replies":7}"#);
        assert_eq!(identified.id, Some(None));
        assert_eq!(identified.receipt, Receipt::new(ReceiptSource::Webhook, Status::Read));
    }

    #[test]
    fn unreadable_webhook_is_rejected() {
        for body in
            ["", "{}", "[]", "null", "17", "[1]", "{\"status\":", "<xml/>", r#"{"id":1,"id":2,"status":"READ"}"#]
        {
            assert!(read_receipts(body.as_bytes()).is_err(), "{body}");
        }
        assert!(read_receipts(b"{\"status\":\"\xff\"}").is_err());
        assert!(read_receipts("[".repeat(200_000).as_bytes()).is_err());
        assert!(
            read_receipts(format!("[{}]", vec![r#"{"status":"READ"}"#; MAX_RECEIPTS + 1].join(",")).as_bytes())
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(body: Vec<u8>) {
            let _ = read_receipts(&body);
        }

        #[test]
        fn arbitrary_replies_and_form_keys_never_panic(value in r#"[{}\[\]",:a-z0-9 ]{0,60}"#) {
            let _ = read_receipts(format!(r#"{{"status":"READ","replies":{value}}}"#).as_bytes());
            let _ = read_receipts(format!("data[{value}]=1").as_bytes());
        }
    }
}
