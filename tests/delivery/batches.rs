//! Envelope sizes: warm-up, batch size and rate.

use crate::support::{Answer, Gateway, SandboxProcess, campaign, phone};

#[test]
fn warm_up_grows_to_5_then_20_then_50_then_the_batch_size() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(376).through(&sandbox).batches_of(100).one_at_a_time().write();
    sale.run(&[]).exits(0);
    assert_eq!(sandbox.envelopes(), [1, 5, 20, 50, 100, 100, 100]);
}

#[test]
fn rows_are_sent_in_file_order() {
    let gateway = Gateway::accepting();
    let order: Vec<u64> = (0..60).map(|index| phone(2 + index * 7 % 60)).collect();
    let list = order.iter().fold("phone,name\n".to_owned(), |list, phone| format!("{list}{phone},P\n"));
    let sale = campaign().with_list(&list).through(&gateway).batches_of(7).one_at_a_time().write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), order);
}

#[test]
fn envelope_never_exceeds_one_second_of_the_rate() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(7).through(&gateway).delivery("rate: 3/s").batches_of(50).write();
    sale.run(&[]).exits(0);
    assert!(gateway.sends().iter().all(|request| request.phones().len() <= 3));
}

#[test]
fn resumed_run_begins_with_another_warm_up() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(40).through(&gateway).batches_of(20).one_at_a_time().write();
    sale.run(&["--limit", "20"]).exits(0);
    sale.run(&[]).exits(0);
    let sizes: Vec<usize> = gateway.sends().iter().map(|request| request.phones().len()).collect();
    assert_eq!(sizes, [1, 5, 14, 1, 5, 14]);
}

#[test]
fn rejected_sender_name_stops_the_run_after_four_messages() {
    let gateway =
        Gateway::always(Answer::items(|operation| crate::support::rejected(operation, "Error in Alpha-name")));
    let sale = campaign().to(500).through(&gateway).write();
    sale.run(&[]).exits(5).says("Error in Alpha-name");
    assert_eq!(gateway.phones(), [2, 3, 4, 5].map(phone));
    assert!(gateway.sends().iter().all(|request| request.phones().len() == 1));
    assert_eq!(
        sale.results().counts().into_iter().collect::<Vec<_>>(),
        [("planned".into(), 496), ("rejected".into(), 4)]
    );
}

#[test]
fn list_is_sent_if_only_its_first_numbers_are_rejected() {
    for first in [1, 3] {
        let gateway = Gateway::always(Answer::items(move |operation| match operation["phone"].as_u64() {
            Some(number) if number < phone(2 + first) => crate::support::rejected(operation, "No route"),
            _ => crate::support::accepted(operation),
        }));
        let sale = campaign().to(20).through(&gateway).write();
        sale.run(&[]).exits(3);
        assert_eq!(gateway.phones(), (2..22).map(phone).collect::<Vec<_>>());
        let sizes: Vec<usize> = gateway.sends().iter().map(|request| request.phones().len()).collect();
        assert!(sizes[..=first].iter().all(|size| *size == 1) && sizes[first + 1] == 5, "{sizes:?}");
    }
}
