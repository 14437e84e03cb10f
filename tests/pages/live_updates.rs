//! Live updates of a run's page.

use crate::support::{Browser, Gateway, Html, SandboxProcess, Server, campaign};

/// Parses part of a page as a whole page.
fn parse_part(part: &str) -> Html {
    Html::read(&format!("<!doctype html>{part}"))
}

/// Returns the counts by state that part of a page shows.
fn counts(part: &Html) -> std::collections::BTreeMap<String, u64> {
    let counted = part.with_class("count").into_iter().map(|count| {
        let class = count.attribute("class").rsplit("count-").next().expect("a state").to_owned();
        let words = count.words();
        let number = words.split(|sign: char| sign.is_alphabetic()).next().expect("a number").replace(' ', "");
        (class, number.parse().expect("a number"))
    });
    counted.collect()
}

#[test]
fn final_live_figures_match_the_results() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(3_000).batches_of(50).through(&sandbox).delivery("rate: 1500/s").write();
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let run = sale.start(&["--yes"]);
    crate::support::until("the run's page exists", || browser.get("/runs/sale@1").status == 200);
    let mut states = Vec::new();
    let mut last = std::collections::BTreeMap::new();
    for event in browser.follow("/runs/sale@1/live", None) {
        let part = event.part("counts");
        if !part.is_empty() {
            last = counts(&parse_part(&part));
            states.push(last.clone());
        }
        if event.part("run-sentence").contains("Finished") {
            break;
        }
    }
    run.finish().exits(0);
    assert_eq!(last, sale.results().counts());
    assert!(states.len() > 1, "the numbers changed: {states:?}");
    assert_eq!(counts(&browser.page("/runs/sale@1")), last, "a reloaded page shows the same");
}

#[test]
fn client_with_current_data_gets_only_changes() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let first = browser.follow("/runs/sale@1/live", None).next().expect("an event");
    for part in ["standing", "counts", "doubt"] {
        assert!(
            first.part(part).starts_with("<section") && browser.get("/runs/sale@1").body.contains(&first.part(part))
        );
    }
    let mut again = browser.follow("/runs/sale@1/live", Some(&first.id));
    // A client with an unknown event identifier gets the current parts at once.
    let mut other = browser.follow("/runs/sale@1/live", Some("another"));
    assert_eq!(other.next().expect("an event").id, first.id);
    server.end("TERM").exits(0);
    assert!(again.next().is_none(), "no event was sent, and the stream ended with the server");
}

#[test]
fn server_shuts_down_while_pages_are_open() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let mut open: Vec<_> = (0..10).map(|_| browser.follow("/runs/sale@1/live", None)).collect();
    for live in &mut open {
        assert_eq!(live.next().expect("an event").kind, "parts");
    }
    server.end("TERM").exits(0);
    assert!(open.iter_mut().all(|live| live.next().is_none()));
}
