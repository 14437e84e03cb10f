//! Previews of unconfirmed calls: they name every problem of the confirmed call, and do not count towards limits.

use serde_json::{Value, json};

use super::campaigns::{campaign, campaigns_folder};
use super::policy::folder_with_policy;
use super::stdio::Conversation;
use super::{Connector, folder_with_profile, parse_result, tool_call};
use crate::support::{Folder, Gateway, KEY_VARIABLE, closed_window, phone};

const PHONE: u64 = 380_501_234_567;
const OTHER: u64 = 380_501_234_568;

fn sms(phone: u64, text: &str) -> Value {
    json!({ "phone": phone, "text": text, "sender": "OlenaCo" })
}

fn with_member(mut arguments: Value, name: &str, value: Value) -> Value {
    arguments[name] = value;
    arguments
}

fn read_list(refusal: &Value, name: &str) -> Vec<String> {
    assert_eq!(refusal["refused"], true, "{refusal}");
    let list = refusal[name].as_array().unwrap_or_else(|| panic!("{refusal}"));
    list.iter().map(|sentence| sentence.as_str().expect("a sentence").to_owned()).collect()
}

/// Returns the problems of a preview over HTTP, after checking that stdio gives the same problems.
fn preview_problems(folder: Folder, options: &[&str], arguments: &Value) -> (Vec<String>, Folder) {
    let connector = Connector::start_in(folder, options);
    let http = parse_result(&connector.call("send_sms", arguments));
    let (ended, folder) = connector.finish_with_folder();
    ended.exits(0);
    let mut client = Conversation::start_in(folder, options);
    let call: Value = serde_json::from_str(&tool_call("send_sms", arguments)).expect("a message");
    let stdio = parse_result(&client.ask(&call)["result"]);
    // A second can pass between the two calls, so the numbers in the problems can differ.
    let comparable_problems = |answer: &Value| {
        let without_digits = |problem: String| problem.replace(|character: char| character.is_ascii_digit(), "");
        read_list(answer, "problems").into_iter().map(without_digits).collect::<Vec<_>>()
    };
    assert_eq!(comparable_problems(&http), comparable_problems(&stdio));
    (read_list(&http, "problems"), client.into_folder())
}

#[track_caller]
fn assert_mentions(problems: &[String], words: &[&str]) {
    assert_eq!(problems.len(), words.len(), "{problems:?}");
    for (problem, words) in problems.iter().zip(words) {
        assert!(problem.contains(words), "{words}: {problems:?}");
    }
}

#[test]
fn preview_names_every_policy_that_blocks_the_message() {
    let gateway = Gateway::accepting();
    let (window, opens) = closed_window("Europe/Kyiv");
    let folder = folder_with_policy(&gateway, &format!("suppress: [house.csv], window: {window}"));
    folder.write("house.csv", &format!("phone\n+{PHONE}\n"));
    folder.write("team.csv", &format!("phone\n+{OTHER}\n"));
    let options = ["--allow-send", "--only-to", "team.csv"];
    let message = with_member(sms(PHONE, "Hi"), "sender", json!("Ол"));
    let (all, folder) = preview_problems(folder, &options, &message);
    let opens = format!("it opens at {}", opens.strftime("%Y-%m-%d %H:%M"));
    assert_mentions(&all, &["Latin letters", "does not allow messages to this number", &opens, "`suppress` file"]);
    let connector = Connector::start_in(folder, &options);
    let refused = parse_result(&connector.call("send_sms", &with_member(message, "confirm", json!(true))));
    assert_eq!((&refused["code"], &refused["error"]), (&json!("invalid_argument"), &json!(all.join("; "))));
    let (ended, folder) = connector.finish_with_folder();
    ended.exits(0);
    let (window_only, folder) = preview_problems(folder, &options, &sms(OTHER, "Hi"));
    assert_mentions(&window_only, &[&opens]);
    folder.campaign(&["suppress", "add", &format!("+{OTHER}")]).exits(0);
    let (opted_out, folder) = preview_problems(folder, &options, &sms(OTHER, "Hi"));
    assert_mentions(&opted_out, &[&opens, "suppression list"]);
    assert!(gateway.sends().is_empty());
    assert_eq!(folder.campaign(&["status", "--json"]).exits(0).json()["runs"], json!([]), "no limit is used up");
}

#[test]
fn preview_reports_all_reasons_to_refuse_a_message() {
    let gateway = Gateway::accepting();
    let folder = folder_with_policy(&gateway, "cap: 1/7d");
    let options = ["--allow-send", "--max-sends-per-hour", "1"];
    let message = with_member(sms(PHONE, "Hi"), "id", json!(4711));
    let (before, folder) = preview_problems(folder, &options, &message);
    assert_mentions(&before, &[]);
    let connector = Connector::start_in(folder, &options);
    let accepted = parse_result(&connector.call("send_sms", &with_member(message.clone(), "confirm", json!(true))));
    assert_eq!(accepted["accepted"], true, "{accepted}");
    let refused = parse_result(&connector.call("send_sms", &with_member(message.clone(), "confirm", json!(true))));
    let (ended, folder) = connector.finish_with_folder();
    ended.exits(0);
    let words = ["message cap", "used this `id`", "the same message was sent to this number", "hourly message limit"];
    let (after, folder) = preview_problems(folder, &options, &with_member(message, "text", json!(" Hi\n")));
    assert_mentions(&after, &words);
    // The confirmed call is refused for the same reasons.
    assert_eq!(refused["code"], "cap_reached", "{refused}");
    let reasons: Vec<String> = refused["problems"]
        .as_array()
        .expect("all")
        .iter()
        .map(|problem| problem.as_str().expect("words").to_owned())
        .collect();
    assert_mentions(&reasons, &words);
    let (other, _) = preview_problems(folder, &options, &with_member(sms(OTHER, "Hi"), "repeat", json!(true)));
    assert_mentions(&other, &["hourly message limit"]);
    assert_eq!(gateway.phones(), [PHONE]);
}

#[test]
fn template_placeholder_is_reported_in_every_text_field() {
    let gateway = Gateway::accepting();
    let connector = Connector::start(&gateway, &["--allow-send"]);
    let viber = json!({
        "phone": PHONE, "text": "Hi {{ name }}", "sender": "OlenaCo", "button": "{% if a %}Buy", "link": "https://shop.example/{{id}}",
    });
    for (tool, arguments, expected) in [
        ("send_sms", sms(PHONE, "Dear {{name}}"), &["the SMS text contains `{{`"][..]),
        (
            "send_viber",
            viber,
            &["the Viber text contains `{{`", "the Viber link contains `{{`", "the Viber button contains `{%`"],
        ),
    ] {
        let preview = parse_result(&connector.call(tool, &arguments));
        assert_mentions(&read_list(&preview, "problems"), expected);
        let refused = parse_result(&connector.call(tool, &with_member(arguments, "confirm", json!(true))));
        assert_eq!(refused["code"], "invalid_argument", "{refused}");
        assert!(refused["error"].as_str().is_some_and(|words| words.contains(expected[0])), "{refused}");
    }
    assert!(gateway.sends().is_empty());
}

#[test]
fn check_warnings_are_shown_and_do_not_block_the_message() {
    let gateway = Gateway::accepting();
    let connector = Connector::start(&gateway, &["--allow-send"]);
    let long = format!("{}ё", "a ".repeat(80));
    for (phone, text, words) in [
        (PHONE, "Hello , your code is 5".to_owned(), "the message has a gap"),
        (PHONE, "Dear {name}, hello".to_owned(), "a word in braces"),
        (PHONE, "TODO: write this".to_owned(), "would be sent literally"),
        (PHONE, "See http://shop.example".to_owned(), "does not start with `https://`"),
        (PHONE, "See https:/shop.example".to_owned(), "starts with a typo"),
        (PHONE, "Пpивіт".to_owned(), "Latin"),
        (PHONE, long, "the SMS 3 parts long instead of 2"),
        (PHONE, "Привіт ".repeat(45), "the SMS has 5 parts"),
        (380_441_234_567, "Hi".to_owned(), "a landline or a service"),
    ] {
        let preview = parse_result(&connector.call("send_sms", &sms(phone, &text)));
        assert_mentions(&read_list(&preview, "problems"), &[]);
        assert_mentions(&read_list(&preview, "warnings"), &[words]);
        let accepted =
            parse_result(&connector.call("send_sms", &with_member(sms(phone, &text), "confirm", json!(true))));
        assert_eq!(accepted["accepted"], true, "{text}: {accepted}");
    }
}

#[test]
fn campaign_preview_explains_why_a_message_is_not_sent() {
    let gateway = Gateway::accepting();
    let (window, _) = closed_window("Europe/Kyiv");
    let folder = campaigns_folder(&gateway);
    let profile = std::fs::read_to_string(folder.path("gateways.yaml")).expect("a profile");
    let policy = format!("  policy: {{ suppress: [house.csv], window: {window} }}\n");
    folder.write("gateways.yaml", &(profile + &policy));
    folder.write("campaigns/sale.yaml", &format!("timezone: Europe/Kyiv\n{}", campaign("sale", "list.csv")));
    folder.write("house.csv", &format!("phone\n{}\n", phone(3)));
    folder.campaign(&["suppress", "add", &phone(4).to_string()]).exits(0);
    let connector = Connector::start_in(folder, &["--campaigns", "campaigns"]);
    let preview = parse_result(&connector.call("preview_campaign", &json!({ "campaign": "sale" })));
    let held = preview["items"][0]["held"].as_str().unwrap_or_else(|| panic!("{preview}"));
    assert!(held.contains("the sending window is closed; it opens at "), "{held}");
    for item in [1, 2] {
        assert_eq!(preview["items"][item]["state"], "skipped", "{preview}");
        assert_eq!(preview["items"][item]["reason"], "opted out", "{preview}");
    }
}

#[test]
fn preview_without_a_key_hides_the_operator_rules() {
    let gateway = Gateway::accepting();
    let folder = folder_with_profile(&gateway, &format!("env: {KEY_VARIABLE}"));
    folder.write("team.csv", &format!("phone\n+{OTHER}\n"));
    folder.campaign(&["suppress", "add", &format!("+{PHONE}")]).exits(0);
    let connector = Connector::start_in(folder, &["--allow-send", "--only-to", "team.csv"]);
    let answer = connector.post(&[("Authorization", "")], &tool_call("send_sms", &sms(PHONE, "Hi")));
    let preview = parse_result(&answer.json()["result"]);
    assert_mentions(&read_list(&preview, "problems"), &[]);
    assert_mentions(&read_list(&preview, "warnings"), &["were not checked"]);
}
