//! Variants and the holdout group, which depend only on the phone number.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Draft, Folder, Gateway, campaign, phone};

const RECIPIENTS: usize = 400;

/// A campaign with two variants and a holdout group of 10%.
fn draft_with_variants() -> Draft {
    campaign()
        .to(RECIPIENTS)
        .channels("  - sms: { signature: OlenaCo, message: \"{{ variant }} {{ offer }}\" }")
        .top("vars: { offer: now }")
        .top("variants: { plain: { share: 50% }, urgent: { share: 40%, vars: { offer: today } } }")
        .top("holdout: 10%")
}

/// The variant of each recipient in the results, or the reason why the recipient was skipped.
fn read_groups(folder: &Folder) -> BTreeMap<String, String> {
    let results = folder.results();
    let group = |row: &BTreeMap<String, String>| match row["variant"].as_str() {
        "" => row["reason"].clone(),
        variant => variant.to_owned(),
    };
    results.rows.iter().map(|row| (row["to"].clone(), group(row))).collect()
}

fn count_group(groups: &BTreeMap<String, String>, group: &str) -> usize {
    groups.values().filter(|name| *name == group).count()
}

#[test]
fn phone_number_determines_the_variant_on_every_surface() {
    let gateway = Gateway::accepting();
    let sale = draft_with_variants().through(&gateway).write();
    let output = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    sale.run(&[]).exits(0);
    let groups = read_groups(&sale);
    let (plain, urgent, held_out) =
        (count_group(&groups, "plain"), count_group(&groups, "urgent"), count_group(&groups, "holdout"));
    assert_eq!(plain + urgent + held_out, RECIPIENTS);
    assert!((160..240).contains(&plain) && (115..205).contains(&urgent) && (15..70).contains(&held_out), "{groups:?}");
    assert_eq!(output["counts"], json!({ "planned": plain + urgent, "skipped": held_out }));
    let operations: Vec<_> = gateway.sends().iter().flat_map(|request| request.operations()).collect();
    assert_eq!(operations.len(), plain + urgent);
    for operation in operations {
        let (phone, text) = (&operation["phone"], &operation["sms_message"]);
        let expected = match groups[&phone.to_string()].as_str() {
            "plain" => "plain now",
            "urgent" => "urgent today",
            other => panic!("{phone} is {other} and got {text}"),
        };
        assert_eq!(text, expected);
    }
    let preview =
        sale.campaign(&["preview", "sale.yaml", "--gateway", "sandbox", "--rows", "2-401", "--json"]).exits(0);
    assert_eq!(preview.stdout.matches("holdout").count(), held_out);
}

#[test]
fn new_recipients_do_not_change_the_variant_of_others() {
    let gateway = Gateway::accepting();
    let few = draft_with_variants().through(&gateway).write();
    let rest: String = (2..RECIPIENTS + 2).map(|row| format!("{},Person\n", phone(row))).rev().collect();
    let newcomers: String = (500..600).map(|row| format!("{},Person\n", phone(row))).collect();
    let more = draft_with_variants().with_list(&format!("phone,name\n{newcomers}{rest}")).through(&gateway).write();
    few.run(&["--dry-run"]).exits(0);
    more.run(&["--dry-run"]).exits(0);
    let read_planned = |folder: &Folder| {
        let file = folder.path("results/sale.dry-run.csv");
        let results = crate::support::Results::read(&file);
        let group =
            |row: &BTreeMap<String, String>| (row["to"].clone(), (row["variant"].clone(), row["reason"].clone()));
        results.rows.iter().map(group).collect::<BTreeMap<_, _>>()
    };
    let (few, more) = (read_planned(&few), read_planned(&more));
    assert_eq!((few.len(), more.len()), (RECIPIENTS, RECIPIENTS + 100));
    assert!(few.iter().all(|(phone, group)| more[phone] == *group));
}

#[test]
fn variants_with_different_channels_use_separate_envelopes() {
    let gateway = Gateway::accepting();
    let viber = "[ viber: { signature: OlenaCo, message: Hello }, sms: { signature: OlenaCo, message: Hello } ]";
    let viber = viber.replace("[ viber", "[ { viber").replace("}, sms", "} }, { sms").replace("} ]", "} } ]");
    let sale = campaign()
        .to(120)
        .top(&format!("variants: {{ sms: {{ share: 50% }}, both: {{ share: 50%, channels: {viber} }} }}"))
        .through(&gateway)
        .write();
    sale.run(&[]).exits(0);
    let results = sale.results();
    let kinds: Vec<_> = results.column("operation").into_iter().zip(results.column("variant")).collect();
    assert!(kinds.iter().all(|pair| [("sms", "sms"), ("viber+sms", "both")].contains(pair)), "{kinds:?}");
    for envelope in gateway.sends() {
        let operations = envelope.operations();
        let mixed = operations.iter().any(|operation| operation["type"] != operations[0]["type"]);
        assert!(!mixed, "{operations:?}");
    }
}

#[test]
fn shared_holdout_group_is_the_same_in_every_campaign() {
    let find_held_out = |name: &str| {
        let sale = draft_with_variants().top("results: results/sale.csv").write();
        sale.replace("sale.yaml", "holdout: 10%", "holdout: { share: 10%, group: year }");
        sale.replace("sale.yaml", "name: sale", &format!("name: {name}"));
        sale.run(&["--dry-run"]).exits(0);
        let results = crate::support::Results::read(&sale.path("results/sale.sandbox.dry-run.csv"));
        results.rows.iter().filter(|row| row["reason"] == "holdout").map(|row| row["to"].clone()).collect::<Vec<_>>()
    };
    let (spring, autumn) = (find_held_out("spring"), find_held_out("autumn"));
    assert!(!spring.is_empty());
    assert_eq!(spring, autumn);
}

#[test]
fn outcome_compares_each_variant_with_the_holdout_group() {
    let gateway = Gateway::accepting();
    let sale = draft_with_variants().top("timezone: Europe/Kyiv").through(&gateway).write();
    sale.run(&[]).exits(0);
    let groups = read_groups(&sale);
    let buyers = groups.iter().filter(|(_, group)| *group == "urgent").map(|(phone, _)| phone);
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(5);
    let rows: String = buyers.map(|phone| format!("{at:.0},+{phone}\n")).collect();
    sale.write("bought.csv", &format!("Date,Phone\n{rows}"));
    let output = sale.campaign(&["outcome", "sale", "--file", "bought.csv", "--at", "Date", "--json"]).exits(0).json();
    let arms: BTreeMap<&str, (u64, u64)> = output["sent"]
        .as_array()
        .expect("arms")
        .iter()
        .map(|arm| {
            let number = |key: &str| arm[key].as_u64().expect("a number");
            (arm["variant"].as_str().expect("a variant"), (number("people"), number("bought")))
        })
        .collect();
    let size = |group: &str| count_group(&groups, group) as u64;
    assert_eq!(arms["plain"], (size("plain"), 0));
    assert_eq!(arms["urgent"], (size("urgent"), size("urgent")));
    assert_eq!(output["holdout"]["people"], json!(size("holdout")));
}

#[test]
fn invalid_shares_and_names_are_refused_with_their_location() {
    let gateway = Gateway::accepting();
    let cases = [
        ("variants: { a: { share: 50% }, b: { share: 40% } }", "add up to 90%, not 100%"),
        ("variants: { a: { share: 100% } }\nholdout: 10%", "and `holdout` add up to 110%"),
        ("variants: { a: { share: half } }", "must be a percentage"),
        ("variants: { \"a b\": { share: 100% } }", "is not a valid name for a variant"),
        ("variants: { a: { share: 100%, text: x } }", "unknown key `text`"),
        ("variants: { a: { share: 100% } }\nvars: { variant: x }", "`variant` is the recipient's variant"),
        ("variants: { a: { share: 100%, channels: [hlr] } }", "`hlr` cannot be a variant of a message"),
        ("holdout: 100%", "no messages would be sent"),
        ("holdout: { group: x }", "`holdout` needs `share`"),
    ];
    for (lines, expected) in cases {
        let sale = campaign().top(lines).through(&gateway).write();
        sale.run(&[]).exits(2).says(expected).says("sale.yaml:2");
    }
    let unknown = campaign().top("variants: { a: { share: 100%, vars: { x: y } } }").through(&gateway);
    let text = "  - sms: { signature: OlenaCo, message: \"{{ z }} {{ variant }}\" }";
    unknown.channels(text).write().run(&[]).exits(2).says("unknown variable `z`");
    assert!(gateway.sends().is_empty());
}

#[test]
fn resume_is_refused_if_variants_or_the_holdout_changed() {
    let gateway = Gateway::accepting();
    let sale = draft_with_variants().through(&gateway).write();
    sale.run(&["--limit", "50"]).exits(0);
    sale.replace("sale.yaml", "share: 50%", "share: 30%");
    sale.replace("sale.yaml", "share: 40%", "share: 60%");
    sale.run(&[]).exits(2).says("`variants`");
    sale.replace("sale.yaml", "holdout: 10%", "holdout: { share: 10%, group: g }");
    sale.run(&[]).exits(2).says("`holdout`");
}

#[test]
fn warning_about_variant_channels_has_its_location() {
    let variant = "{ share: 50%, channels: [ { viber: { signature: OlenaCo, message: Hello } }, { sms: { signature: OlenaCo, message: Hello } } ] }";
    let sale = campaign().to(4).top(&format!("variants: {{ a: {{ share: 50% }}, b: {variant} }}")).write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
    output
        .says("`viber` has no `lifetime`, so sms might be tried up to two days later")
        .says("sale.yaml:2:")
        .says("    sms       1, 1 part each\n    viber     3\n    sms       3 at most, 1 part each\n");
}

fn draft_of(message: &str, top: &str) -> Draft {
    campaign().channels(&format!("  - sms: {{ signature: OlenaCo, message: \"{message}\" }}")).top(top)
}

#[test]
fn mistakes_that_make_variants_equal_are_warnings_with_a_remedy() {
    let variants = "variants: { a: { share: 50% }, b: { share: 50% } }";
    for (message, top, warning, help) in [
        ("Hi", variants, "the variants `a` and `b` send the same message", "its own `vars` or `channels`"),
        (
            "{{ hello }}",
            "vars: { hello: Hi }\nvariants: { a: { share: 50% }, b: { share: 50%, vars: { hello: Hi } } }",
            "the variants `a` and `b` send the same message",
            "its own `vars` or `channels`",
        ),
        (
            "{% if variant == 'A' %}Hi{% else %}Hello{% endif %}",
            variants,
            "no variant has the name `A`",
            "did you mean `a`?",
        ),
        ("{{ 'x' if variant == 'long' else 'y' }}", variants, "no variant has the name `long`", "use one of `a`"),
    ] {
        let folder = draft_of(message, top).write();
        let shown = folder.campaign(&["check", "sale.yaml"]).stderr;
        assert!(shown.contains(warning) && shown.contains(help), "{message}: {shown}");
    }
    for (message, top) in [
        ("{% if variant == 'a' %}Hi{% else %}Hello{% endif %}", variants),
        (
            "{{ hello }}",
            "vars: { hello: Hi }\nvariants: { a: { share: 50% }, b: { share: 50%, vars: { hello: Hey } } }",
        ),
        (
            "Hi",
            "variants: { a: { share: 50% }, b: { share: 50%, channels: [{ sms: { signature: Olena, message: Hey } }] } }",
        ),
    ] {
        let shown = draft_of(message, top).write().campaign(&["check", "sale.yaml"]).stderr;
        assert!(!shown.contains("same message") && !shown.contains("no variant"), "{message}: {shown}");
    }
}
