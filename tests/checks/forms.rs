//! Output formats of `check`, explanations of rules, and effective settings.

use campaign_testing::JsonSchema;
use serde_json::{Value, json};

use crate::support::{Folder, Gateway, campaign, phone};

/// Three campaigns: one with an error after Cyrillic text, one with a warning about its list, and one without findings.
fn folder_with_findings() -> Folder {
    let sale = campaign().channels("  - sms: { signature: OlenaCo, message: \"Привіт 😀, {{ nme }}\" }").write();
    sale.write("fine.yaml", "recipients: { file: sale.csv }\nchannels: [hlr]\n");
    sale.write(
        "holes.yaml",
        "recipients: { file: holes.csv }\nchannels:\n  - sms: { signature: OlenaCo, message: \"Hi, {{ name }}\" }\n",
    );
    sale.write("holes.csv", &format!("phone,name\n{},\n", phone(2)));
    sale
}

/// A JSON schema for the part of SARIF 2.1.0 that `check` writes.
fn sarif_schema() -> Value {
    let text = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string", "minLength": 1 } } });
    let level = json!({ "enum": ["none", "note", "warning", "error"] });
    let number = json!({ "type": "integer", "minimum": 1 });
    let region = json!({
        "type": "object",
        "properties": { "startLine": number, "startColumn": number, "endLine": number, "endColumn": number },
        "additionalProperties": false,
    });
    let physical = json!({
        "type": "object",
        "required": ["artifactLocation"],
        "properties": {
            "artifactLocation": { "type": "object", "required": ["uri"], "properties": { "uri": { "type": "string", "pattern": "^[^ \\\\]+$" } } },
            "region": region,
        },
    });
    let result = json!({
        "type": "object",
        "required": ["message", "ruleId", "ruleIndex", "level", "locations"],
        "properties": {
            "message": text,
            "level": level,
            "ruleIndex": { "type": "integer", "minimum": 0 },
            "locations": { "type": "array", "minItems": 1, "items": { "type": "object", "properties": { "physicalLocation": physical } } },
        },
    });
    let rule = json!({
        "type": "object",
        "required": ["id", "shortDescription", "help", "defaultConfiguration"],
        "properties": { "id": { "type": "string" }, "shortDescription": text, "help": text },
    });
    json!({
        "type": "object",
        "required": ["version", "runs", "$schema"],
        "properties": {
            "$schema": { "type": "string", "format": "uri" },
            "version": { "const": "2.1.0" },
            "runs": { "type": "array", "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": { "type": "object", "required": ["driver"], "properties": { "driver": {
                        "type": "object", "required": ["name"], "properties": { "rules": { "type": "array", "items": rule } },
                    } } },
                    "results": { "type": "array", "items": result },
                    "columnKind": { "enum": ["utf16CodeUnits", "unicodeCodePoints"] },
                },
            } },
        },
        "additionalProperties": false,
    })
}

#[test]
fn sarif_log_is_valid_and_has_findings_from_all_files() {
    let sale = folder_with_findings();
    let check =
        |form: &str| sale.campaign(&["check", "fine.yaml", "sale.yaml", "holes.yaml", "--format", form]).exits(2);
    let log = check("sarif").json();
    let violation = JsonSchema::new(&sarif_schema()).find_violation(&log);
    assert_eq!(violation, None, "{log:#}");
    let (run, report) = (&log["runs"][0], check("json").json());
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), report["findings"].as_array().expect("findings").len());
    let rules: Vec<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    assert_eq!(rules, ["unknown-variable", "empty-cell"]);
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index");
        assert_eq!(run["tool"]["driver"]["rules"][index as usize]["id"], result["ruleId"]);
    }
    let location = &results[0]["locations"][0]["physicalLocation"];
    let (line, column) = (&report["findings"][0]["line"], &report["findings"][0]["column"]);
    assert_eq!((&location["artifactLocation"]["uri"], &location["region"]["startLine"]), (&json!("sale.yaml"), line));
    let utf16 = column.as_u64().map(|column| column + 1);
    assert_eq!(location["region"]["startColumn"].as_u64(), utf16, "the emoji before it has two UTF-16 units");
    assert_eq!(results[1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "holes.yaml");
}

#[test]
fn sarif_log_has_a_single_version_member() {
    let sale = folder_with_findings();
    for options in [&["--tests-only"][..], &[]] {
        let output = sale.campaign(&[&["check", "fine.yaml", "--format", "sarif"][..], options].concat());
        // A JSON parser would accept a duplicate member.
        assert_eq!(output.stdout.matches("\"version\":").count(), 1, "{}", output.details());
        assert_eq!(output.json()["version"], "2.1.0");
    }
}

#[test]
fn github_workflow_log_has_one_command_per_finding() {
    let sale = folder_with_findings();
    let output = sale.campaign(&["check", "sale.yaml", "holes.yaml", "--format", "github"]).exits(2);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", output.details());
    assert!(lines[0].starts_with("::error file=sale.yaml,line=5,col=55,title=unknown-variable::"), "{}", lines[0]);
    assert!(lines[1].starts_with("::warning file=holes.yaml,line=3,col=49,title=empty-cell::"), "{}", lines[1]);
    assert!(output.stderr.is_empty(), "{}", output.details());
}

#[test]
fn strict_check_treats_warnings_as_errors() {
    let sale = folder_with_findings();
    sale.campaign(&["check", "holes.yaml"]).exits(0).says("warning[empty-cell]");
    sale.campaign(&["check", "holes.yaml", "--strict"]).exits(2).says("error[empty-cell]").says("fails `--strict`");
    sale.campaign(&["check", "fine.yaml", "--strict"]).exits(0);
    let output = sale.campaign(&["check", "fine.yaml", "holes.yaml", "--strict", "--json"]).exits(2).json();
    assert_eq!((&output["findings"][0]["severity"], &output["exit"]), (&json!("error"), &json!(2)));
}

#[test]
fn rule_is_explained_by_its_id_and_a_similar_id_is_suggested() {
    let folder = Folder::new(false);
    let output = folder.campaign(&["explain", "empty-cell"]).exits(0);
    output.says("empty-cell · warning").says("A cell that the message uses is empty.").says("Fix: fill in the cell");
    folder.campaign(&["explain", "warning[empty-cell]:"]).exits(0).says("Fix: fill in the cell");
    folder.campaign(&["explain", "empty-sell"]).exits(2).says("did you mean `empty-cell`?");
    let single_rule = folder.campaign(&["explain", "empty-cell", "--json"]).exits(0).json();
    let all = folder.campaign(&["explain", "--json"]).exits(0).json();
    let rules = all["rules"].as_array().expect("rules");
    let found = rules.iter().find(|rule| rule["rule"] == "empty-cell").expect("the rule");
    assert!(
        ["severity", "about", "summary", "why", "example", "mend"]
            .iter()
            .all(|key| found[key] == single_rule[key] && found[key].is_string())
    );
    let list = folder.campaign(&["explain"]).exits(0);
    for rule in rules {
        let id = rule["rule"].as_str().expect("a name");
        assert!(list.stdout.contains(&format!("\n  {id} ")), "{id} is not listed:\n{}", list.stdout);
    }
}

#[test]
fn every_effective_setting_is_shown_with_its_source() {
    let gateway = Gateway::accepting();
    let draft =
        campaign().delivery("batch: 7").through(&gateway).profile("rate: 20/s").profile("prices: { sms: 0.80 }");
    let sale = draft.write();
    sale.replace("sale.yaml", "  rate: 100000/s\n", "");
    let output = sale.campaign(&["check", "sale.yaml", "--show-settings"]).exits(0);
    for (key, value, from) in [
        ("name", "sale", "sale.yaml:1:7"),
        ("gateway", "local", "sale.yaml:2:10"),
        ("endpoint", "sync", "default"),
        ("purpose", "marketing", "default, derived from the channels"),
        ("recipients.duplicates", "skip", "default"),
        ("channels[0].sms.max_parts", "3", "default"),
        ("operation", "sms", "default, derived from the channels"),
        ("delivery.rate", "20/s", "profile local"),
        ("delivery.batch", "7", "sale.yaml:"),
        ("delivery.stop_after.rejected", "20%", "default"),
        ("profile.prices.sms", "'0.80'", "profile local"),
    ] {
        let shown = output
            .stdout
            .split(&format!("{key}:\n"))
            .nth(1)
            .unwrap_or_else(|| panic!("no {key}: {}", output.details()));
        let mut lines = shown.lines();
        assert_eq!(lines.next(), Some(format!("  value: {value}").as_str()), "{key}");
        let origin = lines.next().expect("a line");
        assert!(origin.starts_with(&format!("  from: {from}")), "{key}: {origin}");
    }
    assert!(!output.stdout.contains("schedule"), "absent keys have no defaults: {}", output.stdout);
    sale.replace("sale.yaml", "name: sale\n", "");
    let unnamed = sale.campaign(&["check", "sale.yaml", "--show-settings"]).exits(0);
    unnamed.says("name:\n  value: sale\n  from: default, derived from the name of the file");
    let named =
        sale.campaign(&["check", "sale.yaml", "--show-settings", "--gateway", "local", "--json"]).exits(0).json();
    let settings = named["files"][0]["settings"].as_array().expect("settings");
    let gateway = settings.iter().find(|setting| setting["key"] == "gateway").expect("a gateway");
    assert_eq!((&gateway["value"], &gateway["from"]), (&json!("local"), &json!("command line")));
    sale.replace("sale.yaml", "batch: 7", "batch: seven");
    sale.campaign(&["check", "sale.yaml", "--show-settings"]).exits(2).says("whole number");
}
