//! Stored bytes: data that was written once must keep its meaning forever.
//!
//! The bytes are literals, exactly as existing ledgers have them on disk. If the bytes of a line had to change,
//! existing ledgers would be misread without a checksum error. A new variant gets a new line at the end.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::encoding::{pack_list, pack_outcomes, unpack_list, unpack_outcomes};
use crate::{Author, RowChange};
use campaign_core::domain::{Chain, Channel, ReportedChannel, Status};

/// More zero bytes than the default value of any variant needs.
const ZEROS: [u8; 16] = [0; 16];

/// Fails unless these are all variants of a type in order, with their bytes.
fn assert_stored_bytes<T: Serialize + DeserializeOwned + PartialEq + Debug>(variants: &[(T, &[u8])]) {
    for (position, (value, bytes)) in variants.iter().enumerate() {
        assert_eq!(usize::from(bytes[0]), position, "{value:?} is at another position");
        assert_eq!(postcard::to_stdvec(value).unwrap(), *bytes, "{value:?} is encoded differently");
        assert_eq!(postcard::from_bytes::<T>(bytes).as_ref(), Ok(value), "{bytes:?} is decoded differently");
    }
    let mut next = ZEROS;
    next[0] = u8::try_from(variants.len()).unwrap();
    assert!(postcard::from_bytes::<T>(&next).is_err(), "a variant is missing here");
}

fn person() -> Author {
    Author::Person("olena".into())
}

fn policy_author() -> Author {
    Author::Policy("on_in_doubt: assume_sent".into())
}

#[test]
fn gateway_identifier_encoding_is_stable() {
    assert_stored_bytes::<GatewayMessageId>(&[
        (GatewayMessageId::Number(300), b"\x00\xac\x02"),
        (GatewayMessageId::Text("ab-7".into()), b"\x01\x04ab-7"),
    ]);
}

#[test]
fn channel_encoding_is_stable() {
    assert_stored_bytes::<Channel>(&[
        (Channel::Sms, b"\x00"),
        (Channel::Viber, b"\x01"),
        (Channel::Rcs, b"\x02"),
        (Channel::Telegram, b"\x03"),
        (Channel::Voice, b"\x04"),
        (Channel::Whatsapp, b"\x05"),
        (Channel::Hlr, b"\x06"),
        (Channel::CallOtp, b"\x07"),
    ]);
}

#[test]
fn status_encoding_is_stable() {
    assert_stored_bytes::<Status>(&[
        (Status::Queued, b"\x00"),
        (Status::Routing, b"\x01"),
        (Status::Accepted, b"\x02"),
        (Status::Delivered, b"\x03"),
        (Status::PartiallyDelivered, b"\x04"),
        (Status::Read, b"\x05"),
        (Status::Replied, b"\x06"),
        (Status::Expired, b"\x07"),
        (Status::Undeliverable, b"\x08"),
        (Status::Rejected, b"\x09"),
        (Status::Deleted, b"\x0a"),
        (Status::Filtered, b"\x0b"),
        (Status::InvalidDestination, b"\x0c"),
        (Status::InvalidSource, b"\x0d"),
        (Status::NoRoute, b"\x0e"),
        (Status::SimFull, b"\x0f"),
        (Status::Unknown, b"\x10"),
        (Status::Other("NEW".into()), b"\x11\x03NEW"),
    ]);
}

#[test]
fn author_encoding_is_stable() {
    assert_stored_bytes::<Author>(&[
        (person(), b"\x00\x05olena"),
        (policy_author(), b"\x01\x18on_in_doubt: assume_sent"),
    ]);
}

#[test]
fn outcome_encoding_is_stable() {
    let accepted =
        OperationOutcome::Accepted { msg_id: Some(GatewayMessageId::Number(300)), parts: Some(2), answer: None };
    assert_stored_bytes::<OperationOutcome>(&[
        (accepted, b"\x00\x01\x00\xac\x02\x01\x02\x00"),
        (OperationOutcome::Queued { request_id: "req-1".into() }, b"\x01\x05req-1"),
        (OperationOutcome::Rejected { error: "No route".into() }, b"\x02\x08No route"),
        (OperationOutcome::NotSent { reason: "refused".into() }, b"\x03\x07refused"),
        (OperationOutcome::InDoubt { reason: "silence".into() }, b"\x04\x07silence"),
    ]);
}

#[test]
fn change_encoding_is_stable() {
    let found = RowChange::Found {
        status: "Delivered".into(),
        msg_id: Some(GatewayMessageId::Text("ab-7".into())),
        channel: None,
    };
    let found_on = |channel| {
        let channel = ReportedChannel::parse(channel);
        RowChange::Found { status: "EXPIRED".into(), msg_id: None, channel }
    };
    let reason = Some("called".to_owned());
    assert_stored_bytes::<RowChange>(&[
        (found, b"\x00\x09Delivered\x01\x01\x04ab-7"),
        (RowChange::NotFound { asked: 3 }, b"\x01\x03"),
        (RowChange::Unresolved { asked: 300 }, b"\x02\xac\x02"),
        (RowChange::AssumedSent { by: person(), why: None }, b"\x03\x00\x05olena\x00"),
        (RowChange::NotSent { by: policy_author(), why: None }, b"\x04\x01\x18on_in_doubt: assume_sent\x00"),
        (RowChange::SendAgain { by: person(), why: reason }, b"\x05\x00\x05olena\x01\x06called"),
        (RowChange::Retry { by: person(), order: 2 }, b"\x06\x00\x05olena\x02"),
        (found_on("viber"), b"\x07\x07EXPIRED\x00\x05viber"),
    ]);
}

#[test]
fn envelope_row_and_outcome_encoding_is_stable() {
    let rows = [SentRow { row: Row::new(300), to: phone(2).into(), digest: *b"digested", chain: Chain::UNKNOWN }];
    let packed = b"\x01\xac\x02\xd2\xa2\x90\xbd\x89\x0bdigested";
    assert_eq!(pack_list(&rows).unwrap(), packed);
    assert_eq!(unpack_list::<SentRow>(packed).unwrap(), rows);
    let outcomes = [in_doubt(), in_doubt(), not_sent()];
    let packed = b"\x02\x02\x04\x07silence\x01\x03\x07refused";
    assert_eq!(pack_outcomes(&outcomes).unwrap(), packed);
    assert_eq!(unpack_outcomes(packed).unwrap(), outcomes);
}
