//! Findings about texts, links and channels that do not depend on rows.

use crate::support::{Folder, Gateway, Reachable as _, campaign, phone};

/// The findings of `check --json` for these channels: rule, severity, line and column.
fn find_problems(channels: &str, list: &str) -> Vec<(String, String, u64, u64)> {
    let sale = campaign().with_list(list).channels(channels).write();
    let output = sale.campaign(&["check", "sale.yaml", "--json"]).json();
    let findings = output["findings"].as_array().expect("findings");
    let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().expect("a text").to_owned();
    let number = |finding: &serde_json::Value, key: &str| finding[key].as_u64().unwrap_or_default();
    findings
        .iter()
        .map(|finding| {
            (text(finding, "rule"), text(finding, "severity"), number(finding, "line"), number(finding, "column"))
        })
        .collect()
}

/// A list with the columns that these texts use.
fn list() -> String {
    (2..5).fold("phone,name,code\n".to_owned(), |list, row| {
        format!("{list}{},Person {row},{row}{row}{row}{row}\n", phone(row))
    })
}

#[test]
fn mistake_in_a_text_is_reported_at_its_position() {
    let sms =
        |message: &str| format!("  - sms: {{ signature: OlenaCo, message: '{message} {{{{ name }}}}{{{{ code }}}}' }}");
    let column = "  - sms: { signature: OlenaCo, message: '".len() as u64;
    for (message, rule, offset) in [
        ("Пpивіт", "two-scripts", 1),
        ("See http://shop.example now", "insecure-link", 5),
        ("See www.shop.example now", "insecure-link", 5),
        ("See https:/shop.example now", "broken-link", 5),
        ("Hello TODO", "unfinished-text", 7),
        ("{% if name == true %}x{% endif %}", "cell-is-text", 7),
        ("{% if 5 == code %}x{% endif %}", "cell-is-text", 7),
    ] {
        let expected = (rule.to_owned(), "warning".to_owned(), 5, column + offset);
        assert_eq!(find_problems(&sms(message), &list()), [expected], "{message}");
    }
    for fine in [
        "Привіт, shop online",
        "https://shop.example",
        "{% if name %}x{% endif %}",
        "{% set ok = true %}{% if ok == true %}x{% endif %}",
        "{% if code == \"2222\" %}x{% endif %}",
        "{% if row == 2 %}x{% endif %}",
    ] {
        assert_eq!(find_problems(&sms(fine), &list()), [], "{fine}");
    }
}

#[test]
fn mistake_in_a_file_or_an_include_or_a_constant_is_reported() {
    let sale = campaign()
        .channels("  - sms: { signature: OlenaCo, message: { file: a.txt } }")
        .top("vars: { shop: \"Олeна\" }")
        .write();
    sale.write("a.txt", "{{ name }} {{ shop }}\nзнижка на вcе {% include 'b.txt' %}");
    sale.write("b.txt", "http://shop.example");
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
    for place in ["sale.yaml:2:16", "a.txt:2:11", "`b.txt`, line 1, column 1"] {
        assert!(output.stderr.contains(place), "no {place}: {}", output.details());
    }
}

#[test]
fn channel_limit_violations_are_reported_by_check() {
    let voice = "gender: female, language: en-GB, name: en-GB-Standard-A";
    let error = |rule: &str| vec![(rule.to_owned(), "error".to_owned())];
    let warning = |rule: &str| vec![(rule.to_owned(), "warning".to_owned())];
    let note = |rule: &str| vec![(rule.to_owned(), "note".to_owned())];
    for (channels, expected) in [
        ("  - telegram: { message: 'Your code is {{ code }}' }".to_owned(), error("codes-only")),
        ("  - telegram: { message: '{{ code }}' }".to_owned(), vec![]),
        ("  - telegram: { message: '1234' }".to_owned(), warning("code-for-all")),
        (format!("  - voice: {{ message: 'Big sale today', {voice} }}"), warning("code-for-all")),
        (format!("  - voice: {{ message: 'Your code is {{{{ code }}}}', {voice} }}"), vec![]),
        (
            "  - viber: { signature: O, message: '{{ name }}', link: https://a.example, button: 'A button of 24 letters!!' }"
                .to_owned(),
            note("long-button"),
        ),
        (
            "  - viber: { signature: O, message: '{{ name }}' }\n  - sms: { signature: Olena, message: '{{ code }}' }".to_owned(),
            note("late-fallback"),
        ),
        (
            "  - viber: { signature: O, message: '{{ name }}', lifetime: 1h }\n  - sms: { signature: Olena, message: '{{ code }}' }"
                .to_owned(),
            vec![],
        ),
    ] {
        let rules: Vec<_> = find_problems(&channels, &list()).into_iter().map(|(rule, severity, ..)| (rule, severity)).collect();
        let rules: Vec<_> = rules.into_iter().filter(|(rule, _)| rule != "unused-column" && !rule.starts_with("same-")).collect();
        assert_eq!(rules, expected, "{channels}");
    }
}

#[test]
fn image_without_a_url_gets_a_fitting_remedy() {
    for (image, remedy) in [
        ("shop.jpg", "upload the image, and write its full URL"),
        ("images/shop.jpg", "upload the image, and write its full URL"),
        ("cdn.example/shop.jpg", "write `https://cdn.example/shop.jpg`"),
    ] {
        let viber = format!("  - viber: {{ signature: O, message: Hi, image: {image} }}");
        let shown = campaign().channels(&viber).write().campaign(&["check", "sale.yaml"]).exits(2).stderr;
        assert!(shown.contains(remedy), "{image}: {shown}");
    }
}

#[test]
fn misplaced_keys_get_remedies_that_name_their_map() {
    let viber = |keys: &str| campaign().channels(&format!("  - viber: {{ signature: O, {keys} }}"));
    for (draft, remedy) in [
        (campaign().delivery("window: { from: '09:00', end: '20:00' }"), "write both times under `hours`"),
        (viber("viber_message: Hi"), "write `message`; keys do not include"),
        (viber("message: Hi, sms: Hi"), "add `- sms: …` as the next item"),
    ] {
        let shown = draft.write().campaign(&["check", "sale.yaml"]).exits(2).stderr;
        assert!(shown.contains(remedy), "{remedy}: {shown}");
    }
}

#[test]
fn check_notes_that_whatsapp_needs_a_route_on_a_live_gateway() {
    let gateway = Gateway::accepting();
    let sale: Folder = campaign()
        .channels("  - whatsapp: { signature: O, message: '{{ name }}' }")
        .through(&gateway)
        .profile("rate: 1/s")
        .write();
    let check = |sale: &Folder| sale.campaign(&["check", "sale.yaml"]).stderr;
    assert!(!check(&sale).contains("whatsapp-route"));
    sale.replace("gateways.yaml", &gateway.base_url(), "https://gateway.invalid");
    sale.replace("sale.yaml", "rate: 100000/s", "rate: 1/s");
    assert!(check(&sale).contains("note[whatsapp-route]"), "{}", check(&sale));
}

#[test]
fn example_links_cause_a_warning_only_for_a_live_gateway() {
    let gateway = Gateway::accepting();
    let sms = "  - sms: { signature: OlenaCo, message: 'Hello! https://shop.example/a and {{ link }}' }";
    let sale = campaign()
        .to(3)
        .channels(sms)
        .top("vars: { link: 'https://www.example.com/x' }")
        .through(&gateway)
        .profile("rate: 100/s")
        .write();
    let find_example_links = || {
        let output = sale.campaign(&["check", "sale.yaml", "--json"]).json();
        let findings = output["findings"].as_array().expect("findings").clone();
        findings.into_iter().filter(|finding| finding["rule"] == "example-link").collect::<Vec<_>>()
    };
    assert!(find_example_links().is_empty(), "a gateway on this machine");
    sale.replace("gateways.yaml", &gateway.base_url(), "https://gateway.olena.ua");
    let [found] = <[serde_json::Value; 1]>::try_from(find_example_links()).expect("one finding");
    assert_eq!((&found["severity"], &found["line"]), (&"warning".into(), &7.into()), "{found}");
    let message = found["message"].as_str().expect("a message");
    assert_eq!(message, "`shop.example` and `www.example.com` are example domains, so the links do not work");
    sale.replace("gateways.yaml", "https://gateway.olena.ua", "https://gateway.example");
    assert!(find_example_links().is_empty(), "an example gateway");
}

#[test]
fn unedited_init_message_causes_a_warning_for_a_live_gateway() {
    let folder = Folder::new(false);
    folder.campaign(&["init", "spring"]).exits(0);
    folder.write(
        "gateways.yaml",
        "production:\n  base_url: https://gateway.olena.ua\n  api_key: { env: KEY }\n  rate: 10/s\n",
    );
    folder.campaign(&["check", "spring.yaml"]).exits(0);
    folder
        .campaign(&["check", "spring.yaml", "--gateway", "production"])
        .exits(0)
        .says("`shop.example` is an example domain");
}

#[test]
fn check_reports_no_error_for_a_list_that_a_run_will_fetch() {
    let folder = Folder::new(false);
    let sms = "channels: [ { sms: { signature: OlenaCo, message: Hello } } ]";
    folder.write("sale.yaml", &format!("recipients: {{ url: \"https://list.olena.ua/a.csv\" }}\n{sms}\n"));
    let output = folder.campaign(&["check", "sale.yaml"]).exits(0).says("! sale.yaml has no errors so far");
    assert!(!output.stdout.contains("cannot be sent"), "{}", output.details());
}

#[test]
fn check_of_a_lookup_campaign_shows_no_samples() {
    let sale = campaign().to(2).channels("  - hlr").write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("hlr");
    assert!(!output.stdout.contains("Samples"), "{}", output.details());
}
