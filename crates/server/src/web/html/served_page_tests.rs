//! Tests of served pages, rendered with sample data for every placeholder of their templates.

use std::collections::BTreeMap;

use jiff::civil::Date;
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value as Json, json};

use super::file_page_tests::{element_shapes, sample_view as files_view};
use super::read_html::Html;
use super::{PageFormat, render};
use crate::web::charts::build_calendar;
use crate::web::run_page::sample_with_text;
use crate::web::words::PageLanguage;

/// The templates of served pages.
const PAGES: [&str; 11] = [
    "pages/sign_in_unavailable.html",
    "pages/sign_in_required.html",
    "pages/signed_in.html",
    "pages/error.html",
    "pages/home.html",
    "pages/run.html",
    "pages/rows.html",
    "pages/message.html",
    "pages/campaign.html",
    "pages/run_preview.html",
    "pages/schedule_preview.html",
];

/// Sample data for served pages, with this text in place of all foreign texts.
fn sample_view(cell: &str) -> Json {
    let counts = json!([
        { "state": "accepted", "rows": 41_200, "path": "/runs/sale@1/rows?state=accepted" },
        { "state": "in_doubt", "rows": 3, "path": "/runs/sale@1/rows?state=in_doubt" },
    ]);
    let run = json!({
        "name": cell, "path": "/runs/sale@1", "sending": false,
        "stopping": false, "rehearsal": false, "rows": 100_000, "parts": 2, "counts": counts, "in_part": 1, "doubt": 3, "has_rows": true,
        "gateway": cell, "began": cell, "ended": cell, "took": cell,
    });
    let line = json!({ "name": cell, "path": "/runs/sale@1", "status": "sending", "rehearsal": true, "began": cell,
        "rows": 3, "counts": counts });
    let row = json!({ "row": 2, "path": "/runs/sale@1/rows/2", "to": cell, "state": "rejected", "reason": cell,
        "translated": null, "sent": cell });
    let due = json!({ "time": "09:05", "name": cell, "path": "/schedules/sale" });
    json!({
        "visitor": cell, "decides": true, "form": "token", "zone": "Europe/Kyiv", "done": cell, "message": cell, "english": cell,
        "runs": [line], "more": 30, "reading": false,
        "schedules": [
            { "name": cell, "path": "/schedules/sale", "state": "armed", "problem": null, "next": cell,
              "skipped": cell, "why": [cell, cell] },
            { "name": cell, "path": "/schedules/sale", "state": "damaged", "problem": cell, "next": null, "skipped": null, "why": [] },
            { "name": cell, "path": "/schedules/sale", "state": "paused", "problem": null, "next": null, "skipped": null, "why": [] },
        ],
        "calendar": build_calendar(Date::constant(2026, 12, 1), 31, &BTreeMap::from([(Date::constant(2026, 12, 3), vec![cell.to_owned()])])),
        "days": [{ "day": cell, "due": [due, due] }],
        "opt_outs": { "all": 2, "days": [{ "day": cell, "people": 2 }] },
        "replies": { "all": 2, "newest": [{ "at": cell, "to": cell, "text": cell, "run": cell, "path": "/runs/sale@1/rows/2" }] },
        "orders": [{ "at": cell, "by": cell, "order": "stop", "of": cell, "outcome": "refused" }],
        "run": run, "figures": sample_with_text(cell), "path": "/runs/sale@1", "state": "rejected", "is_search": false,
        "states": [{ "state": "rejected", "rows": 1, "path": "/runs/sale@1/rows?state=rejected", "is_current": true }],
        "rows": [row], "previous": "/runs/sale@1/rows", "next": "/runs/sale@1/rows?from=52",
        "numbers": { "shown": false, "path": "/runs/sale@1/rows?numbers=shown" },
        "row": 2, "to": cell, "skip_reason": cell, "doubt": 1,
        "entries": [{ "at": cell, "what": cell, "text": cell }],
        "file": cell, "current": cell, "frozen": cell, "day": cell, "check_slow": false, "name": cell,
        "texts": [{ "name": cell, "text": cell }], "findings": files_view(cell)["findings"],
    })
}

fn render_sample(language: PageLanguage, template: &str, cell: &str) -> String {
    let mut view = sample_view(cell);
    view["run"]["parts_at_least"] = true.into();
    view["run"]["doubtful"] = view["run"]["counts"].clone();
    view["past_end"] = false.into();
    view["heading"] = "Nothing is here".into();
    view["damaged"] = json!([{ "name": cell, "problem": cell }]);
    view["opt_outs_problem"] = Json::Null;
    view["position"] = json!({ "from": "51", "to": "100", "all": "161" });
    view["message"] = json!({ "messages": files_view(cell)["messages"] });
    match template {
        // Here, `run` is the name of a run; elsewhere it is an object.
        "pages/message.html" | "pages/campaign.html" => view["run"] = cell.into(),
        "pages/run_preview.html" => {
            view["run"] = cell.into();
            view["messages"] = files_view(cell)["messages"].clone();
        }
        "pages/schedule_preview.html" => {
            let files = files_view(cell);
            view.as_object_mut().unwrap().extend(files.as_object().unwrap().clone());
        }
        _ => {}
    }
    render(language, PageFormat::Served, template, &view).unwrap()
}

#[test]
fn served_pages_are_sound_html_in_every_language() {
    let unfilled = Regex::new(r"\{[a-z]+\}").unwrap();
    for template in PAGES {
        for language in PageLanguage::ALL {
            let page = render_sample(language, template, "Olia");
            let html = Html::sound(&page);
            assert_eq!(html.one("html").attribute("lang"), language.code());
            assert_eq!((html.all("style").len(), html.all("link").len(), html.all("script").len()), (0, 2, 1));
            assert!(!page.contains("pages."), "a word is missing: {template}");
            assert_eq!(unfilled.find(&page).map(|place| place.as_str()), None, "a place is not filled: {template}");
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
        assert_eq!(tokens, html.all("form").len(), "{template}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn foreign_texts_add_no_element_to_served_pages(
        any in any::<String>(),
        hostile in "(<script>alert\\(1\\)</script>|<img src=x onerror=y>|\" onclick=\"z|' style='|</pre>|</title>|<!--|\\{\\{ x \\}\\}|\u{0}|\u{202e})*",
    ) {
        for template in PAGES {
            let known = element_shapes(&render_sample(PageLanguage::English, template, &"я https://b.example ".repeat(9)));
            for cell in [&any, &hostile] {
                let page = render_sample(PageLanguage::English, template, &format!("x{cell}"));
                let foreign: Vec<_> = element_shapes(&page).difference(&known).cloned().collect();
                prop_assert!(foreign.is_empty(), "{foreign:?}");
            }
        }
    }
}
