//! Campaign files and message texts: errors, names, and missing keys.

use serde_json::Value;

use crate::support::{Gateway, campaign, note_on_failure};

use super::assert_refused;

/// A part of the valid campaign file, its replacement, and words of the expected report.
type Mistake = (&'static str, &'static str, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    ("gateway:", "gatway:", &["sale.yaml:2:1", "`gatway`", "did you mean `gateway`?"]),
    ("  file: sale.csv", "  fiel: sale.csv", &["sale.yaml:4:3", "`fiel`", "did you mean `file`?"]),
    ("- sms:", "- smss:", &["sale.yaml:6:5", "`smss`", "did you mean `sms`?"]),
    ("message:", "mesage:", &["sale.yaml:6:32", "`mesage`", "did you mean `message`?"]),
    ("{{ name }}", "{{ nmae }}", &["sale.yaml:6:52", "`nmae`", "did you mean `name`?"]),
    ("{{ name }}", "{{ name", &["sale.yaml:6:", "`}}`"]),
    ("file: sale.csv", "file: nobody.csv", &["sale.yaml:4:9", "`nobody.csv`"]),
    ("gateway: local", "gateway: locl", &["sale.yaml:2:10", "`locl`", "did you mean `local`?"]),
    ("rate: 100000/s", "rate: fast", &["sale.yaml:8:9", "`fast`"]),
    ("rate: 100000/s", "batch: 0", &["sale.yaml:8:10"]),
    ("rate: 100000/s", "batch: 101", &["sale.yaml:8:10", "101"]),
    ("rate: 100000/s", "timeout: 30 parsecs", &["sale.yaml:8:12"]),
    ("OlenaCo", "\"\"", &["sale.yaml:6:"]),
    ("OlenaCo", "A name that is too long", &["sale.yaml:6:23"]),
    ("name: sale", "name: Autumn Sale!", &["sale.yaml:1:7"]),
    ("name: sale", "name: [", &["sale.yaml:"]),
];

#[test]
fn campaign_mistake_is_reported_and_nothing_is_sent() {
    for (right, wrong, words) in MISTAKES {
        let _case = note_on_failure(format!("case: {wrong}"));
        let gateway = Gateway::accepting();
        let sale = campaign().through(&gateway).write();
        sale.replace("sale.yaml", right, wrong);
        assert_refused(&sale, &gateway, words);
    }
}

#[test]
fn missing_extension_gets_a_suggestion() {
    let sale = campaign().write();
    for command in ["check", "preview", "run"] {
        sale.campaign(&[command, "sale"]).exits(2).says("`sale` does not exist").says("did you mean `sale.yaml`?");
    }
}

#[test]
fn campaign_without_channels_gets_advice() {
    let sale = campaign().channels("  []").write();
    sale.run(&[]).exits(2).says("`channels` is empty").says("`- sms: { signature: ");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    for (right, wrong) in [("gateway:", "gatway:"), ("message:", "mesage:"), ("rate: 100000/s", "rate: fast")] {
        sale.replace("sale.yaml", right, wrong);
    }
    assert_refused(&sale, &gateway, &["`gatway`", "`mesage`", "`fast`"]);
    let found = sale.campaign(&["check", "sale.yaml", "--json"]).exits(2).json();
    let findings = found["findings"].as_array().expect("findings");
    assert!(findings.len() >= 3, "{found}");
    for finding in findings {
        let has_position = finding["file"] == "sale.yaml" && finding["line"].is_u64() && finding["column"].is_u64();
        assert!(has_position && finding["rule"].is_string() && finding["message"].is_string(), "{finding}");
    }
}

#[test]
fn keys_an_operation_cannot_carry_are_reported() {
    let gateway = Gateway::accepting();
    let pipeline = "  - viber: { signature: OlenaCo, message: Hi, image: \"https://cdn.example/a.png\" }\n  - whatsapp: { signature: OlenaCo, message: Hi }";
    assert_refused(&campaign().channels(pipeline).through(&gateway).write(), &gateway, &["image", "sale.yaml:6:"]);
    let lifetime =
        "  - sms: { signature: OlenaCo, message: Hi, lifetime: 1h }\n  - viber: { signature: OlenaCo, message: Hi }";
    assert_refused(&campaign().channels(lifetime).through(&gateway).write(), &gateway, &["lifetime", "sale.yaml:6:"]);
    let collision = "  - sms: { signature: OlenaCo, message: Hi, fields: { sms_message: Ha } }";
    assert_refused(
        &campaign().channels(collision).through(&gateway).write(),
        &gateway,
        &["sms_message", "sale.yaml:6:"],
    );
}

#[test]
fn template_can_read_neither_files_nor_the_environment() {
    let gateway = Gateway::accepting();
    for text in ["{{ __tera_context }}", "{{ get_env(name='HOME') }}", "{% include '/etc/passwd' %}"] {
        let sms = format!("  - sms: {{ signature: OlenaCo, message: \"{text}\" }}");
        assert_refused(&campaign().channels(&sms).through(&gateway).write(), &gateway, &["sale.yaml:6:"]);
    }
    let file = "  - sms: { signature: OlenaCo, message: { file: ../../outside.txt } }";
    assert_refused(&campaign().channels(file).through(&gateway).write(), &gateway, &["outside.txt"]);
}

#[test]
fn texts_are_found_beside_the_campaign_and_in_its_templates() {
    let gateway = Gateway::accepting();
    let sms = "  - sms: { signature: OlenaCo, message: { file: sale.sms.txt } }";
    for path in ["sale.sms.txt", "templates/sale.sms.txt"] {
        let sale = campaign().to(1).channels(sms).through(&gateway).write();
        sale.write(path, "\u{feff}From {{ name }}\r\n");
        sale.run(&[]).exits(0);
    }
    let texts: Vec<Value> =
        gateway.sends().iter().map(|request| request.operations()[0]["sms_message"].clone()).collect();
    assert_eq!(texts, ["From Person 2"; 2]);
}
