//! Campaign tools of the connector: only callers with the profile's key can use a folder's campaigns.

use serde_json::{Value, json};

use super::stdio::Conversation;
use super::{Connector, folder_with_profile, parse_result};
use crate::support::{Chance, Folder, Gateway, KEY, Reachable, SandboxProcess, phone};

const ACCOUNT_TOOLS: usize = 6;
const TOOLS: [&str; 5] = ["list_campaigns", "check_campaign", "preview_campaign", "plan_campaign", "run_status"];
/// Content of files that no caller may see.
const MARKER: &str = "marker-of-a-secret";

/// Creates a folder with a campaign to three recipients in `campaigns`, and a secret next to it.
pub(super) fn campaigns_folder(gateway: &impl Reachable) -> Folder {
    let folder = folder_with_profile(gateway, "file: local.key");
    folder.write_secret("local.key", KEY);
    folder.write("campaigns/sale.yaml", &campaign("sale", "list.csv"));
    let rows: Vec<String> = (2..5).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    folder.write("campaigns/list.csv", &format!("phone,name\n{}{},Twice\n12,Short\n", rows.concat(), phone(2)));
    folder.write("secret.yaml", &campaign("secret", "secret.csv"));
    folder.write("secret.csv", &format!("phone,name\n{},{MARKER}\n", phone(2)));
    folder
}

pub(super) fn campaign(name: &str, list: &str) -> String {
    let text = "Hello {{ name }}, is {{ phone }} you?";
    format!(
        "name: {name}\nrecipients: {{ file: {list}, max_invalid: 50% }}\nchannels:\n  - sms: {{ signature: OlenaCo, message: \"{text}\" }}\n"
    )
}

fn connector(folder: Folder) -> Connector {
    Connector::start_in(folder, &["--campaigns", "campaigns"])
}

#[test]
fn campaign_tools_need_the_campaigns_option_and_come_last() {
    let gateway = Gateway::accepting();
    let list_tool_names = |connector: &Connector| -> Vec<String> {
        let listed = connector.post(&[], r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).json();
        let tools = listed["result"]["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let without_campaigns = Connector::start_in(campaigns_folder(&gateway), &[]);
    assert_eq!(list_tool_names(&without_campaigns).len(), ACCOUNT_TOOLS);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_campaigns"}}"#;
    assert_eq!(without_campaigns.post(&[], call).json()["error"]["message"], "Unknown tool");
    let tools = list_tool_names(&connector(campaigns_folder(&gateway)));
    assert_eq!((tools.len(), &tools[ACCOUNT_TOOLS..]), (ACCOUNT_TOOLS + TOOLS.len(), &TOOLS.map(str::to_owned)[..]));
    // Sending also needs the operator's `--allow-send`.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_campaign"}}"#;
    assert_eq!(connector(campaigns_folder(&gateway)).post(&[], call).json()["error"]["message"], "Unknown tool");
    let all_tools = list_tool_names(&Connector::start_in(
        campaigns_folder(&gateway),
        &["--campaigns", "campaigns", "--allow-send"],
    ));
    assert_eq!((all_tools.len(), all_tools.last().map(String::as_str)), (11 + TOOLS.len() + 1, Some("run_campaign")));
    for argument in ["nowhere", "gateways.yaml"] {
        campaigns_folder(&gateway).campaign(&["connector", "--campaigns", argument]).exits(2).says(argument);
    }
    let keyless = campaigns_folder(&gateway);
    keyless.replace("gateways.yaml", "local.key", "no.key");
    keyless.campaign(&["connector", "--campaigns", "campaigns"]).exits(2).says("no.key");
}

#[test]
fn assistant_can_list_and_check_and_preview_a_campaign() {
    let gateway = Gateway::accepting();
    let folder = campaigns_folder(&gateway);
    folder.write("campaigns/broken.yaml", "name: broken\nchannels:\n");
    let connector = connector(folder);
    let result = |tool: &str, arguments: Value| {
        let result = connector.call(tool, &arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    };
    let listed = result("list_campaigns", json!({}));
    assert_eq!((&listed["gateway"], &listed["count"]), (&json!("local"), &json!(2)));
    assert_eq!((&listed["items"][0]["file"], &listed["items"][0]["errors"].is_u64()), (&json!("broken.yaml"), &true));
    assert_eq!(listed["items"][1], json!({ "file": "sale.yaml", "name": "sale", "channels": ["sms"] }));

    for name in ["sale", "sale.yaml"] {
        let checked = result("check_campaign", json!({ "campaign": name }));
        assert_eq!((&checked["ok"], &checked["rows"], &checked["gateway"]), (&json!(true), &json!(5), &json!("local")));
        assert_eq!(checked["counts"], json!({ "planned": 3, "skipped": 1, "invalid": 1 }));
        let rules: Vec<&str> = checked["findings"].as_array().expect("findings").iter().map(rule).collect();
        assert!(rules.contains(&"invalid-row"), "{checked}");
    }
    let broken = result("check_campaign", json!({ "campaign": "broken.yaml" }));
    assert_eq!((&broken["ok"], broken.get("rows")), (&json!(false), None));
    assert!(broken["findings"][0]["line"].is_u64(), "{broken}");

    let none = parse_result(&connector.call("run_status", &json!({ "campaign": "sale" })));
    assert_eq!(none["code"], "no_run");
    connector.folder.campaign(&["run", "campaigns/sale.yaml"]).exits(3);
    let status = result("run_status", json!({ "campaign": "sale" }));
    assert_eq!((&status["run"], &status["state"]), (&json!("sale@1"), &json!("finished")));
    assert_eq!((&status["gateway"], &status["counts"]["accepted"]), (&json!("sandbox"), &json!(3)));
    let listed = result("list_campaigns", json!({}));
    assert_eq!(listed["items"][1]["latest_run"]["state"], "finished");
    assert!(gateway.requests().is_empty(), "no requests were sent");
}

fn rule(finding: &Value) -> &str {
    finding["rule"].as_str().expect("a rule")
}

#[test]
fn previews_show_messages_and_only_the_last_digits_of_numbers() {
    let gateway = Gateway::accepting();
    let connector = connector(campaigns_folder(&gateway));
    let preview = |arguments: Value| {
        let result = connector.call("preview_campaign", &arguments);
        let text = result.to_string();
        for row in 2..5 {
            assert!(!text.contains(&phone(row).to_string()), "{text}");
        }
        parse_result(&result)
    };
    let shown = preview(json!({ "campaign": "sale" }));
    assert_eq!((shown["items"].as_array().map(Vec::len), &shown["total"]), (Some(3), &json!(5)));
    assert_eq!(shown["items"][0]["to"], "…0002");
    let message = shown["items"][0]["message"].as_str().expect("a message");
    assert!(message.contains("Hello Person 2, is …0002 you?"), "{message}");
    let some = preview(json!({ "campaign": "sale", "rows": "4-6", "limit": 20 }));
    let items = some["items"].as_array().expect("items");
    assert_eq!((items.len(), &items[1]["state"], &items[2]["state"]), (3, &json!("skipped"), &json!("invalid")));
    assert_eq!(preview(json!({ "campaign": "sale", "limit": 1 }))["items"].as_array().map(Vec::len), Some(1));
    for (arguments, code) in [
        (json!({ "campaign": "sale", "rows": "1" }), "invalid_argument"),
        (json!({ "campaign": "sale", "rows": "2;3" }), "invalid_argument"),
        (json!({ "campaign": "sale", "limit": 21 }), "invalid_argument"),
        (json!({ "campaign": "sale", "rows": "99" }), "campaign_refused"),
    ] {
        assert_eq!(preview(arguments.clone())["code"], code, "{arguments}");
    }
}

#[test]
fn no_argument_can_reach_outside_the_folder() {
    let folder = campaigns_folder(&Gateway::accepting());
    std::os::unix::fs::symlink("../secret.yaml", folder.path("campaigns/link.yaml")).expect("a link");
    std::os::unix::fs::symlink("..", folder.path("campaigns/up")).expect("a link");
    folder.write("campaigns/below/deep.yaml", &campaign(MARKER, "list.csv"));
    folder.write("campaigns/outside.yaml", &campaign("outside", "../secret.csv"));
    folder.write("campaigns/linked.yaml", &campaign("linked", "linked.csv"));
    std::os::unix::fs::symlink("../secret.csv", folder.path("campaigns/linked.csv")).expect("a link");
    let absolute = folder.path("secret.yaml").to_str().expect("a path").to_owned();
    let connector = Connector::start_in(folder, &["--campaigns", "campaigns", "--allow-send"]);
    let mut names = vec![
        "secret",
        "secret.yaml",
        "../secret.yaml",
        "../secret",
        &absolute,
        "link.yaml",
        "link",
        "./sale.yaml",
        "up/secret.yaml",
        "below/deep.yaml",
        "below/../../secret.yaml",
        "..",
        ".",
        "/",
        "",
        "sale.yaml\u{0}",
        "gateways.yaml",
        "../gateways.yaml",
        "list.csv",
        "~/secret.yaml",
        "file:///etc/passwd",
        "sale@1",
        "outside.yaml/..",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect::<Vec<_>>();
    let mut chance = Chance::seeded();
    let parts =
        ["..", ".", "campaigns", "secret.yaml", "secret", "up", "below", "sale", "\\", "%2e%2e", "etc", "passwd"];
    names.extend((0..100).map(|_| {
        let pieces: Vec<&str> =
            (0..2 + chance.below(4)).map(|_| parts[chance.below(parts.len() as u64) as usize]).collect();
        pieces.join("/")
    }));
    for tool in TOOLS[1..].iter().chain(&["run_campaign"]) {
        for name in &names {
            let mut arguments = json!({ "campaign": name });
            if *tool == "run_campaign" {
                arguments["digest"] = json!("0123456789abcdef");
            }
            let result = connector.call(tool, &arguments);
            assert_eq!(
                (&result["isError"], &parse_result(&result)["code"]),
                (&json!(true), &json!("invalid_argument")),
                "{tool} {name:?}: {result}"
            );
            assert!(!result.to_string().contains(MARKER), "{tool} {name:?}: {result}");
        }
    }
    // A campaign inside the folder is refused too if its list is outside.
    for tool in ["preview_campaign", "plan_campaign"] {
        for name in ["outside.yaml", "linked.yaml"] {
            let result = connector.call(tool, &json!({ "campaign": name }));
            let error = parse_result(&result);
            assert_eq!(error["code"], "campaign_refused", "{tool} {name}: {result}");
            assert!(
                error["error"].as_str().is_some_and(|words| words.contains("outside the campaigns folder")),
                "{error}"
            );
            assert!(!result.to_string().contains(MARKER), "{result}");
        }
    }
    let listed = connector.call("list_campaigns", &json!({})).to_string();
    assert!(!listed.contains(MARKER) && !listed.contains("link.yaml"), "{listed}");
}

#[test]
fn another_key_gets_no_information_about_campaigns() {
    let connector = connector(campaigns_folder(&Gateway::accepting()));
    let ask = |bearer: &str, tool: &str, campaign: &str| {
        let arguments = if tool == "list_campaigns" { json!({}) } else { json!({ "campaign": campaign }) };
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        parse_result(&connector.post(&[("Authorization", bearer)], &call.to_string()).json()["result"])
    };
    let refused = ask("Bearer other", "list_campaigns", "");
    assert_eq!((&refused["code"], &refused["error"]), (&json!("access_denied"), &json!("Access denied")));
    for tool in TOOLS {
        for campaign in ["sale", "none"] {
            for bearer in ["Bearer other", "Bearer k3y-of-the-storie", "Bearer k3y-of-the-storiess"] {
                assert_eq!(ask(bearer, tool, campaign), refused, "{tool}");
            }
        }
        assert_eq!(ask("", tool, "sale")["code"], "no_api_key");
    }
    // The connector reads the profile's key for each call.
    connector.folder.write_secret("local.key", "another");
    assert_eq!(ask(&format!("Bearer {KEY}"), "list_campaigns", ""), refused);
    assert_eq!(ask("Bearer another", "list_campaigns", "")["count"], 1);
    connector.folder.write_secret("local.key", KEY);
    // Other callers cannot even see that the folder is gone. Callers with the key get an error.
    std::fs::rename(connector.folder.path("campaigns"), connector.folder.path("elsewhere")).expect("a folder");
    for tool in TOOLS {
        assert_eq!(ask("Bearer other", tool, "sale"), refused);
        assert_eq!(ask(&format!("Bearer {}", KEY), tool, "sale")["code"], "internal");
    }
}

#[test]
fn campaign_for_another_gateway_is_refused() {
    let folder = campaigns_folder(&Gateway::accepting());
    folder.write("campaigns/other.yaml", &format!("gateway: other\n{}", campaign("other", "list.csv")));
    folder.write("campaigns/same.yaml", &format!("gateway: local\n{}", campaign("same", "list.csv")));
    // Profiles next to the campaigns do not replace the profiles that the connector was started with.
    folder.write(
        "campaigns/gateways.yaml",
        "local: { base_url: \"http://127.0.0.1:1\", api_key: { env: STRANGER }, rate: 1/s }\n",
    );
    let connector = connector(folder);
    for tool in ["check_campaign", "preview_campaign"] {
        let error = parse_result(&connector.call(tool, &json!({ "campaign": "other" })));
        assert_eq!(error["code"], "campaign_refused", "{error}");
        assert!(error["error"].as_str().is_some_and(|words| words.contains("uses the gateway `other`")), "{error}");
    }
    let checked = parse_result(&connector.call("check_campaign", &json!({ "campaign": "same" })));
    assert_eq!(checked["ok"], true, "{checked}");
    let listed = parse_result(&connector.call("list_campaigns", &json!({})));
    let gateways: Vec<&Value> =
        listed["items"].as_array().expect("items").iter().map(|item| &item["gateway"]).collect();
    assert_eq!(gateways, [&json!("other"), &Value::Null, &json!("local")]);
}

#[test]
fn campaign_tools_work_over_stdio() {
    let sandbox = SandboxProcess::start();
    let mut client = Conversation::start_in(campaigns_folder(&sandbox), &["--campaigns", "campaigns"]);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "check_campaign", "arguments": { "campaign": "sale" } } });
    assert_eq!(parse_result(&client.ask(&call)["result"])["ok"], true);
    client.finish().exits(0);
}

#[test]
fn check_and_plan_report_recipients_abroad_by_country() {
    let gateway = Gateway::accepting();
    let folder = campaigns_folder(&gateway);
    folder.write("campaigns/list.csv", "phone,name\n+380501230001,Olena\n+48501230001,Ewa\n");
    let profile = std::fs::read_to_string(folder.path("gateways.yaml")).expect("a profile");
    folder.write("gateways.yaml", &format!("{profile}  home: [UA]\n"));
    let home = connector(folder);
    for tool in ["check_campaign", "plan_campaign"] {
        let answer = parse_result(&home.call(tool, &json!({ "campaign": "sale.yaml" })));
        assert_eq!(answer["abroad"], json!([{ "country": "PL", "recipients": 1 }]), "{tool}: {answer}");
    }
    home.folder.replace("gateways.yaml", "home: [UA]\n", "home: [UA]\n  limits: { abroad: 0 }\n");
    let limited = home.restart(&["--campaigns", "campaigns"]);
    let refused = limited.call("plan_campaign", &json!({ "campaign": "sale.yaml" }));
    assert!(refused.to_string().contains("1 recipient outside UA"), "{refused}");
    limited.folder.replace("gateways.yaml", "limits: { abroad: 0 }", "policy: { countries: [UA] }");
    let strict = limited.restart(&["--campaigns", "campaigns"]);
    let planned = parse_result(&strict.call("plan_campaign", &json!({ "campaign": "sale.yaml" })));
    assert_eq!((&planned["messages"], &planned["counts"]["skipped"]), (&json!(1), &json!(1)), "{planned}");
    assert!(gateway.sends().is_empty());
}
