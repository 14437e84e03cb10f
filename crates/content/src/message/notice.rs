//! Notification texts about runs. They contain no phone numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tera::{Context, Error, Kwargs, State, TeraResult, Value};

use super::engine::{create_engine, reset_steps};
use campaign_core::domain::NotificationEvent;

/// The allowed tags. Loops are not allowed, so that rendering always ends.
const ALLOWED_TAGS: [&str; 7] = ["if", "elif", "else", "endif", "raw", "endraw", "set"];
const TEMPLATE_NAME: &str = "notice";

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The event.
    pub occasion: NotificationEvent,
    /// The campaign's name.
    pub campaign: String,
    /// The name of the run, if there is one.
    pub run: Option<String>,
    /// The gateway profile.
    pub gateway: String,
    /// The whole notification as a sentence.
    pub text: String,
    /// The number of recipients of the run.
    pub rows: u64,
    /// The number of rows in each state.
    pub counts: BTreeMap<String, u64>,
    /// The reason why the run stopped or was skipped, in words.
    pub why: Option<String>,
    /// The path of the run's results.
    pub results: Option<String>,
    /// The time, as RFC 3339 in UTC.
    pub at: String,
}

impl Notice {
    /// A sample notice for checking texts.
    pub fn sample() -> Self {
        Self {
            occasion: NotificationEvent::Finished,
            campaign: "autumn-sale".to_owned(),
            run: Some("autumn-sale@3".to_owned()),
            gateway: "production".to_owned(),
            text: "autumn-sale@3 finished".to_owned(),
            rows: 100,
            counts: BTreeMap::from([("accepted".to_owned(), 98), ("rejected".to_owned(), 2)]),
            why: Some("stopped by a person".to_owned()),
            results: Some("results/autumn-sale.csv".to_owned()),
            at: "2026-12-01T10:00:00Z".to_owned(),
        }
    }
}

/// Renders an author's text with the fields of a notice and with `count`, the number of notifications that the notice
/// combines.
///
/// # Errors
/// A description of the problem with the text.
pub fn render_notice(text: &str, notice: &Notice, count: usize) -> Result<String, String> {
    if let Some(tag) = find_tag_names(text).find(|tag| !ALLOWED_TAGS.contains(tag)) {
        return Err(format!(
            "the tag `{tag}` is not allowed in a notification; the allowed tags are {}",
            ALLOWED_TAGS.join(", ")
        ));
    }
    let mut tera = create_engine();
    tera.register_filter("json", json_filter);
    let mut context = Context::from_serialize(notice).map_err(|error| format_error(&error))?;
    context.insert("count", &count);
    tera.add_raw_template(TEMPLATE_NAME, text).map_err(|error| format_error(&error))?;
    reset_steps();
    tera.render(TEMPLATE_NAME, &context).map_err(|error| format_error(&error))
}

/// Converts a value to JSON, with quotation marks around text.
fn json_filter(value: &Value, _: Kwargs, _: &State) -> TeraResult<String> {
    serde_json::to_string(value).map_err(|error| Error::message(error.to_string()))
}

/// The first word of each tag.
fn find_tag_names(text: &str) -> impl Iterator<Item = &str> {
    text.split("{%").skip(1).filter_map(|tag| tag.trim_start_matches('-').split_whitespace().next())
}

/// Formats a tera error on one line.
fn format_error(error: &Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_notice_are_inserted_into_the_text() {
        let notice = Notice { text: "it \"stopped\"".to_owned(), ..Notice::sample() };
        for (text, filled) in [
            ("{{ text }}", "it \"stopped\""),
            ("{\"content\": {{ text | json }}}", "{\"content\": \"it \\\"stopped\\\"\"}"),
            ("{{ run }}: {{ counts.accepted }} of {{ rows }}, {{ occasion }}", "autumn-sale@3: 98 of 100, finished"),
            ("{% if count > 1 %}{{ count }} runs{% else %}one{% endif %}", "3 runs"),
            ("{{ counts.in_doubt | default(value=0) }}", "0"),
        ] {
            assert_eq!(render_notice(text, &notice, 3).as_deref(), Ok(filled), "{text}");
        }
    }

    #[test]
    fn unusable_notice_text_is_rejected() {
        for text in ["{{ phone }}", "{{ text", "{% for a in range(end=9) %}{% endfor %}", "{%- include \"a\" %}"] {
            assert!(render_notice(text, &Notice::sample(), 1).is_err(), "{text}");
        }
    }
}
