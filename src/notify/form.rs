//! What receivers want to have posted. Pure.

use reqwest::Url;
use serde_json::{Value, json};

use crate::manifest::NotificationFormat;
use crate::message::{Notice, fill_notice};

/// What is posted, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotificationPost {
    pub(super) url: Url,
    pub(super) media_type: &'static str,
    pub(super) body: String,
}

/// The post that tells of this notice, into which others may have been put together.
pub(super) fn build_post(
    form: &NotificationFormat,
    mut url: Url,
    notice: &Notice,
    all: &[Notice],
) -> Result<NotificationPost, String> {
    let body = match form {
        NotificationFormat::Slack => json!({ "text": escape_slack(&notice.text) }),
        NotificationFormat::Teams => teams_card(&notice.text),
        NotificationFormat::TelegramBot => {
            let chat = take_parameter(&mut url, "chat_id")
                .ok_or("the URL of a Telegram bot must end with `/sendMessage?chat_id=…`")?;
            json!({ "chat_id": chat, "text": notice.text })
        }
        NotificationFormat::Json => json!({
            "occasion": notice.occasion, "text": notice.text, "count": all.len(), "notices": all,
        }),
        NotificationFormat::Own(text) => {
            let body = fill_notice(text, notice, all.len())?;
            let is_json = serde_json::from_str::<Value>(&body).is_ok_and(|value| value.is_object() || value.is_array());
            let media_type = if is_json { JSON_MEDIA_TYPE } else { "text/plain; charset=utf-8" };
            return Ok(NotificationPost { url, media_type, body });
        }
    };
    Ok(NotificationPost { url, media_type: JSON_MEDIA_TYPE, body: body.to_string() })
}

const JSON_MEDIA_TYPE: &str = "application/json";

/// A text in which Slack finds no mark-up of its own: it would call everybody for `<!channel>`.
fn escape_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A card with one text, as a workflow of Teams takes it.
fn teams_card(text: &str) -> Value {
    let block = json!({ "type": "TextBlock", "wrap": true, "text": text });
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard", "version": "1.4", "body": [block],
    });
    let attachment = json!({ "contentType": "application/vnd.microsoft.card.adaptive", "content": card });
    json!({ "type": "message", "attachments": [attachment] })
}

/// Takes a parameter out of an address.
fn take_parameter(url: &mut Url, name: &str) -> Option<String> {
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let value = pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())?;
    url.set_query(None);
    let rest: Vec<_> = pairs.into_iter().filter(|(key, _)| key != name).collect();
    if !rest.is_empty() {
        url.query_pairs_mut().extend_pairs(rest);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post_form(form: &NotificationFormat, url: &str, text: &str) -> Result<(String, Value), String> {
        let notice = Notice { text: text.to_owned(), ..Notice::sample() };
        let post = build_post(form, url.parse().unwrap(), &notice, std::slice::from_ref(&notice))?;
        assert_eq!(post.media_type, JSON_MEDIA_TYPE);
        Ok((post.url.to_string(), serde_json::from_str(&post.body).unwrap()))
    }

    #[test]
    fn each_receiver_gets_its_own_payload_form() {
        let url = "https://hooks.example/services/T0/B0/secret?a=1";
        let (to, slack) = post_form(&NotificationFormat::Slack, url, "<!channel> & so").unwrap();
        assert_eq!((to.as_str(), slack), (url, json!({ "text": "&lt;!channel&gt; &amp; so" })));
        let (_, teams) = post_form(&NotificationFormat::Teams, url, "done").unwrap();
        assert_eq!(teams["attachments"][0]["content"]["body"][0]["text"], "done");
        assert_eq!(teams["attachments"][0]["contentType"], "application/vnd.microsoft.card.adaptive");
        let (_, all) = post_form(&NotificationFormat::Json, url, "done").unwrap();
        assert_eq!((&all["occasion"], &all["count"]), (&json!("finished"), &json!(1)));
        assert_eq!(all["notices"][0]["counts"]["accepted"], 98);
    }

    #[test]
    fn bot_chat_moves_from_the_url_into_the_body() {
        let (to, body) = post_form(
            &NotificationFormat::TelegramBot,
            "https://api.telegram.org/bot1:X/sendMessage?chat_id=-100&a=b",
            "x",
        )
        .unwrap();
        assert_eq!(to, "https://api.telegram.org/bot1:X/sendMessage?a=b");
        assert_eq!(body, json!({ "chat_id": "-100", "text": "x" }));
        let refused =
            post_form(&NotificationFormat::TelegramBot, "https://api.telegram.org/bot1:SECRET/sendMessage", "x")
                .unwrap_err();
        assert!(refused.contains("chat_id") && !refused.contains("SECRET"), "{refused}");
    }

    #[test]
    fn own_text_is_json_if_it_is_an_object_else_plain() {
        let notice = Notice::sample();
        for (text, media_type, body) in [
            ("{ \"content\": {{ text | json }} }", JSON_MEDIA_TYPE, "{ \"content\": \"autumn-sale@3 finished\" }"),
            ("{{ run }} is through", "text/plain; charset=utf-8", "autumn-sale@3 is through"),
            ("17", "text/plain; charset=utf-8", "17"),
        ] {
            let form = NotificationFormat::Own(text.to_owned());
            let post = build_post(&form, "https://a.example/".parse().unwrap(), &notice, &[]).unwrap();
            assert_eq!((post.media_type, post.body.as_str()), (media_type, body));
        }
    }
}
