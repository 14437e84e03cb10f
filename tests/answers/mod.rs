//! What each answer of a gateway proves, over real HTTP: states, exit code, and whether the run went on.

mod client;
mod connections;
mod envelopes;
mod items;
mod line;
mod odd;
mod sockets;
mod statuses;
mod unreachable;

use crate::support::{Answer, Draft, Folder, Gateway, campaign, phone, telling};

/// How many people the campaigns here go to, in envelopes of 1, 4, 4 and 1.
const PEOPLE: usize = 10;

/// A campaign in which the second envelope is that of rows 3 to 6.
fn in_envelopes_of_four() -> Draft {
    campaign().to(PEOPLE).batches_of(4).one_at_a_time()
}

/// The states of the results, a letter for each row.
fn states(sale: &Folder) -> String {
    let letter = |state: &str| match state {
        "accepted" => 'a',
        "queued" => 'q',
        "in_doubt" => 'd',
        "planned" => 'p',
        "rejected" => 'r',
        other => panic!("a row is {other}"),
    };
    sale.results().states().into_iter().map(letter).collect()
}

/// What the second envelope's answer must come to: the name of the case, the answer, the exit code, the states.
type Case = (&'static str, Answer, i32, &'static str);

/// Answers the second envelope as each case says, judges the run, and runs once more.
fn judge(cases: impl IntoIterator<Item = Case>) {
    for (name, answer, code, expected) in cases {
        let _case = telling(format!("case: {name}"));
        let gateway = Gateway::answering([Answer::Accept, answer]);
        let sale = in_envelopes_of_four().delivery("timeout: 1s").through(&gateway).write();
        sale.run(&[]).exits(code);
        assert_eq!(states(&sale), expected, "{name}");
        what_is_done_is_never_sent_again(&gateway, &sale);
    }
}

/// Runs until nothing is left: what was accepted, rejected or in doubt stays that, and goes out no more.
fn what_is_done_is_never_sent_again(gateway: &Gateway, sale: &Folder) {
    let before = states(sale);
    let sent = gateway.phones().len();
    sale.run(&[]);
    let after = states(sale);
    let planned = (2..).zip(before.chars()).filter(|(_, state)| *state == 'p').map(|(row, _)| phone(row));
    assert_eq!(gateway.phones()[sent..], planned.collect::<Vec<_>>(), "only who is planned: {before}");
    let kept = before.chars().zip(after.chars()).filter(|(before, _)| *before != 'p');
    assert!(kept.clone().all(|(before, after)| before == after), "{before} became {after}");
    assert!(!after.contains('p'), "{after}");
}
