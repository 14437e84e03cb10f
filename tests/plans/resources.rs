//! Programs, addresses and sources in plans: a plan and its approval show them, and changing one changes the plan.

use super::plan;
use crate::support::{Folder, Gateway, Terminal, campaign, note_on_failure};

/// Creates a campaign with a program, a table, suppression lists and addresses, set in the campaign or in its profile.
fn write_sale(gateway: &Gateway) -> Folder {
    let notify = "notify: { when: [stopped], command: [notify-send, \"{{ text }}\"] }";
    let draft = campaign().to(2).top(notify).top("data: { stores: { file: stores.csv, key: city } }");
    let policy = "policy: { suppress: [all.csv], notify: { when: [stopped], url: { env: SLACK_URL } } }";
    let hook = "hook: { public_url: \"https://hooks.example\", secret: { file: hook.key } }";
    let draft = draft.recipients("suppress: [stop.csv]").through(gateway).profile(policy).profile(hook);
    let folder = draft.write();
    for file in ["stop.csv", "all.csv", "copy-of-stop.csv", "copy-of-all.csv"] {
        folder.write(file, "phone\n380509999999\n");
    }
    for file in ["stores.csv", "copy-of-stores.csv"] {
        folder.write(file, "city,address\nKyiv,here\n");
    }
    folder.write_secret("hook.key", "0123456789abcdef0123456789abcdef");
    let list = std::fs::read_to_string(folder.path("sale.csv")).expect("a list");
    folder.write("copy-of-sale.csv", &list);
    folder
}

/// Changes to the external resources and to `on_in_doubt`: file, old text, new text, and the words for what changed.
const CHANGES: [(&str, &str, &str, &str); 13] = [
    ("sale.yaml", "[notify-send,", "[sh,", "the program `notify.command`"),
    ("sale.yaml", "\"{{ text }}\"]", "\"{{ run }}\"]", "the program `notify.command`"),
    ("sale.yaml", "{ when: [stopped], command", "{ command", "the program `notify.command`"),
    (
        "sale.yaml",
        "command: [notify-send, \"{{ text }}\"]",
        "url: { env: URL }",
        "the program `notify.command`, the address `notify.url`",
    ),
    (
        "sale.yaml",
        "notify: { when: [stopped], command: [notify-send, \"{{ text }}\"] }\n",
        "",
        "the program `notify.command`",
    ),
    ("sale.yaml", "file: sale.csv", "file: copy-of-sale.csv", "the source `recipients.file`"),
    ("sale.yaml", "[stop.csv]", "[copy-of-stop.csv]", "the source `recipients.suppress`"),
    ("sale.yaml", "file: stores.csv", "file: copy-of-stores.csv", "the source `data.stores`"),
    ("sale.yaml", "delivery:\n", "delivery:\n  on_in_doubt: assume_sent\n", "`delivery.on_in_doubt`"),
    ("sale.yaml", "name: sale\n", "name: sale\nreceipts: poll\n", "the address `profile.hook.public_url`"),
    ("gateways.yaml", "https://hooks.example", "https://elsewhere.example", "the address `profile.hook.public_url`"),
    ("gateways.yaml", "[all.csv]", "[copy-of-all.csv]", "the source `profile.policy.suppress`"),
    ("gateways.yaml", "SLACK_URL", "OTHER_URL", "the address `profile.policy.notify.url`"),
];

#[test]
fn every_external_resource_is_part_of_the_digest() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let digest = plan(&sale, &[]);
    for (file, old, new, named) in CHANGES {
        let _case = note_on_failure(named);
        let before = std::fs::read_to_string(sale.path(file)).expect("a file");
        sale.replace(file, old, new);
        sale.run(&["--plan", &digest]).exits(2).says(&format!(": {named} changed; nothing was sent"));
        sale.campaign(&["approve", &digest]).exits(2).says(&format!(": {named} changed"));
        assert_ne!(plan(&sale, &[]), digest, "{named}");
        sale.write(file, &before);
    }
    assert!(gateway.requests().is_empty());
    sale.run(&["--plan", &digest]).exits(0);
    assert_eq!(gateway.phones().len(), 2);
}

#[test]
fn source_that_replaces_the_list_is_refused_before_it_is_read() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let digest = plan(&sale, &[]);
    let command = "command: [sh, -c, \"echo >> started; cat sale.csv\"]";
    for (source, named) in [
        (command, "the program `recipients.command`, the source `recipients.file`"),
        (
            "url: \"https://127.0.0.1:1/list.csv?token=s3cret\"",
            "the source `recipients.file`, the address `recipients.url`",
        ),
        ("sql: select 1\n  from: { env: CRM }", "the source `recipients.file`, the source `recipients.sql`"),
    ] {
        let _case = note_on_failure(named);
        sale.replace("sale.yaml", "file: sale.csv", source);
        for arguments in [["approve", &digest].as_slice(), &["run", "sale.yaml", "--plan", &digest]] {
            let refused = sale.campaign(arguments).exits(2).says(named);
            assert!(!refused.details().contains("s3cret"), "{}", refused.details());
        }
        sale.replace("sale.yaml", source, "file: sale.csv");
    }
    assert!(!sale.path("started").exists());
    // A command with a different argument counts as a different program.
    sale.replace("sale.yaml", "file: sale.csv", command);
    let planned = sale.campaign(&["plan", "sale.yaml", "--fetch", "--json"]).exits(0).json();
    let fetched = planned["digest"].as_str().expect("a digest").to_owned();
    sale.replace("sale.yaml", "echo >> started;", "echo >> other;");
    sale.run(&["--plan", &fetched]).exits(2).says(": the program `recipients.command` changed");
    assert!(!sale.path("other").exists() && gateway.requests().is_empty());
}

#[test]
fn plan_and_approve_show_every_external_resource() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    sale.replace("sale.yaml", "delivery:\n", "delivery:\n  on_in_doubt: assume_sent\n");
    let lines = [
        "source `recipients.file`: sale.csv",
        "source `recipients.suppress`: stop.csv",
        "source `data.stores`: stores.csv",
        "program `notify.command`: notify-send '{{ text }}'",
        "source `profile.policy.suppress`: all.csv",
        "address `profile.policy.notify.url`: the address in the environment variable `SLACK_URL`",
        "address `profile.hook.public_url`: https://hooks.example",
        "rows in doubt: assume_sent",
    ];
    let planned = sale.campaign(&["plan", "sale.yaml"]).exits(0);
    lines.iter().fold(planned, |planned, line| planned.says(line));
    let json = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!(json["on_in_doubt"], "assume_sent");
    let resources = json["resources"].as_array().expect("resources");
    let shown: Vec<String> = resources
        .iter()
        .map(|used| ["kind", "key", "value"].map(|member| used[member].as_str().unwrap_or_default().to_owned()))
        .map(|[kind, key, value]| format!("{kind} `{key}`: {value}"))
        .collect();
    assert_eq!(shown, lines[..7]);
    let digest = json["digest"].as_str().expect("a digest");
    let terminal = Terminal::start(sale.command(&["approve", digest]));
    for line in lines {
        terminal.shows(line);
    }
    terminal.shows("Type yes").types("no");
    terminal.finish().exits(2);
}
