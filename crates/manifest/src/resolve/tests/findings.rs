//! Findings about campaign files and their locations. A mistake with several consequences gives one finding, which
//! names the cause and the correct form.

use super::*;

#[test]
fn mistakes_in_a_message_are_reported() {
    let long = format!("\"{}\"", "x ".repeat(33_000));
    let cases = [
        ("Sale #1 today", "cut-text", 5, 18),
        ("Sale  # 20% today", "cut-text", 5, 18),
        ("!Important news", "yaml-tag", 5, 14),
        ("&Co says hi", "yaml-anchor", 5, 14),
        ("*bold* text", "yaml-quote", 5, 14),
        ("{{ first_name }}", "unquoted-template", 5, 14),
        ("{{ first_name }}, hi", "unquoted-template", 5, 14),
        ("{first_name}", "wrong-type", 5, 15),
        ("[SALE]", "wrong-type", 5, 15),
        ("[SALE] now", "yaml-quote", 5, 14),
        ("Hi: there", "yaml-quote", 5, 14),
        ("welcome.sms.txt", "looks-like-a-file", 5, 14),
        ("Hi {first_name}!", "single-braces", 5, 17),
        ("Hi %first_name%!", "foreign-placeholder", 5, 17),
        ("Hi [name]!", "foreign-placeholder", 5, 17),
        ("Hi *|NAME|*!", "foreign-placeholder", 5, 17),
        ("\"Hi <<name>>!\"", "foreign-placeholder", 5, 18),
        ("“Hi, there”", "typographic-quotes", 5, 14),
        ("“Hi: there”", "typographic-quotes", 5, 14),
        ("'don't'", "yaml-quote", 5, 19),
        ("\"Hi", "yaml-quote", 5, 14),
        ("@home", "yaml-quote", 5, 14),
        ("\"\"", "empty-text", 5, 5),
        ("\"  \"", "empty-text", 5, 5),
        ("", "empty-value", 5, 5),
        ("null", "empty-value", 5, 5),
        ("{ file: no.txt }", "text-file", 5, 22),
        ("{ file: ../x.txt }", "text-file", 5, 22),
        ("{ file: blank.txt }", "empty-text", 5, 22),
        ("{ file: braces.txt }", "single-braces", 2, 1),
        (&long, "text-too-long", 5, 5),
        ("{ fil: blank.txt }", "unknown-key", 5, 16),
        ("| text", "yaml-quote", 5, 14),
        ("\"50\\% off\"", "yaml-quote", 5, 14),
    ];
    let fixture = CampaignFixture::new();
    for (message, rule, line, column) in cases {
        let loaded = fixture.load_text(with_message(message));
        assert!(
            list_findings(&loaded).contains(&(rule, line, column)),
            "{message}: {}",
            render_findings(&loaded.findings, false)
        );
        let is_warning = matches!(rule, "single-braces" | "foreign-placeholder" | "typographic-quotes");
        assert_eq!(loaded.value.is_some(), is_warning && message != "“Hi: there”", "{message}");
    }
}

#[test]
fn contract_violations_are_reported_with_rule_and_position() {
    let cases = [
        ("- rcs: { signature: Co, message: Hi }\n", vec![("missing-key", 3, 3)]),
        (
            "- rcs: { signature: C, message: H, image: i, button: b, link: l, lifetime: 59 }\n",
            vec![("out-of-range", 3, 76)],
        ),
        ("- viber: { signature: Co, message: Hi, lifetime: 3d }\n", vec![("out-of-range", 3, 50)]),
        ("- sms: { signature: Co, message: Hi, lifetime: 1m }\n", vec![("out-of-range", 3, 48)]),
        ("- telegram: { message: '1234', lifetime: 30s }\n", vec![("out-of-range", 3, 42)]),
        ("- viber: { signature: Co, message: Hi, image: i }\n", vec![("viber-type", 3, 3); 2]),
        ("- viber: { signature: Co, type: image, image: i, message: Hi }\n", vec![("viber-type", 3, 50)]),
        ("- viber: { signature: Co, type: video, message: Hi }\n", vec![("unknown-value", 3, 33)]),
        ("- viber: { signature: Co, carousel: [{ image: i, url: u, button: b }] }\n", vec![("out-of-range", 3, 27)]),
        (
            "- viber: { signature: Co, carousel: [{ image: i, url: u, button: b }, { url: u, button: b }] }\n",
            vec![("missing-key", 3, 73)],
        ),
        (
            "- sms: { signature: A, message: B }\n- sms: { signature: A, message: B }\n",
            vec![("repeated-channel", 4, 3)],
        ),
        ("- hlr\n- sms: { signature: A, message: B }\n", vec![("stands-alone", 3, 3)]),
        ("- hlr\noperation: pipeline\n", vec![("stands-alone", 4, 12)]),
        ("- voice: { message: Hi }\n", vec![("missing-key", 3, 3)]),
        ("- voice: { message: Hi, gender: robot, language: l, name: n }\n", vec![("unknown-value", 3, 33)]),
        ("- whatsapp: { message: Hi }\n", vec![("missing-key", 3, 3)]),
    ];
    let fixture = CampaignFixture::new();
    for (channels, expected) in cases {
        let loaded = fixture.load_text(with_channels(channels));
        assert_eq!(list_findings(&loaded), expected, "{channels}{}", render_findings(&loaded.findings, false));
    }
}

#[test]
fn keys_an_operation_cannot_carry_are_reported() {
    let sms = "- sms: { signature: A, message: B, lifetime: 1h }\n";
    let viber = "- viber: { signature: A, message: B, lifetime: 1h }\n";
    let full_rcs = "- rcs: { signature: A, message: B, image: i, button: b, link: l, short_link: true }\n";
    let cards = "[{ image: i, url: u, button: b }, { image: i, url: u, button: b }]";
    let cases = [
        (format!("{sms}operation: pipeline\n"), vec![("not-carried", 3, 36)]),
        (format!("{viber}{sms}"), vec![("not-carried", 4, 36)]),
        (format!("{full_rcs}{viber}- sms: {{ signature: A, message: B }}\n"), vec![("not-carried", 4, 38)]),
        (format!("- sms: {{ signature: A, message: B }}\n{full_rcs}"), vec![("not-carried", 3, 3)]),
        (
            format!("- viber: {{ signature: A, carousel: {cards} }}\n- sms: {{ signature: A, message: B }}\n"),
            vec![("not-carried", 3, 26)],
        ),
        (
            "- viber: { signature: A, message: B, type: image, image: i }\noperation: pipeline\n".to_owned(),
            vec![("not-carried", 3, 44), ("not-carried", 3, 51)],
        ),
        (format!("{full_rcs}- sms: {{ signature: A, message: B, short_link: false }}\n"), vec![("short-link", 4, 48)]),
        (
            "- voice: { message: B, dtmf: true }\n- sms: { signature: A, message: B }\n".to_owned(),
            vec![("not-carried", 3, 24)],
        ),
    ];
    let fixture = CampaignFixture::new();
    for (channels, expected) in cases {
        let loaded = fixture.load_text(with_channels(&channels));
        assert_eq!(list_findings(&loaded), expected, "{channels}{}", render_findings(&loaded.findings, false));
    }
}

#[test]
fn extra_properties_cannot_replace_known_ones() {
    let fields =
        |channel: &str, fields: &str| format!("- {channel}: {{ signature: A, message: B, fields: {{ {fields} }} }}\n");
    let sms = fields("sms", "y: 1");
    let cases = [
        (fields("sms", "sms_message: x"), 1),
        (fields("sms", "phone: 1, id: 2, type: x, hook: y"), 4),
        (fields("sms", "rcs_message: x, y: 1"), 0),
        (format!("{}{sms}", fields("viber", "y: 2")), 1),
        (format!("{}{sms}", fields("viber", "sms_message: 2")), 1),
        (format!("{sms}{}", fields("viber", "y: 2")), 0),
        (format!("{}operation: pipeline\n", fields("sms", "message: x")), 1),
        (format!("{}operation: pipeline\n", fields("sms", "phone: 1")), 0),
    ];
    let fixture = CampaignFixture::new();
    for (channels, count) in cases {
        let loaded = fixture.load_text(with_channels(&channels));
        let collisions = list_findings(&loaded).iter().filter(|(rule, ..)| *rule == "field-collision").count();
        assert_eq!(
            (collisions, loaded.findings.len()),
            (count, count),
            "{channels}{}",
            render_findings(&loaded.findings, false)
        );
    }
}

#[test]
fn malformed_channel_list_shows_the_correct_form() {
    let cases = [
        ("channels:\n  sms: { signature: A, message: B }\n", ("wrong-type", 2, 1)),
        ("channels: sms\n", ("wrong-type", 2, 11)),
        ("channels:\n", ("empty-value", 2, 1)),
        ("channels: []\n", ("empty-value", 2, 11)),
        (
            "channels:\n  - sms: { signature: A, message: B }\n    viber: { signature: A, message: B }\n",
            ("crowded-item", 3, 5),
        ),
        ("channels:\n  - sms:\n    signature: A\n    message: B\n", ("yaml-indentation", 3, 5)),
        ("channels:\n  - smss: { signature: A, message: B }\n", ("unknown-channel", 3, 5)),
        ("channels:\n  - email\n", ("unknown-channel", 3, 5)),
        ("channels:\n  - sms\n", ("missing-key", 3, 5)),
        ("channels:\n  - [sms]\n", ("wrong-type", 3, 6)),
    ];
    let fixture = CampaignFixture::new();
    for (channels, expected) in cases {
        let loaded = fixture.load_text(format!("recipients: {{ file: a.csv }}\n{channels}"));
        assert!(list_findings(&loaded).contains(&expected), "{channels}{}", render_findings(&loaded.findings, false));
        assert!(loaded.value.is_none(), "{channels}");
    }
}

#[test]
fn wrong_keys_and_values_are_reported_at_their_position() {
    let rest = "channels: [hlr]\n";
    let list = "recipients: { file: a.csv }\n";
    let cases = [
        (rest.to_owned(), ("missing-key", 1, 1)),
        (format!("recipients: a.csv\n{rest}"), ("wrong-type", 1, 13)),
        (format!("recipients: {{ fil: a.csv }}\n{rest}"), ("unknown-key", 1, 15)),
        (format!("recipients: {{ file: a.csv }}\ndelivery: {{ window: x }}\n{rest}"), ("window", 2, 21)),
        (format!("recipients: {{ file: a.csv, region: UK }}\n{rest}"), ("unknown-region", 1, 36)),
        (format!("recipients: {{ file: a.csv, region: Європа }}\n{rest}"), ("unknown-region", 1, 36)),
        (format!("recipients: {{ file: a.csv, max_invalid: 10 }}\n{rest}"), ("wrong-type", 1, 41)),
        (format!("recipients: {{ file: a.csv, duplicates: skpi }}\n{rest}"), ("unknown-value", 1, 40)),
        (format!("recipients: {{ file: a.csv, columns: {{ \"Ім'я\": x }} }}\n{rest}"), ("variable-name", 1, 39)),
        (format!("recipients: {{ file: a.csv, columns: {{ row: x }} }}\n{rest}"), ("name-clash", 1, 39)),
        (format!("recipients: {{ file: a.csv, columns: {{ if: x }} }}\n{rest}"), ("variable-name", 1, 39)),
        (format!("recipients: {{ file: a.csv }}\nvars: {{ None: x }}\n{rest}"), ("variable-name", 2, 9)),
        (format!("recipients: {{ file: a.csv }}\nvars: {{ __x: y }}\n{rest}"), ("variable-name", 2, 9)),
        (format!("recipients: {{ file: a.csv, columns: {{ a: x }} }}\nvars: {{ a: y }}\n{rest}"), ("name-clash", 2, 9)),
        (format!("{list}vars: {{ a: [1] }}\n{rest}"), ("wrong-type", 2, 9)),
        (format!("{list}vars: {{ a: }}\n{rest}"), ("wrong-type", 2, 9)),
        (format!("{list}vars:\n  a: x #1\n{rest}"), ("cut-text", 3, 7)),
        (format!("{list}vars: {{ a: \"{{{{ b }}}}\" }}\n{rest}"), ("template-in-constant", 2, 12)),
        (format!("{list}vars: {{ a: 1, a: 2 }}\n{rest}"), ("yaml-duplicate-key", 2, 15)),
        (format!("name: Autumn Sale\n{list}{rest}"), ("campaign-name", 1, 7)),
        (format!("timezone: Europe/Kiyv\n{list}{rest}"), ("unknown-timezone", 1, 11)),
        (format!("endpoint: asynch\n{list}{rest}"), ("unknown-value", 1, 11)),
        (format!("receipts: perhaps\n{list}{rest}"), ("unknown-value", 1, 11)),
        (format!("schedule: {{ every: Mon 10:00 }}\n{list}{rest}"), ("schedule", 1, 1)),
        (format!("timezone: UTC\nschedule: {{ at: x }}\n{list}{rest}"), ("schedule", 2, 17)),
        (format!("timezone: UTC\nschedule: {{ every: Mno 10:00 }}\n{list}{rest}"), ("schedule", 2, 20)),
        (format!("timezone: UTC\nschedule: {{ cron: 0 10 * * }}\n{list}{rest}"), ("schedule", 2, 19)),
        (format!("timezone: UTC\nschedule: {{ grace: 1h }}\n{list}{rest}"), ("schedule", 2, 1)),
        (format!("timezone: UTC\nschedule:\n{list}{rest}"), ("schedule", 2, 1)),
        (format!("timezone: UTC\nschedule: Mon 10:00\n{list}{rest}"), ("wrong-type", 2, 11)),
        (
            format!("timezone: UTC\nschedule: {{ every: day 9:30, cron: 0 10 * * * }}\n{list}{rest}"),
            ("schedule", 2, 36),
        ),
        (format!("timezone: UTC\nschedule: {{ every: day 9:30, ends: soon }}\n{list}{rest}"), ("schedule", 2, 36)),
        (
            format!("timezone: UTC\nschedule: {{ evry: day 9:30, every: day 9:30 }}\n{list}{rest}"),
            ("unknown-key", 2, 13),
        ),
        (format!("timezone: UTC\nschedule: {{ every: day 9:30, grace: 10s }}\n{list}{rest}"), ("out-of-range", 2, 37)),
        (format!("recipients: {{ file: \"{{{{ name }}}}.csv\" }}\n{rest}"), ("file-name", 1, 21)),
        (format!("{list}results: \"{{% if x %}}.csv\"\n{rest}"), ("file-name", 2, 10)),
        (format!("notify: {{ when: [finished] }}\n{list}{rest}"), ("notify", 1, 1)),
        (format!("notify: {{ url: {{ env: A }}, command: [a] }}\n{list}{rest}"), ("notify", 1, 1)),
        (format!("notify: {{ url: {{ env: A }}, preset: slack, body: x }}\n{list}{rest}"), ("notify", 1, 43)),
        (format!("notify: {{ command: [a], local: true }}\n{list}{rest}"), ("notify", 1, 25)),
        (format!("notify: {{ url: https://hooks.example/x }}\n{list}{rest}"), ("secret", 1, 11)),
        (format!("notify: {{ url: {{ env: https://a.example }} }}\n{list}{rest}"), ("secret", 1, 18)),
        (format!("notify: {{ command: [a], when: [done] }}\n{list}{rest}"), ("unknown-value", 1, 32)),
        (format!("delivery: {{ window: x }}\n{list}{rest}"), ("window", 1, 21)),
        (format!("delivery: {{ on_in_doubt: forget }}\n{list}{rest}"), ("unknown-value", 1, 26)),
        (
            format!("delivery: {{ on_in_doubt: resend_if_not_found }}\n{list}channels: [call/otp]\n"),
            ("never-resent", 1, 26),
        ),
        (
            format!("delivery: {{ on_in_doubt: resend_if_not_found }}\nendpoint: async\n{list}{rest}"),
            ("never-resent", 1, 26),
        ),
        (format!("delivery: {{ rate: 10 }}\n{list}{rest}"), ("wrong-type", 1, 19)),
        (format!("delivery: {{ batch: 0 }}\n{list}{rest}"), ("out-of-range", 1, 20)),
        (format!("delivery: {{ batch: \"5\" }}\n{list}{rest}"), ("wrong-type", 1, 20)),
        (format!("delivery: {{ batch: 0x0 }}\n{list}{rest}"), ("out-of-range", 1, 20)),
        (format!("delivery: {{ batch: 0x1FFFFFFFF }}\n{list}{rest}"), ("out-of-range", 1, 20)),
        (format!("delivery: {{ batch: 5.0 }}\n{list}{rest}"), ("wrong-type", 1, 20)),
        (format!("delivery: {{ in_flight: 65 }}\n{list}{rest}"), ("out-of-range", 1, 24)),
        (format!("delivery: {{ timeout: 11m }}\n{list}{rest}"), ("out-of-range", 1, 22)),
        (format!("delivery: fast\n{list}{rest}"), ("wrong-type", 1, 11)),
        (format!("message: Hi\n{list}{rest}"), ("unknown-key", 1, 1)),
        (format!("window: 09:00-20:00\n{list}{rest}"), ("unknown-key", 1, 1)),
        (format!("<<: {{}}\n{list}{rest}"), ("yaml-merge", 1, 1)),
        (format!("{list}{rest}---\n"), ("yaml-documents", 3, 1)),
        (format!("recipients:\n\tfile: a.csv\n{rest}"), ("yaml-tab", 2, 1)),
        (format!("recipients:\n    file: a.csv\n  region: UA\n{rest}"), ("yaml-indentation", 3, 3)),
        (format!("recipients\n{rest}"), ("yaml-syntax", 1, 1)),
        ("# nothing\n".to_owned(), ("file-empty", 1, 1)),
        ("- a\n".to_owned(), ("wrong-type", 1, 3)),
        (format!("{}{}", "[".repeat(40), "]".repeat(40)), ("file-too-complex", 1, 33)),
    ];
    let fixture = CampaignFixture::new();
    for (yaml, expected) in cases {
        let loaded = fixture.load_text(&yaml);
        assert!(list_findings(&loaded).contains(&expected), "{yaml}{}", render_findings(&loaded.findings, false));
        assert!(loaded.value.is_none(), "{yaml}");
        assert!(
            loaded.findings.iter().all(|finding| finding.help.is_some() || finding.rule.id == "out-of-range"),
            "{yaml}"
        );
    }
}

#[test]
fn unusable_file_name_requires_a_name_key() {
    let loaded = CampaignFixture::new().load_as("Autumn Sale.yaml", with_message("Hi"));
    assert_eq!(list_findings(&loaded), [("campaign-name", 1, 1)]);
    assert!(loaded.findings[0].help.as_ref().unwrap().contains("`name: autumn-sale`"));
}

#[test]
fn all_problems_are_reported_together() {
    let yaml = "nam: x\nrecipients: { file: a.csv, region: UK }\nchannels:\n  - sms: { signatur: A, message: B }\ndelivery: { batch: 0 }\n";
    let loaded = CampaignFixture::new().load_text(yaml);
    let rules: Vec<&str> = list_findings(&loaded).iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(rules, ["unknown-key", "unknown-region", "unknown-key", "out-of-range"]);
}

#[test]
fn long_problem_report_is_truncated_and_the_file_refused() {
    let yaml: String = (0..500).map(|number| format!("unknown{number}: x\n")).collect();
    let loaded = CampaignFixture::new().load_text(yaml);
    assert_eq!(loaded.findings.len(), 101);
    assert!(loaded.findings[100].message.starts_with("402 more") && loaded.value.is_none());
}

#[test]
fn typing_error_hides_findings_that_follow_from_it() {
    let rest = "channels:\n  - sms:\n      signature: Co\n      message: Hi\n";
    let cases = [
        (format!("recipients:\n  file:list.csv\n{rest}"), "yaml-syntax", 2, 7),
        (format!("recipients: {{ file: x }}\n{}", rest.replace("signature: ", "signature:")), "yaml-syntax", 4, 16),
        (format!("recipients:\n\u{a0}\u{a0}file: list.csv\n{rest}"), "yaml-indentation", 2, 1),
        (format!("recipients: {{ file: x }}\n{}", rest.replace("- sms", "– sms")), "yaml-syntax", 3, 3),
    ];
    let fixture = CampaignFixture::new();
    for (yaml, rule, line, column) in cases {
        assert_eq!(list_findings(&fixture.load_text(&yaml)), [(rule, line, column)], "{yaml}");
    }
    let valid = format!("recipients: {{ file: x }}\n{}", rest.replace("Hi", "\"file:x, – and so on\""));
    assert_eq!(list_findings(&fixture.load_text(&valid)), []);
}

#[test]
fn list_given_as_a_campaign_suggests_init() {
    let fixture = CampaignFixture::new();
    for (name, ending) in [("Clients.CSV", "Clients.CSV`"), ("база 2026.csv", "база 2026.csv'`")] {
        let loaded = fixture.load_as(name, "phone,name\n+380501234567,Olena\n");
        let help = loaded.findings[0].help.as_deref().unwrap_or_default();
        assert!(help.contains("campaign init NAME --from ") && help.ends_with(ending), "{help}");
    }
}

#[test]
fn misplaced_channel_key_suggests_its_place() {
    let loaded = CampaignFixture::new()
        .load_text("recipients: { file: a.csv }\nmessage: Hi\nchannels: [{ sms: { signature: Co, message: Hi } }]\n");
    let help = loaded.findings[0].help.as_ref().unwrap();
    assert_eq!(help, "move `message` under a channel, for example `- sms: { message: … }`");
}

/// The rule of each finding, with its message and help.
fn describe_findings(loaded: &LoadedFile<Campaign>) -> Vec<(&'static str, String)> {
    let words = |finding: &Finding| format!("{} | {}", finding.message, finding.help.as_deref().unwrap_or_default());
    loaded.findings.iter().map(|finding| (finding.rule.id, words(finding))).collect()
}

#[track_caller]
fn assert_findings(yaml: &str, expected: &[(&str, &str)]) {
    let findings = describe_findings(&CampaignFixture::new().load_text(yaml));
    assert_eq!(findings.len(), expected.len(), "{yaml}{findings:#?}");
    for ((rule, words), (expected_rule, expected_words)) in findings.iter().zip(expected) {
        assert_eq!(rule, expected_rule, "{yaml}");
        assert!(words.contains(expected_words), "{yaml}{words}");
    }
}

#[test]
fn texts_without_by_give_one_finding_with_the_correct_form() {
    let unnamed = "write `message: { by: language, texts: { uk: …, en: … } }`";
    assert_findings(&with_message("{ uk: Вітаємо, en: Hello }"), &[("missing-key", unnamed)]);
    assert_findings(&with_message("{ uk: { file: a.txt }, en: Hello }"), &[("missing-key", unnamed)]);
    let named = "write `message: { by: lang, texts: { uk: …, en: … } }`";
    assert_findings(&with_message("{ by: lang, uk: Вітаємо, en: Hello, else: uk }"), &[("missing-key", named)]);
}

#[test]
fn map_that_is_not_a_text_choice_keeps_its_finding() {
    let message = |map: &str| list_findings(&CampaignFixture::new().load_text(with_message(map)));
    assert_eq!(message("{ fil: a.txt }"), [("unknown-key", 5, 16)]);
    assert_eq!(message("{ first_name }"), [("wrong-type", 5, 16)]);
}

#[test]
fn variants_written_as_a_list_are_reported_with_their_names() {
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
fn unsupported_channel_order_gives_one_finding_with_the_fix() {
    let sms = "- sms: { signature: A, message: B }\n";
    let viber = "- viber: { signature: A, message: B, image: i, button: b, link: l, lifetime: 1h }\n";
    let rcs = "- rcs: { signature: A, message: B, image: i, button: b, link: l }\n";
    let order = "with `sms` before `viber`, the channels do not support `image`, `link`, `button` and `lifetime` | put `viber` first, then `sms`";
    assert_findings(&with_channels(&format!("{sms}{viber}")), &[("not-carried", order)]);
    let order = "put `rcs` first, then `viber`, then `sms`";
    let plain = "- viber: { signature: A, message: B }\n";
    assert_findings(&with_channels(&format!("{sms}{plain}{rcs}")), &[("not-carried", order)]);
    let voice = "- voice: { message: B }\n";
    let findings = describe_findings(&CampaignFixture::new().load_text(with_channels(&format!("{voice}{viber}"))));
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
        let findings = describe_findings(&CampaignFixture::new().load_text(campaign(columns)));
        assert!(
            findings.iter().all(|(rule, words)| *rule == "variable-name" && words.contains("use a-z")),
            "{findings:#?}"
        );
    }
}

#[test]
fn message_and_flag_findings_name_what_the_file_contains() {
    let viber = |keys: &str| with_channels(&format!("- viber: {{ signature: Co{keys} }}\n"));
    let (alone, also) = ("a Viber message needs `message`", "a Viber message with `button` also needs `message`");
    assert!(describe_findings(&CampaignFixture::new().load_text(viber("")))[0].1.starts_with(alone));
    let findings = describe_findings(&CampaignFixture::new().load_text(viber(", button: Buy")));
    assert!(findings.iter().any(|(_, words)| words.starts_with(also)), "{findings:#?}");
    let flag = |value: &str| with_message(&format!("Hi\n    short_link: {value}"));
    let quoted = "`short_link` is the text `\"true\"` in quotes, but must be `true` or `false`";
    assert_findings(&flag("\"true\""), &[("wrong-type", quoted)]);
    assert_findings(&flag("maybe"), &[("wrong-type", "`short_link` is `maybe`, but must be `true` or `false`")]);
}

#[test]
fn misplaced_timezone_is_not_also_reported_as_missing() {
    let sms = "- sms: { signature: Co, message: Hi }\n";
    let campaign_with = |lines: &str| with_channels(sms) + lines;
    let place = "move `timezone` to the top level";
    let schedule = "schedule: { at: 2031-12-05 10:00 }\n";
    assert_findings(
        &campaign_with(&format!("delivery: {{ timezone: Europe/Kyiv }}\n{schedule}")),
        &[("unknown-key", place)],
    );
    assert_findings(
        &campaign_with("delivery: { timezone: Europe/Kyiv, per_day: 5, window: 9:00-20:00 }\n"),
        &[("unknown-key", place)],
    );
    assert_findings(
        &campaign_with(&format!("tz: Europe/Kyiv\n{schedule}")),
        &[("unknown-key", "did you mean `timezone`?")],
    );
    assert_findings(&campaign_with(schedule), &[("schedule", "`timezone` must be set")]);
}

#[test]
fn usual_names_of_a_condition_suggest_where() {
    for name in ["filter", "condition", "only"] {
        let filtered = with_message("Hi").replacen("a.csv", &format!("a.csv, {name}: 'city == \"Lviv\"'"), 1);
        assert_findings(&filtered, &[("unknown-key", "did you mean `where`?")]);
    }
}
