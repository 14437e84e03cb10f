//! Tests of self-contained pages, rendered with sample data for every placeholder of their templates.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::read_html::{Element, Html};
use super::{PageFormat, render};
use crate::web::files::PhoneView;
use crate::web::words::PageLanguage;
use campaign_content::message::MarkedText;
use campaign_core::domain::{
    Card, Channel, ExtraProperties, FieldKind, FieldValue, MessageContent, OperationKind, Phone, Stage, StageValues,
};

/// A text with a part from the row.
fn sample_text(cell: &str) -> MarkedText {
    let text = format!("Hi {cell}, see https://shop.example/?c={cell}.");
    let first = 3..3 + cell.len();
    MarkedText { from_row: std::iter::once(first).filter(|range| !range.is_empty()).collect(), text }
}

/// A message with all the keys of its channel.
fn sample_stage(channel: Channel, cell: &str) -> Stage<MarkedText> {
    let mut values = StageValues::new(ExtraProperties::new());
    for field in channel.facts().fields {
        match field.kind {
            FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) => {
                values.set_value(field, FieldValue::Text(sample_text(cell)))
            }
            FieldKind::Form(words) | FieldKind::Word(words) => values.set_value(field, FieldValue::Word(words[0])),
            FieldKind::Seconds { least, .. } | FieldKind::Number { least, .. } => {
                values.set_value(field, FieldValue::Number(least))
            }
            FieldKind::Flag => values.set_value(field, FieldValue::Flag(true)),
            FieldKind::Cards { .. } => {
                let card = || Card {
                    caption: Some(sample_text(cell)),
                    image: sample_text(cell),
                    url: sample_text(cell),
                    button: sample_text(cell),
                };
                values.set_value(field, FieldValue::Cards(vec![card(), card()]));
            }
            FieldKind::Extra => {}
        }
    }
    Stage::of(channel, values).expect("a complete stage")
}

/// A message on every channel, as phone views.
fn sample_phones(cell: &str) -> Vec<PhoneView> {
    let stages = Channel::ALL.map(|channel| sample_stage(channel, cell)).to_vec();
    PhoneView::from_content(&MessageContent { kind: OperationKind::Pipeline, stages }, Phone::new(380_501_234_567))
}

/// Sample data for a campaign page, with this text in every cell.
pub(super) fn sample_view(cell: &str) -> Json {
    let finding = |severity: &str| {
        let text = json!([{ "text": cell, "code": false }, { "text": cell, "code": true }]);
        json!({ "severity": severity, "rule": "empty-cell", "message": text, "help": text, "place": cell })
    };
    let findings = json!([finding("error"), finding("warning"), finding("note")]);
    let opt_out = json!({ "at": cell, "scope": cell, "reason": cell, "source": cell });
    let mut ended = opt_out.clone();
    ended["ended"] = json!({ "at": cell, "by": cell, "why": cell });
    let facts = json!({
        "phone": cell, "complete": false, "made_at": "2026-11-21T09:05:00.000Z",
        "messages": [{
            "run": cell, "row": 2, "state": "delivered", "rehearsal": true, "mandatory": true, "reason": cell,
            "sent_at": cell, "delivered_at": cell, "purpose": "marketing",
            "consent": { "value": cell, "at": cell, "source": cell, "wording": cell },
            "approvals": [{ "by": cell, "at": cell }],
        }],
        "opt_outs": [opt_out], "ended_opt_outs": [ended],
    });
    let mut phones = json!(sample_phones(cell));
    phones[0]["findings"] = findings.clone();
    json!({
        "name": cell, "destination": cell, "file": cell, "created": "21 November 2026, 09:05",
        "digest": "3f9a1c22d04be781", "short": "3f9a1c22", "days": 30, "rows": 1_000, "later": 2, "hours": cell,
        "resources": [{ "key": cell, "kind": "program", "value": cell }], "on_in_doubt": "hold",
        "figures": { "rows": 1_000, "messages": 998, "parts": 2_000, "skipped": 2, "cost": "1 596.80 UAH" },
        "skipped": { "all": 2, "others": 1, "reasons": [
            { "state": "skipped", "translated": cell, "english": cell, "rows": 1 },
            { "state": "invalid", "translated": null, "english": cell, "rows": 1 },
        ] },
        "findings": findings,
        "messages": [
            { "row": 2, "to": "…67", "variant": cell, "phones": phones, "skipped": null },
            { "row": 3, "to": "", "variant": null, "phones": [], "skipped": { "state": "invalid", "translated": null, "english": cell } },
        ],
        "problems": cell, "shown": 2, "approve": cell, "run": cell,
        "text": cell, "signature": { "key": cell, "signature": cell },
        "facts": facts,
    })
}

/// The templates that are pages.
const PAGES: [&str; 3] = ["preview.html", "plan.html", "evidence.html"];

fn render_sample(language: PageLanguage, format: PageFormat, template: &str, cell: &str) -> String {
    render(language, format, template, &sample_view(cell)).unwrap()
}

#[test]
fn file_pages_are_valid_html_in_every_language() {
    for template in PAGES {
        for language in PageLanguage::ALL {
            for format in [PageFormat::Served, PageFormat::File] {
                let page = render_sample(language, format, template, "Olia");
                let html = Html::sound(&page);
                assert_eq!(html.one("html").attribute("lang"), language.code());
                let loaded = ["style", "link", "script"].map(|name| html.all(name).len());
                assert_eq!(loaded, if format == PageFormat::File { [1, 0, 0] } else { [0, 2, 1] });
                assert!(!page.contains("phone.") && !page.contains("state."), "a word is missing: {template}");
            }
        }
    }
}

#[test]
fn csp_of_file_pages_allows_only_their_own_stylesheet() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let html = Html::sound(&render_sample(PageLanguage::English, PageFormat::File, "preview.html", "Olia"));
    let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(&html.one("style").text));
    let policy = html.all("meta").into_iter().find(|meta| meta.attribute("http-equiv") == "Content-Security-Policy");
    let policy = policy.expect("a policy").attribute("content");
    assert!(policy.starts_with("default-src 'none'; ") && policy.contains(&format!("style-src 'sha256-{digest}'")));
}

#[test]
fn phone_preview_shows_channel_and_text_and_marks_row_values() {
    let html = Html::sound(&render_sample(PageLanguage::English, PageFormat::File, "preview.html", "Olia"));
    let channels: Vec<String> = html.with_class("channel").into_iter().map(Element::words).collect();
    assert_eq!(channels.len(), Channel::ALL.len());
    assert!(channels.iter().all(|channel| !channel.is_empty()), "{channels:?}");
    for phone in html.with_class("phone") {
        let has_no_text = phone.attribute("class").contains("hlr") || phone.attribute("class").contains("call-otp");
        assert!(
            has_no_text || phone.words().contains("Hi Olia, see https://shop.example/?c=Olia."),
            "{}",
            phone.words()
        );
    }
    assert!(html.all("mark").iter().filter(|mark| mark.text == "Olia").count() > 20);
    assert!(html.with_class("link").iter().all(|link| link.name == "span"), "links cannot be clicked");
    assert!(html.all("img").is_empty() && html.all("a").len() == 1);
}

#[test]
fn sms_parts_are_counted_and_marked() {
    let html = Html::sound(&render_sample(PageLanguage::Ukrainian, PageFormat::File, "preview.html", &"я".repeat(70)));
    let sms = html.with_class("phone-sms").into_iter().next().expect("an SMS").words();
    assert!(sms.contains("частина 2") && sms.contains("частина 3") && !sms.contains("частина 4"), "{sms}");
    assert!(sms.contains("3 частини") && sms.contains("174 символи"), "{sms}");
}

/// The names of elements, each with the names of its attributes.
pub(super) type ElementShapes = BTreeSet<(String, Vec<String>)>;

/// Lists the names of a page's elements, each with the names of its attributes.
pub(super) fn element_shapes(page: &str) -> ElementShapes {
    let shape = |element: Element| (element.name, element.attributes.into_keys().collect());
    Html::sound(page).elements.into_iter().map(shape).collect()
}

/// The element shapes of each page with harmless texts.
static KNOWN_SHAPES: LazyLock<Vec<ElementShapes>> = LazyLock::new(|| {
    let harmless = "я https://b.example ".repeat(9);
    let render = |template: &&str| render_sample(PageLanguage::English, PageFormat::File, template, &harmless);
    PAGES.iter().map(|template| element_shapes(&render(template))).collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cell_values_cannot_inject_elements_into_file_pages(
        any in any::<String>(),
        hostile in "(<script>alert\\(1\\)</script>|<img src=x onerror=y>|\" onclick=\"z|' style='|</style>|</title>|<!--|&lt;|\\{\\{ x \\}\\}|\\]\\]>|\u{0}|\u{202e}|\u{fdd0}|http://x\"y| )*",
    ) {
        for (template, known) in PAGES.iter().zip(&*KNOWN_SHAPES) {
            for cell in [&any, &hostile] {
                let page = render_sample(PageLanguage::English, PageFormat::File, template, &format!("x{cell}"));
                let foreign: Vec<_> = element_shapes(&page).difference(known).cloned().collect();
                prop_assert!(foreign.is_empty(), "{foreign:?}");
            }
        }
    }
}
