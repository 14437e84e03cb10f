//! `check` finds all mistakes at once, with one finding for each mistake.

use crate::support::{Folder, note_on_failure, phone};

/// A folder with the lists that the campaigns use.
fn folder_with_lists() -> Folder {
    let folder = Folder::new(false);
    let international = format!("phone,name\n{},Olena\n{},Ivan\n", phone(2), phone(3));
    folder.write("list.csv", &international);
    folder.write("ragged.csv", &format!("{international}{},Petro,Kyiv\n", phone(4)));
    folder.write("national.csv", "phone,name\n0501234567,Olena\n0671234567,Ivan\n");
    let letters: String = (0..6).map(|row| format!("none{row},Person\n")).collect();
    folder.write("letters.csv", &format!("{international}{letters}"));
    folder
}

/// The rules that `check` reports for a campaign, sorted, without notes and without `invalid-row`.
fn find_rules(folder: &Folder, campaign: &str) -> Vec<String> {
    folder.write("sale.yaml", campaign);
    let output = folder.campaign(&["check", "sale.yaml", "--json"]).json();
    let findings = output["findings"].as_array().expect("findings");
    let is_relevant = |finding: &&serde_json::Value| finding["severity"] != "note" && finding["rule"] != "invalid-row";
    let mut rules: Vec<String> = findings
        .iter()
        .filter(is_relevant)
        .map(|finding| finding["rule"].as_str().expect("a rule").to_owned())
        .collect();
    rules.sort();
    rules
}

#[test]
fn mistakes_in_all_stages_are_found_in_one_check() {
    let folder = folder_with_lists();
    let cases: [(&str, &[&str]); 5] = [
        (
            "recipients: { file: ragged.csv, regin: UA }
timezone: Europe/Kiyv
gateway: nowhere
schedule: { every: Funday 10:00 }
delivery: { rate: fast }
channels:
  - sms: { message: \"Hi {{ nme }}\" }
  - viber: { signature: Olena, message: { file: gone.txt } }
",
            &[
                "missing-key",
                "recipients-ragged-row",
                "schedule",
                "text-file",
                "unknown-gateway",
                "unknown-key",
                "unknown-timezone",
                "unknown-variable",
                "wrong-type",
            ],
        ),
        (
            "recipients: { file: national.csv }
vars: { shop: \"{{ x }}\" }
edition: \"{{ tody }}\"
channels:
  - sms: { signature: OlenaCompany, message: \"{{ shop }} {{ nme }} {{ name | titel }}\" }
",
            &[
                "recipients-phone-column",
                "template-in-constant",
                "text-refused",
                "unknown-filter",
                "unknown-variable",
                "unknown-variable",
            ],
        ),
        (
            "recipients: { file: letters.csv }
timezone: Europe/Kyiv
data: { stores: { file: gone.csv, key: city } }
delivery: { until: 2020-01-01 10:00 }
channels:
  - sms: { signature: OlenaCo, message: \"{{ stores[name].address }} {{ nme }}\" }
",
            &["data-file", "too-many-invalid", "unknown-variable", "until"],
        ),
        (
            "recipients: { file: list.csv, duplicates: skpi }
variants:
  a: { share: half, channels: [{ sms: { signature: OlenaCo, message: \"{{ nme }}\" } }] }
  b: { share: 50%, vars: { x: [1] } }
channels:
  - smss: { signature: OlenaCo, message: \"{{ name | upperr }}\" }
  - viber: { signature: Olena, message: \"{% if name %}x\" }
",
            &[
                "text-syntax",
                "unknown-channel",
                "unknown-filter",
                "unknown-value",
                "unknown-variable",
                "wrong-type",
                "wrong-type",
            ],
        ),
        (
            "recipients:
  file:list.csv
timezone: Europe/Kiyv
delivery: { batch: many }
channels:
  - sms: { message: \"Hi\" }
",
            &["missing-key", "unknown-timezone", "wrong-type", "yaml-syntax"],
        ),
    ];
    for (campaign, expected) in cases {
        let _case = note_on_failure(format!("case: {campaign}"));
        assert_eq!(find_rules(&folder, campaign), expected, "{campaign}");
    }
}

#[test]
fn mistakes_in_texts_and_rows_are_found_together() {
    let folder = folder_with_lists();
    let campaign = "recipients: { file: ragged.csv }
channels:
  - viber: { signature: Olena, message: \"{{ name | titel }}\", lifetime: 1h }
  - sms: { signature: OlenaCo, message: \"TODO http://shop.example {{ nme }}\" }
";
    let expected = ["insecure-link", "recipients-ragged-row", "unfinished-text", "unknown-filter", "unknown-variable"];
    assert_eq!(find_rules(&folder, campaign), expected);
}

#[test]
fn one_mistake_causes_one_finding() {
    let folder = folder_with_lists();
    let recipients = "recipients: { file: list.csv }\n";
    let sms = "channels:\n  - sms: { signature: OlenaCo, message: \"Hi {{ name }}\" }\n";
    let channel = |keys: &str| format!("{recipients}channels:\n  - sms: {{ {keys} }}\n");
    let with_text = |top: &str, text: &str| {
        format!("{top}channels:\n  - sms: {{ signature: OlenaCo, message: \"{{{{ name }}}} {text}\" }}\n")
    };
    let cases = [
        (channel("signature: OlenaCo, message: {{ name }}"), "unquoted-template"),
        (channel("sgnature: OlenaCo, message: \"Hi {{ name }}\""), "unknown-key"),
        (channel("sign: OlenaCo, message: \"Hi {{ name }}\""), "unknown-key"),
        (channel("sender: OlenaCo, message: \"Hi {{ name }}\""), "unknown-key"),
        (channel("sms_signature: OlenaCo, message: \"Hi {{ name }}\""), "unknown-key"),
        (channel("signature: OlenaCo, txt: \"Hi\""), "unknown-key"),
        (channel("message: \"Hi {{ name }}\""), "missing-key"),
        (channel("signature: OlenaCo, message: \"Hi {{ name }}\", max_parts: many"), "wrong-type"),
        (channel("signature: OlenaCo, message: { file: gone.txt }"), "text-file"),
        (
            format!("{recipients}channels:\n  - viber: {{ signature: Olena, mesage: \"Hi {{{{ name }}}}\" }}\n"),
            "unknown-key",
        ),
        (
            format!(
                "{recipients}channels:\n  - viber: {{ signature: Olena, type: txt, message: \"{{{{ name }}}}\" }}\n"
            ),
            "unknown-value",
        ),
        (
            format!("{recipients}channels:\n  - smss: {{ signature: OlenaCo, message: \"{{{{ name }}}}\" }}\n"),
            "unknown-channel",
        ),
        (format!("file: list.csv\n{sms}"), "unknown-key"),
        (format!("recipients: {{ fil: list.csv }}\n{sms}"), "unknown-key"),
        (format!("recipients: {{ file: gone.csv }}\n{sms}"), "recipients-missing"),
        (format!("recipients: {{ file: national.csv }}\n{sms}"), "recipients-phone-column"),
        (format!("recipients: {{ file: national.csv, regin: UA }}\n{sms}"), "unknown-key"),
        (format!("recipients: {{ file: national.csv, region: UK }}\n{sms}"), "unknown-region"),
        (format!("recipients:\n  file:list.csv\n{sms}"), "yaml-syntax"),
        (with_text(&format!("{recipients}vers: {{ shop: Olena }}\n"), "{{ shop }}"), "unknown-key"),
        (with_text(&format!("{recipients}shop: Olena\n"), "{{ shop }}"), "unknown-key"),
        (with_text(&format!("{recipients}vars: {{ shop: [Olena] }}\n"), "{{ shop }}"), "wrong-type"),
        (
            with_text("recipients: { file: list.csv, columns: { first: Nmae } }\n", "{{ first }}"),
            "recipients-unknown-column",
        ),
        (
            with_text(
                &format!("{recipients}data: {{ stores: {{ file: gone.csv, key: city }} }}\n"),
                "{{ stores[name].address }}",
            ),
            "data-file",
        ),
        (format!("{recipients}gateway: nowhere\n{sms}"), "unknown-gateway"),
        (format!("{recipients}timezone: Europe/Kiyv\nschedule: {{ every: Mon 10:00 }}\n{sms}"), "unknown-timezone"),
    ];
    for (campaign, rule) in cases {
        let _case = note_on_failure(format!("case: {campaign}"));
        assert_eq!(find_rules(&folder, &campaign), [rule], "{campaign}");
    }
}
