//! The bytes that ledgers hold: what was written once has to mean the same for ever.
//!
//! They stand here as they are on disks. A line whose bytes would have to change means that every ledger out
//! there would be read wrongly, with checksums that agree; a new variant gets a new line, behind the others.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::domain::{Chain, ReportedChannel};
use crate::ledger::pack::{pack, pack_outcomes, unpack, unpack_outcomes};
use crate::ledger::{Author, Change};

/// More bytes than any variant needs whose values are all zero, empty or absent.
const ZEROS: [u8; 16] = [0; 16];

/// Fails unless these are all the variants of a type, in their order, with their bytes.
fn are_stored<T: Serialize + DeserializeOwned + PartialEq + Debug>(variants: &[(T, &[u8])]) {
    for (position, (value, bytes)) in variants.iter().enumerate() {
        assert_eq!(usize::from(bytes[0]), position, "{value:?} stands at another position");
        assert_eq!(postcard::to_stdvec(value).unwrap(), *bytes, "{value:?} is written otherwise");
        assert_eq!(postcard::from_bytes::<T>(bytes).as_ref(), Ok(value), "{bytes:?} is read otherwise");
    }
    let mut next = ZEROS;
    next[0] = u8::try_from(variants.len()).unwrap();
    assert!(postcard::from_bytes::<T>(&next).is_err(), "a variant has no line here");
}

fn person() -> Author {
    Author::Person("olena".into())
}

fn policy() -> Author {
    Author::Policy("on_in_doubt: assume_sent".into())
}

#[test]
fn an_identifier_of_the_gateway_has_the_bytes_that_ledgers_hold() {
    are_stored::<MsgId>(&[(MsgId::Number(300), b"\x00\xac\x02"), (MsgId::Text("ab-7".into()), b"\x01\x04ab-7")]);
}

#[test]
fn an_author_has_the_bytes_that_ledgers_hold() {
    are_stored::<Author>(&[(person(), b"\x00\x05olena"), (policy(), b"\x01\x18on_in_doubt: assume_sent")]);
}

#[test]
fn each_outcome_has_the_bytes_that_ledgers_hold() {
    let accepted = Outcome::Accepted { msg_id: Some(MsgId::Number(300)), parts: Some(2), answer: None };
    are_stored::<Outcome>(&[
        (accepted, b"\x00\x01\x00\xac\x02\x01\x02\x00"),
        (Outcome::Queued { request_id: "req-1".into() }, b"\x01\x05req-1"),
        (Outcome::Rejected { error: "No route".into() }, b"\x02\x08No route"),
        (Outcome::NotSent { reason: "refused".into() }, b"\x03\x07refused"),
        (Outcome::InDoubt { reason: "silence".into() }, b"\x04\x07silence"),
    ]);
}

#[test]
fn each_change_has_the_bytes_that_ledgers_hold() {
    let found = Change::Found { status: "Delivered".into(), msg_id: Some(MsgId::Text("ab-7".into())), channel: None };
    let found_on = |channel| {
        let channel = ReportedChannel::from_word(channel);
        Change::Found { status: "EXPIRED".into(), msg_id: None, channel }
    };
    let why = Some("called".to_owned());
    are_stored::<Change>(&[
        (found, b"\x00\x09Delivered\x01\x01\x04ab-7"),
        (Change::NotFound { asked: 3 }, b"\x01\x03"),
        (Change::Unresolved { asked: 300 }, b"\x02\xac\x02"),
        (Change::AssumedSent { by: person(), why: None }, b"\x03\x00\x05olena\x00"),
        (Change::NotSent { by: policy(), why: None }, b"\x04\x01\x18on_in_doubt: assume_sent\x00"),
        (Change::SendAgain { by: person(), why }, b"\x05\x00\x05olena\x01\x06called"),
        (Change::Retry { by: person(), order: 2 }, b"\x06\x00\x05olena\x02"),
        (found_on("viber"), b"\x07\x07EXPIRED\x00\x05viber"),
    ]);
}

#[test]
fn the_rows_and_outcomes_of_an_envelope_have_the_bytes_that_ledgers_hold() {
    let rows = [SentRow { row: Row::new(300), to: phone(2).into(), digest: *b"digested", chain: Chain::UNKNOWN }];
    let packed = b"\x01\xac\x02\xd2\xa2\x90\xbd\x89\x0bdigested";
    assert_eq!(pack(&rows).unwrap(), packed);
    assert_eq!(unpack::<SentRow>(packed).unwrap(), rows);
    let outcomes = [doubt(), doubt(), not_sent()];
    let packed = b"\x02\x02\x04\x07silence\x01\x03\x07refused";
    assert_eq!(pack_outcomes(&outcomes).unwrap(), packed);
    assert_eq!(unpack_outcomes(packed).unwrap(), outcomes);
}
