//! Tests of served pages, rendered with sample data for every placeholder of their templates.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::civil::Date;
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value as Json, json};

use super::file_page_tests::{ElementShapes, element_shapes, sample_view as file_sample_view};
use super::read_html::Html;
use super::{PageFormat, render};
use crate::web::charts::{Bar, ColumnInput, build_calendar, draw_columns};
use crate::web::run_page::sample_with_text;
use crate::web::words::PageLanguage;

/// The templates of served pages.
const PAGES: [&str; 22] = [
    "pages/sign_in_unavailable.html",
    "pages/sign_in_required.html",
    "pages/sign_in.html",
    "pages/signed_in.html",
    "pages/error.html",
    "pages/overview.html",
    "pages/runs.html",
    "pages/schedules.html",
    "pages/opt_outs.html",
    "pages/replies.html",
    "pages/campaigns.html",
    "pages/search.html",
    "pages/variants.html",
    "pages/confirm.html",
    "pages/run.html",
    "pages/retry.html",
    "pages/test.html",
    "pages/rows.html",
    "pages/message.html",
    "pages/campaign.html",
    "pages/run_preview.html",
    "pages/schedule_preview.html",
];

/// Sample data for served pages, with `cell` in place of every text that does not come from this program.
fn sample_view(template: &str, cell: &str) -> Json {
    let counts = json!([
        { "state": "accepted", "rows": 41_200, "path": "/runs/sale@1/rows?state=accepted" },
        { "state": "in_doubt", "rows": 3, "path": "/runs/sale@1/rows?state=in_doubt" },
    ]);
    let run = json!({
        "name": cell, "campaign": "sale", "has_variants": true, "path": "/runs/sale@1", "sending": false,
        "stopping": false, "rehearsal": false, "rows": 100_000, "parts": 2, "counts": counts, "in_part": 1, "doubt": 3, "has_rows": true, "retriable": 4,
        "gateway": cell, "began": cell, "ended": cell, "took": cell,
    });
    let share = json!({ "rows": 2, "text": "66.7 %", "length": "66.7%" });
    let line = json!({ "name": cell, "path": "/runs/sale@1", "campaign": cell, "title": cell, "edition": cell, "status": "sending",
        "rehearsal": true, "test": false, "began": cell, "recipients": 3, "delivered": share, "read": null, "failed": 1,
        "doubt": 1, "cost": cell, "unpriced": cell });
    let row = json!({ "row": 2, "path": "/runs/sale@1/rows/2", "to": cell, "state": "rejected", "reason": cell,
        "translated": null, "sent": cell, "cell": cell });
    let due = json!({ "time": "09:05", "name": cell, "path": "/schedules/sale", "when": cell });
    let frame = json!({ "sections": [{ "name": "runs", "path": "/runs" }], "section": "runs", "is_top": true, "searched": cell,
        "run": cell, "languages": ["uk"] });
    let mut view = json!({
        "visitor": cell, "decides": true, "form": "token", "zone": "Europe/Kyiv", "frame": frame, "done": cell, "message": cell,
        "english": cell, "missing": true, "reading": false, "damaged": [{ "name": cell, "problem": cell }],
        "run": run, "figures": sample_with_text(cell), "path": "/runs/sale@1", "state": "rejected",
        "states": [{ "state": "rejected", "rows": 1, "path": "/runs/sale@1/rows?state=rejected", "is_current": true }],
        "rows": [row], "previous": "/runs/sale@1/rows", "next": "/runs/sale@1/rows?from=52",
        "numbers": { "shown": false, "path": "/runs/sale@1/rows?numbers=shown" },
        "row": 2, "to": cell, "skip_reason": cell, "doubt": 1,
        "entries": [{ "at": cell, "what": cell, "text": cell }],
        "tests": true, "file": cell, "current": cell, "frozen": cell, "day": cell, "check_slow": false, "name": cell,
        "texts": [{ "name": cell, "text": cell }], "findings": file_sample_view(cell)["findings"],
    });
    let filters = json!({
        "channels": [{ "value": "sms", "chosen": true }], "reasons": [{ "value": cell, "label": cell, "chosen": true }],
        "variants": [{ "value": cell, "chosen": false }], "columns": [{ "value": cell, "chosen": true }], "column": cell,
        "filtered": true, "all_path": "/runs/sale@1/rows", "export_query": "state=rejected",
    });
    view.as_object_mut().unwrap().extend(filters.as_object().unwrap().clone());
    let choice = json!({ "value": cell, "chosen": true });
    let sections = json!({
        "overview": {
            "periods": [{ "name": "today", "tiles": [{ "name": "sent", "value": cell, "note": cell, "class": "tile-bad" }] }],
            "sending": [{ "name": cell, "path": "/runs/sale@1", "rehearsal": true, "length": "40.0%", "percent": cell,
                "progress": cell }],
            "alerts": [{ "class": "bad", "text": cell, "english": cell, "path": "/runs/sale@1" }], "more_alerts": 2,
            "next": [due], "runs": [line],
            "activity": { "chart": sample_columns(cell), "rows": [{ "day": cell, "counts": [1] }], "uncounted": 1 },
            "actions": [{ "at": cell, "by": cell, "action": "stop", "target": cell, "outcome": "refused" }],
        },
        "runs": {
            "groups": [{ "runs": [line, line], "more": 3, "more_path": "/runs?campaign=sale" }],
            "columns": [{ "name": "campaign", "path": "/runs?sort=campaign", "sorted": "ascending", "number": false },
                { "name": "cost", "path": null, "sorted": "", "number": true }],
            "states": [{ "value": "sending", "chosen": true }], "periods": [{ "value": "7", "chosen": false }],
            "campaigns": [choice], "everything": false, "hidden": 2, "everything_path": "/runs?everything=1", "found": 4,
            "filtered": true, "sort": "campaign", "ascending": true,
        },
        "schedules": {
            "schedules": [
                { "name": cell, "path": "/schedules/sale", "state": "armed", "problem": null, "next": cell,
                  "skipped": cell, "skip_reason": cell, "why": [cell, cell], "pending": cell },
                { "name": cell, "path": "/schedules/sale", "state": "damaged", "problem": cell, "next": null, "skipped": null, "skip_reason": null, "why": [], "pending": null },
                { "name": cell, "path": "/schedules/sale", "state": "paused", "problem": null, "next": null, "skipped": null, "skip_reason": null, "why": [], "pending": null },
            ],
            "calendar": build_calendar(Date::constant(2026, 12, 1), 31, &BTreeMap::from([(Date::constant(2026, 12, 3), vec![cell.to_owned()])])),
            "days": [{ "day": cell, "due": [due, due] }],
        },
        "opt_outs": { "opt_outs": { "of_marketing": 2, "of_campaigns": 2, "days": [Bar::new(cell, 2, "whole")] }, "problem": null },
        "replies": { "replies": { "all": 2, "newest": [
            { "at": cell, "to": cell, "text": cell, "run": cell, "path": "/runs/sale@1/rows/2" }] } },
        "campaigns": { "campaigns": [{ "name": cell, "path": "/runs?campaign=sale", "runs": 2, "rehearsals": 1, "latest": line,
            "file_path": "/runs/sale@1/campaign", "schedule": "armed", "schedule_path": "/schedules/sale/preview", "next": cell }] },
        "search": {
            "searched": true, "invalid": false, "campaigns": [{ "name": cell, "path": "/runs?campaign=sale" }], "phone": cell,
            "opt_outs": [{ "at": cell, "campaign": cell }], "unsearched": 2,
            "runs": [{ "name": cell, "path": "/runs/sale@1", "rows": [row] }],
        },
        "variants": { "variants": [{ "name": cell, "path": "/runs/sale@1/rows?variant=a", "sent": 2, "delivered": {
            "rows": 1, "text": cell, "interval": cell, "from": "9.5%", "length": "81.0%" }, "read": null, "failed": 1 }] },
        "retry": {
            "messages": 4, "gateway": cell, "channels": cell, "cost": cell, "others": 2,
            "reasons": [{ "state": "rejected", "text": cell, "rows": 2 }, { "state": "not_sent", "text": "", "rows": 1 }],
            "lasting": 2, "guarded": 3, "guarded_reasons": cell,
            "samples": { "messages": file_sample_view(cell)["messages"] },
        },
        "test": {
            "campaign": cell, "gateway": cell, "row": 2,
            "message": { "messages": file_sample_view(cell)["messages"] },
            "recipients": [{ "field": "to-ab12", "to": cell }, { "field": "to-cd34", "to": cell }],
            "numbers": { "shown": false, "path": "/runs/sale@1/test?numbers=shown" },
        },
        "confirm": {
            "heading": cell, "subject": cell, "effects": [cell, cell], "action": "/runs/sale@1/resolve",
            "fields": [{ "name": "decision", "value": cell }], "typed": 4, "reason": true, "button": cell, "danger": true,
            "back": "/runs/sale@1",
        },
    });
    let section = template.trim_start_matches("pages/").trim_end_matches(".html");
    if let Some(section) = sections[section].as_object() {
        view.as_object_mut().unwrap().extend(section.clone());
    }
    view
}

/// A chart of one column.
fn sample_columns(cell: &str) -> Json {
    let series = vec![(cell.to_owned(), "c-sms".to_owned())];
    let input = ColumnInput { series, columns: vec![(cell.to_owned(), vec![3])] };
    json!(draw_columns(input, |number| number.to_string()))
}

fn render_sample(language: PageLanguage, template: &str, cell: &str) -> String {
    let mut view = sample_view(template, cell);
    view["run"]["parts_at_least"] = true.into();
    view["run"]["doubtful"] = view["run"]["counts"].clone();
    view["past_end"] = false.into();
    if template == "pages/error.html" {
        view["heading"] = "Nothing is here".into();
    }
    view["position"] = json!({ "from": "51", "to": "100", "all": "161" });
    view["message"] = json!({ "messages": file_sample_view(cell)["messages"] });
    view["first"] = view["message"].clone();
    match template {
        // Here, `run` is the name of a run; elsewhere it is an object.
        "pages/message.html" | "pages/campaign.html" | "pages/retry.html" | "pages/test.html" => {
            view["run"] = cell.into()
        }
        "pages/run_preview.html" => {
            view["run"] = cell.into();
            view["messages"] = file_sample_view(cell)["messages"].clone();
        }
        "pages/schedule_preview.html" => {
            let files = file_sample_view(cell);
            view.as_object_mut().unwrap().extend(files.as_object().unwrap().clone());
        }
        _ => {}
    }
    render(language, PageFormat::Served, template, &view).unwrap()
}

#[test]
fn served_pages_are_valid_html_in_every_language() {
    let unfilled = Regex::new(r"\{[a-z]+\}").unwrap();
    for template in PAGES {
        for language in PageLanguage::ALL {
            let page = render_sample(language, template, "Olia");
            let html = Html::sound(&page);
            assert_eq!(html.one("html").attribute("lang"), language.code());
            assert_eq!((html.all("style").len(), html.all("link").len(), html.all("script").len()), (0, 2, 1));
            assert!(!page.contains("pages."), "a word is missing: {template}");
            assert_eq!(unfilled.find(&page).map(|place| place.as_str()), None, "unfilled placeholder: {template}");
        }
    }
}

#[test]
fn every_field_has_a_label_and_every_form_a_token() {
    for template in PAGES {
        let html = Html::sound(&render_sample(PageLanguage::English, template, "Olia"));
        let labels: Vec<&str> = html.all("label").into_iter().map(|label| label.attribute("for")).collect();
        let fields = html.all("input").into_iter().filter(|field| field.attribute("type") != "hidden");
        for field in fields {
            assert!(labels.contains(&field.attribute("id")), "{template}: {field:?}");
        }
        let tokens = html.all("input").into_iter().filter(|field| field.attribute("name") == "form").count();
        let posted = html.all("form").into_iter().filter(|form| form.attribute("method") == "post").count();
        // Before sign-in there is no session; the secret in the page's URL serves as the token.
        let without_token = usize::from(template == "pages/sign_in.html");
        assert_eq!(tokens + without_token, posted, "{template}");
    }
}

/// The element shapes of each page with harmless texts.
static KNOWN_SHAPES: LazyLock<Vec<ElementShapes>> = LazyLock::new(|| {
    let harmless = "я https://b.example ".repeat(9);
    PAGES.iter().map(|template| element_shapes(&render_sample(PageLanguage::English, template, &harmless))).collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn untrusted_text_cannot_inject_elements_into_served_pages(
        any in any::<String>(),
        hostile in "(<script>alert\\(1\\)</script>|<img src=x onerror=y>|\" onclick=\"z|' style='|</pre>|</title>|<!--|\\{\\{ x \\}\\}|\u{0}|\u{202e})*",
    ) {
        for (template, known) in PAGES.iter().zip(&*KNOWN_SHAPES) {
            for cell in [&any, &hostile] {
                let page = render_sample(PageLanguage::English, template, &format!("x{cell}"));
                let foreign: Vec<_> = element_shapes(&page).difference(known).cloned().collect();
                prop_assert!(foreign.is_empty(), "{foreign:?}");
            }
        }
    }
}
