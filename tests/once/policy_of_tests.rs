//! Policies for `campaign test`: opt-outs, the sending window, and the recipient limit of an edition.

use crate::support::{Answer, Draft, Finished, Folder, Gateway, Terminal, campaign, closed_window, rejected};

/// A number outside every list.
const TESTER: u64 = 380_671_234_500;

fn number(tester: u64) -> String {
    format!("+{}", TESTER + tester)
}

/// Sends a test of the campaign to these testers.
fn test(sale: &Folder, testers: impl IntoIterator<Item = u64>, options: &[&str]) -> Finished {
    let mut arguments = vec!["test".to_owned(), "sale.yaml".to_owned()];
    arguments.extend(testers.into_iter().flat_map(|tester| ["--to".to_owned(), number(tester)]));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    sale.campaign(&[&arguments, options].concat())
}

#[test]
fn one_suppressed_recipient_blocks_all_test_messages() {
    let gateway = Gateway::accepting();
    let draft = || campaign().recipients("suppress: [stop.csv]").through(&gateway);
    let sale = draft().profile("policy: { suppress: [house.csv] }").write();
    sale.write("stop.csv", &format!("phone\n{}\n", number(1)));
    sale.write("house.csv", &format!("phone\n{}\n", number(2)));
    sale.campaign(&["suppress", "add", &number(3)]).exits(0);
    sale.campaign(&["suppress", "add", &number(4), "--campaign", "sale"]).exits(0);
    sale.campaign(&["suppress", "add", &number(5), "--campaign", "other"]).exits(0);
    for (suppressed, digits) in [(1, "…01"), (2, "…02"), (3, "…03"), (4, "…04")] {
        let refused = test(&sale, [0, suppressed], &[]).exits(2);
        let refused = refused.says("nothing was sent").says(&format!("recipient 2 ({digits}) opted out"));
        assert!(!refused.stderr.contains(&number(suppressed)[1..]), "{}", refused.stderr);
    }
    test(&sale, [1, 2, 0], &[]).exits(2).says("recipient 1 (…01), recipient 2 (…02) opted out");
    assert!(gateway.sends().is_empty());
    test(&sale, [0, 5], &[]).exits(0);
    // An opt-out from marketing does not block service messages.
    draft().top("purpose: service").profile("policy: { suppress: [house.csv] }").rewrite(&sale);
    test(&sale, [2, 3], &[]).exits(0);
    assert_eq!(gateway.phones(), [0, 5, 2, 3].map(|tester| TESTER + tester));
}

#[test]
fn test_message_outside_the_window_needs_option_or_confirmation() {
    let gateway = Gateway::accepting();
    let (window, opens) = closed_window("Europe/Kyiv");
    let base = |draft: Draft| draft.top("timezone: Europe/Kyiv").through(&gateway);
    let profile_draft = base(campaign()).profile(&format!("policy: {{ window: {window} }}"));
    let campaign_draft = base(campaign().delivery(&format!("window: {window}")));
    let opens = format!("it opens at {} (Europe/Kyiv)", opens.strftime("%Y-%m-%d %H:%M"));
    for (draft, sent) in [(profile_draft, 0), (campaign_draft, 2)] {
        let sale = draft.write();
        for options in [&[][..], &["--yes"]] {
            test(&sale, [0], options).exits(2).says(&opens).says("help: ").says("`--outside-window`");
        }
        let terminal = Terminal::start_on(200, sale.command(&["test", "sale.yaml", "--to", &number(0)]));
        terminal.shows(&opens).shows("Type yes").types("");
        terminal.finish().exits(2);
        assert_eq!(gateway.phones().len(), sent);
        let terminal = Terminal::start_on(200, sale.command(&["test", "sale.yaml", "--to", &number(0)]));
        terminal.shows(&opens).shows("Type yes").types("yes");
        terminal.finish().exits(0);
        test(&sale, [0], &["--outside-window"]).exits(0);
        assert_eq!(gateway.phones().len(), sent + 2);
        test(&sale, [0], &["--gateway", "sandbox"]).exits(0);
    }
}

#[test]
fn test_messages_of_an_edition_reach_at_most_ten_recipients() {
    let gateway = Gateway::accepting();
    let sale = campaign().top("edition: first").through(&gateway).write();
    test(&sale, 0..11, &[]).exits(2).says("11 recipients; the limit is 10").says("run FILE -n 20");
    for tester in 0..10 {
        test(&sale, [tester], &[]).exits(0);
    }
    for row in ["2", "3"] {
        test(&sale, [10], &["--row", row]).exits(2).says("reach 11 recipients").says("help: ");
        test(&sale, [9], &["--row", row]).exits(0);
    }
    assert_eq!(gateway.phones().len(), 12);
    test(&sale, 0..20, &["--gateway", "sandbox"]).exits(0);
    sale.replace("sale.yaml", "edition: first", "edition: second");
    test(&sale, [10], &[]).exits(0);
    assert_eq!(gateway.phones().len(), 13);
}

#[test]
fn row_without_a_message_is_reported_with_its_reason() {
    let gateway = Gateway::accepting();
    let list = "phone,name\n380501000002,Olena\n380501000003,Ivan\n,\n380501000005,Taras\n";
    let sale = campaign().recipients("where: name != \"Ivan\"").with_list(list).through(&gateway).write();
    test(&sale, [0], &["--row", "3"]).exits(2).says("row 3 has no message: filtered");
    test(&sale, [0], &["--row", "4"]).exits(2).says("row 4 is blank");
    test(&sale, [0], &["--row", "2"]).exits(0);
}

#[test]
fn rejected_test_message_does_not_count_towards_the_limit() {
    let gateway = Gateway::answering([Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = campaign().through(&gateway).write();
    test(&sale, [20], &[]).exits(3);
    test(&sale, 0..10, &[]).exits(0);
    test(&sale, [20], &[]).exits(2).says("reach 11 recipients");
}

#[test]
fn test_messages_above_the_recipient_limit_need_approval() {
    for (above, limit) in [(2, 2), (1000, 10)] {
        let gateway = Gateway::accepting();
        let sale = campaign().through(&gateway).write();
        let key = sale.campaign(&["approve", "--new-key", "olha", "--json"]).exits(0).json();
        let public = key["public"].as_str().expect("a public half");
        let rule = format!("local:\n  approval: {{ above: {above}, by: {{ Olha: \"{public}\" }} }}\n");
        sale.replace("gateways.yaml", "local:\n", &rule);
        for tester in 0..limit {
            test(&sale, [tester], &[]).exits(0);
        }
        let refused = test(&sale, [limit, limit + 1], &[])
            .exits(2)
            .says(&format!("the limit is {limit}; the profile for the gateway `local` requires an approval"));
        let command = refused.stderr.split_once("campaign approve ").expect("a command").1;
        let digest = command.split(' ').next().expect("a digest");
        sale.run(&["--plan", digest]).exits(2).says("the recipients of test messages");
        let signed = sale.campaign(&["approve", digest, "--key", "olha.key"]).exits(0);
        signed.says("for 2 test messages, to be sent once");
        // The approval covers exactly these messages.
        test(&sale, [limit], &[]).exits(2);
        test(&sale, [limit, limit + 2], &[]).exits(2);
        test(&sale, [limit, limit + 1], &["--row", "3"]).exits(2);
        assert_eq!(gateway.phones().len() as u64, limit);
        test(&sale, [limit + 1, limit], &[]).exits(0);
        assert_eq!(gateway.phones().len() as u64, limit + 2);
        test(&sale, [limit + 2], &[]).exits(2).says("requires an approval for more recipients");
    }
}
