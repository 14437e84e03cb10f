//! Spellings of phone numbers: all spellings count as one recipient, and damaged numbers are invalid.

use crate::support::{Gateway, campaign};

/// One number as people, address books and spreadsheets write it.
const ONE_PERSON: [&str; 12] = [
    "+380 (50) 123-45-67",
    "00380501234567",
    "0501234567",
    "380501234567.0",
    "'380501234567",
    "\"=\"\"380501234567\"\"\"",
    "tel:+380-50-123-45-67",
    "٣٨٠٥٠١٢٣٤٥٦٧",
    "+38\u{a0}050\u{a0}123\u{a0}45\u{a0}67",
    "３８０５０１２３４５６７",
    "050\u{2011}123\u{2013}45\u{2212}67",
    "8 050 123 45 67",
];

#[test]
fn one_number_in_many_formats_gets_one_message() {
    let gateway = Gateway::accepting();
    let people: String = ONE_PERSON.iter().map(|spelling| format!("{spelling},Olena\n")).collect();
    let draft = campaign().with_list(&format!("phone,name\n{people}")).recipients("region: UA");
    let sale = draft.through(&gateway).write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [380_501_234_567]);
    let results = sale.results();
    assert_eq!(results.states()[0], "accepted");
    assert!(results.states()[1..].iter().all(|state| *state == "skipped"), "{:?}", results.states());
    assert!(results.column("reason")[1..].iter().all(|reason| *reason == "duplicate number"));
    assert!(results.column("to").iter().all(|number| *number == "380501234567"));
}

#[test]
fn cell_that_is_not_a_number_is_invalid_with_a_reason() {
    let gateway = Gateway::accepting();
    let list = "phone,name\n380501234567,A\n3.80501E+11,B\n\"3,80501E+11\",C\n\"0501234567, 0671234567\",D\n\
                0501234567 або 0671234567,E\n";
    let draft = campaign().with_list(list).recipients("region: UA").recipients("max_invalid: 90%");
    let sale = draft.through(&gateway).write();
    sale.run(&[]).exits(3);
    assert_eq!(gateway.phones(), [380_501_234_567]);
    let results = sale.results();
    let reasons = results.column("reason");
    for (reason, words) in
        reasons[1..].iter().zip(["last digits are lost", "last digits are lost", "more than one", "more than one"])
    {
        assert!(reason.contains(words), "{reason}");
    }
}
