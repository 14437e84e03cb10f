//! Consent evidence, which is recorded when a run starts and does not depend on the current list.

use serde_json::Value;

use super::{consenting_campaign, days_ago, list_with_consents};
use crate::plans::signed::create_key;
use crate::support::{Folder, Gateway, Html, campaign, phone};

fn number(row: usize) -> String {
    format!("+{}", phone(row))
}

fn evidence(sale: &Folder, row: usize) -> Value {
    sale.campaign(&["find", &number(row), "--evidence", "--json"]).exits(0).json()
}

/// The digest of the facts, computed independently.
fn compute_digest(facts: &Value) -> String {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(facts.to_string().as_bytes());
    "sha256:".to_owned() + &hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
}

#[test]
fn evidence_is_taken_from_the_run_even_if_the_list_changed() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let sale = consenting_campaign(&[&format!("так {today}"), "ні"]).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.write("sale.csv", &list_with_consents(&["ні 2020-01-01", "yes"]).replace("form 2", "bought list"));
    let shown = evidence(&sale, 2);
    assert_eq!(shown["digest"], compute_digest(&shown["evidence"]));
    let message = &shown["evidence"]["messages"][0];
    let consent = &message["consent"];
    assert_eq!(
        (&message["run"], &message["purpose"], &message["state"]),
        (&"sale@1".into(), &"marketing".into(), &"accepted".into())
    );
    assert_eq!((&consent["value"], &consent["at"]), (&"так".into(), &today.as_str().into()), "{shown}");
    assert_eq!((&consent["source"], &consent["wording"]), (&"form 2".into(), &"I agree".into()));
    assert!(message["sent_at"].as_str().is_some_and(|at| !at.is_empty()), "{message}");
    let skipped = &evidence(&sale, 3)["evidence"]["messages"][0];
    assert_eq!((&skipped["reason"], &skipped["consent"]), (&"no consent".into(), &Value::Null));
    let text = sale.campaign(&["find", &number(2), "--evidence"]).exits(0);
    text.says(&format!("consent: так · {today} · form 2 · I agree")).says("SHA-256: ");
}

#[test]
fn evidence_from_a_file_remains_after_the_file_changes() {
    let gateway = Gateway::accepting();
    let consents = "consent: { file: consents.csv, source: where, wording: text }";
    let sale = campaign().to(2).recipients(consents).top("consent: required").through(&gateway).write();
    sale.write("consents.csv", &format!("phone,where,text\n{},call,I agree\n", number(2)));
    sale.run(&[]).exits(0);
    sale.write("consents.csv", "phone,where,text\n");
    let consent = evidence(&sale, 2)["evidence"]["messages"][0]["consent"].clone();
    assert_eq!((&consent["source"], &consent["value"]), (&"call".into(), &"".into()), "{consent}");
    // A later run does not change the evidence of an earlier run.
    sale.write("consents.csv", &format!("phone,where,text\n{},web,Yes\n", number(2)));
    sale.run(&["--again", "1"]).exits(0);
    let messages = evidence(&sale, 2)["evidence"]["messages"].clone();
    let sources: Vec<&Value> =
        messages.as_array().expect("messages").iter().map(|message| &message["consent"]["source"]).collect();
    assert_eq!(sources, ["call", "web"]);
}

#[test]
fn evidence_is_written_as_a_page_or_json_with_a_signature() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let sale = consenting_campaign(&[&format!("так {today}")]).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.campaign(&["suppress", "add", &number(2), "--reason", "complaint"]).exits(0);
    let public = create_key(&sale, "olha");
    let find = |options: &[&str]| sale.campaign(&[&["find", number(2).as_str(), "--evidence"], options].concat());
    find(&["--out", "evidence.json", "--key", "olha.key"]).exits(0).says("evidence: evidence.json");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(sale.path("evidence.json")).unwrap()).unwrap();
    assert_eq!(written["digest"], compute_digest(&written["evidence"]));
    assert_eq!(written["signature"]["key"], public);
    assert!(written["signature"]["signature"].as_str().is_some_and(|text| text.len() == 86), "{written}");
    assert_eq!(written["evidence"]["opt_outs"][0]["reason"], "complaint");
    assert!(find(&["--json"]).exits(0).json().get("signature").is_none(), "a signature needs a key");
    find(&["--out", "evidence.html", "--lang", "en"]).exits(0);
    let page = std::fs::read_to_string(sale.path("evidence.html")).unwrap();
    let html = Html::sound(&page);
    for cell in ["form 2", "I agree", today.as_str(), "complaint", "Marketing"] {
        assert!(page.contains(cell), "{cell}");
    }
    assert_eq!(html.all("pre").len(), 2, "digest and data");
    find(&["--out", "evidence.txt"]).exits(2).says("must end in `.html` or `.json`");
    sale.write("other.json", "{}");
    find(&["--out", "other.json"]).exits(2).says("already exists");
    find(&["--state", "failed"]).exits(2).says("covers all messages");
    sale.campaign(&["find", &number(2), "--out", "a.json"]).exits(2);
}

#[test]
fn evidence_names_opt_outs_that_ended() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let sale = consenting_campaign(&[&format!("так {today}")]).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.campaign(&["suppress", "add", &number(2), "--reason", "complaint"]).exits(0);
    sale.campaign(&["suppress", "remove", &number(2), "--reason", "called back", "--yes"]).exits(0);
    let shown = evidence(&sale, 2);
    assert_eq!(shown["digest"], compute_digest(&shown["evidence"]));
    let (facts, ended) = (&shown["evidence"], &shown["evidence"]["ended_opt_outs"][0]);
    assert_eq!((&facts["opt_outs"], &facts["messages"][0]["mandatory"]), (&serde_json::json!([]), &false.into()));
    assert_eq!((&ended["reason"], &ended["scope"]), (&"complaint".into(), &"marketing".into()), "{shown}");
    assert_eq!(ended["ended"]["why"], "called back");
    let at = ended["ended"]["at"].as_str().expect("a time");
    let text = sale.campaign(&["find", &number(2), "--evidence"]).exits(0);
    text.says("no longer on the suppression list: ").says("called back");
    sale.campaign(&["find", &number(2), "--evidence", "--out", "evidence.html", "--lang", "en"]).exits(0);
    let page = std::fs::read_to_string(sale.path("evidence.html")).unwrap();
    Html::sound(&page);
    assert!(page.contains("Opt-outs that have ended") && page.contains("called back") && page.contains(at), "{page}");
}

#[test]
fn forgotten_recipient_leaves_no_evidence() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let sale = consenting_campaign(&[&format!("так {today}"), &format!("так {today}")]).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.campaign(&["forget", &number(2), "--yes"]).exits(0);
    assert_eq!(evidence(&sale, 2)["evidence"]["messages"], serde_json::json!([]));
    assert_eq!(evidence(&sale, 3)["evidence"]["messages"][0]["consent"]["source"], "form 3");
    if sale.ledger().is_none() {
        sale.campaign(&["ledger", "backup", "copy"]).exits(0);
        let bytes = std::fs::read(sale.path("copy/ledger.sqlite")).expect("a ledger");
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!has("form 2") && has("form 3"), "a backup has the evidence of the others");
    }
}
