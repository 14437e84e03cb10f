//! Gateway answers over HTTP: what each one proves, the resulting states, the exit code, and whether the run continues.

mod client;
mod connections;
mod envelopes;
mod items;
mod scripted_gateway;
mod sockets;
mod statuses;
mod unreachable;
mod unusual_answers;

use crate::support::{Answer, Draft, Folder, Gateway, campaign, note_on_failure, phone};

/// The number of recipients of each campaign, in envelopes of 1, 4, 4 and 1.
const RECIPIENTS: usize = 10;

/// A campaign whose second envelope has rows 3 to 6.
fn in_envelopes_of_four() -> Draft {
    campaign().to(RECIPIENTS).batches_of(4).one_at_a_time()
}

/// The states of the results, one letter for each row.
fn states(sale: &Folder) -> String {
    let letter = |state: &str| match state {
        "accepted" => 'a',
        "queued" => 'q',
        "in_doubt" => 'd',
        "planned" => 'p',
        "rejected" => 'r',
        other => panic!("unexpected state {other}"),
    };
    sale.results().states().into_iter().map(letter).collect()
}

/// The name of the case, the answer to the second envelope, the expected exit code, and the expected states.
type Case = (&'static str, Answer, i32, &'static str);

/// Runs each case with its answer to the second envelope, checks the results, and runs once more.
fn check_cases(cases: impl IntoIterator<Item = Case>) {
    for (name, answer, code, expected) in cases {
        let _case = note_on_failure(format!("case: {name}"));
        let gateway = Gateway::answering([Answer::Accept, answer]);
        let sale = in_envelopes_of_four().delivery("timeout: 1s").through(&gateway).write();
        sale.run(&[]).exits(code);
        assert_eq!(states(&sale), expected, "{name}");
        assert_outcomes_are_final(&gateway, &sale);
    }
}

/// Runs again: accepted, rejected and doubtful rows keep their states and are not resent.
fn assert_outcomes_are_final(gateway: &Gateway, sale: &Folder) {
    let before = states(sale);
    let sent = gateway.phones().len();
    sale.run(&[]);
    let after = states(sale);
    let planned = (2..).zip(before.chars()).filter(|(_, state)| *state == 'p').map(|(row, _)| phone(row));
    assert_eq!(gateway.phones()[sent..], planned.collect::<Vec<_>>(), "only planned rows are sent: {before}");
    let final_states = before.chars().zip(after.chars()).filter(|(before, _)| *before != 'p');
    assert!(final_states.clone().all(|(before, after)| before == after), "{before} became {after}");
    assert!(!after.contains('p'), "{after}");
}
