//! Mistakes with several consequences: one finding names the cause and the correct form.

use super::*;

/// The rules of the findings, each with its message and help.
fn count_words(loaded: &LoadedFile<Campaign>) -> Vec<(&'static str, String)> {
    let words = |finding: &Finding| format!("{} | {}", finding.message, finding.help.as_deref().unwrap_or_default());
    loaded.findings.iter().map(|finding| (finding.rule.id, words(finding))).collect()
}

#[track_caller]
fn assert_findings(yaml: &str, expected: &[(&str, &str)]) {
    let findings = count_words(&CampaignFixture::new().load_text(yaml));
    assert_eq!(findings.len(), expected.len(), "{yaml}{findings:#?}");
    for ((rule, words), (expected_rule, expected_words)) in findings.iter().zip(expected) {
        assert_eq!(rule, expected_rule, "{yaml}");
        assert!(words.contains(expected_words), "{yaml}{words}");
    }
}

#[test]
fn texts_without_by_give_one_finding_with_the_form() {
    let unnamed = "write `message: { by: language, texts: { uk: …, en: … } }`";
    assert_findings(&with_message("{ uk: Вітаємо, en: Hello }"), &[("missing-key", unnamed)]);
    assert_findings(&with_message("{ uk: { file: a.txt }, en: Hello }"), &[("missing-key", unnamed)]);
    let named = "write `message: { by: lang, texts: { uk: …, en: … } }`";
    assert_findings(&with_message("{ by: lang, uk: Вітаємо, en: Hello, else: uk }"), &[("missing-key", named)]);
}

#[test]
fn other_maps_of_a_message_keep_their_findings() {
    let message = |map: &str| list_findings(&CampaignFixture::new().load_text(with_message(map)));
    assert_eq!(message("{ fil: a.txt }"), [("unknown-key", 5, 16)]);
    assert_eq!(message("{ first_name }"), [("wrong-type", 5, 16)]);
}

#[test]
fn variants_in_a_list_are_reported_with_their_names() {
    let campaign =
        |variants: &str| format!("{}variants: {variants}\n", with_channels("- sms: { signature: Co, message: Hi }\n"));
    let form = "without a dash: `variants: { short: { share: 50% }, long: { share: 50% } }`";
    assert_findings(
        &campaign("[{ name: short, share: 50, message: Hi }, { name: long, share: 50, message: Hello }]"),
        &[("wrong-type", form), ("unknown-key", "move `message` under a channel, for example `- sms: ")],
    );
    assert_findings(&campaign("[{ short: { share: 50% } }, { long: { share: 50% } }]"), &[("wrong-type", form)]);
    assert_findings(
        &campaign("[{ share: 50% }, { share: 50% }]"),
        &[("wrong-type", "write, for example, `variants: { a: ")],
    );
}

#[test]
fn channel_order_gives_one_finding_if_another_works() {
    let sms = "- sms: { signature: A, message: B }\n";
    let viber = "- viber: { signature: A, message: B, image: i, button: b, link: l, lifetime: 1h }\n";
    let rcs = "- rcs: { signature: A, message: B, image: i, button: b, link: l }\n";
    let order = "with `sms` before `viber`, the channels do not support `image`, `link`, `button` and `lifetime` | put `viber` first, then `sms`";
    assert_findings(&with_channels(&format!("{sms}{viber}")), &[("not-carried", order)]);
    let order = "put `rcs` first, then `viber`, then `sms`";
    let plain = "- viber: { signature: A, message: B }\n";
    assert_findings(&with_channels(&format!("{sms}{plain}{rcs}")), &[("not-carried", order)]);
    let voice = "- voice: { message: B }\n";
    let findings = count_words(&CampaignFixture::new().load_text(with_channels(&format!("{voice}{viber}"))));
    assert!(findings.len() > 1 && findings.iter().all(|(_, words)| !words.contains("first, then")), "{findings:#?}");
}

#[test]
fn swapped_columns_give_one_finding_with_the_fix() {
    let campaign = |columns: &str| {
        with_channels("- sms: { signature: Co, message: \"{{ code }}\" }\n")
            .replace("file: a.csv", &format!("file: a.csv, columns: {{ {columns} }}"))
    };
    let right = "write the names first: `columns: { phone: \"Телефон\", code: \"Код\" }`";
    assert_findings(&campaign("\"Телефон\": phone, \"Код\": code"), &[("variable-name", right)]);
    assert_findings(&campaign("\"Ім'я\": first_name, \"Код\": code"), &[("variable-name", "first_name: \"Ім'я\"")]);
    // Here only one name is wrong.
    for columns in [
        "phone: mobile, \"Код\": code",
        "phone: Телефон, \"Код\": code",
        "\"Код\": code",
        "\"Код\": Code, \"Ім'я\": Name",
    ] {
        let findings = count_words(&CampaignFixture::new().load_text(campaign(columns)));
        assert!(
            findings.iter().all(|(rule, words)| *rule == "variable-name" && words.contains("use a-z")),
            "{findings:#?}"
        );
    }
}

#[test]
fn misplaced_timezone_is_not_missing_as_well() {
    let sms = "- sms: { signature: Co, message: Hi }\n";
    let with = |lines: &str| with_channels(sms) + lines;
    let place = "move `timezone` to the top level";
    let schedule = "schedule: { at: 2031-12-05 10:00 }\n";
    assert_findings(&with(&format!("delivery: {{ timezone: Europe/Kyiv }}\n{schedule}")), &[("unknown-key", place)]);
    assert_findings(
        &with("delivery: { timezone: Europe/Kyiv, per_day: 5, window: 9:00-20:00 }\n"),
        &[("unknown-key", place)],
    );
    assert_findings(&with(&format!("tz: Europe/Kyiv\n{schedule}")), &[("unknown-key", "did you mean `timezone`?")]);
    assert_findings(&with(schedule), &[("schedule", "`schedule` needs `timezone`")]);
}
