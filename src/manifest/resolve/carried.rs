//! What an operation cannot carry (contract 4.3), so that nothing is dropped in silence.

use crate::domain::{Channel, OperationKind};

/// Why `kind` has no place for a key of a channel; nothing if it has one.
pub(super) fn not_carried(kind: OperationKind, channel: Channel, key: &str) -> Option<&'static str> {
    use OperationKind as K;
    let combined = matches!(kind, K::ViberSms | K::RcsSms | K::RcsViberSms);
    match (channel, key) {
        (_, "lifetime" | "short_link") if kind == K::Pipeline => Some("its stages have no such field"),
        (Channel::Viber | Channel::Rcs, "image" | "link" | "button" | "carousel") if kind == K::Pipeline => {
            Some("its stages carry only a signature and a text")
        }
        (Channel::Voice, "dtmf") if kind == K::Pipeline => Some("its voice stage has no such field"),
        (Channel::Sms, "lifetime") if combined => Some("it has no field for the lifetime of the SMS"),
        (Channel::Viber, "carousel") if combined => Some("it has no field for the cards"),
        (Channel::Viber, "lifetime") if kind == K::RcsViberSms => Some("it has no field for the lifetime of Viber"),
        _ => None,
    }
}

/// The properties that an operation already has, where `fields` of that channel are written.
pub(super) fn known_fields(kind: OperationKind, channel: Channel) -> Vec<&'static str> {
    if kind == OperationKind::Pipeline {
        return stage_fields(channel).to_vec();
    }
    let mut fields = vec!["type", "id", "phone", "hook"];
    fields.extend_from_slice(own_fields(kind));
    fields
}

fn stage_fields(channel: Channel) -> &'static [&'static str] {
    match channel {
        Channel::Sms | Channel::Rcs | Channel::Whatsapp => &["message", "signature"],
        Channel::Viber => &["message", "signature", "type"],
        Channel::Telegram => &["message"],
        Channel::Voice => &["message", "gender", "language", "name"],
        Channel::Hlr | Channel::CallOtp => &[],
    }
}

fn own_fields(kind: OperationKind) -> &'static [&'static str] {
    match kind {
        OperationKind::Sms => &["sms_signature", "sms_message", "sms_lifetime", "short_link"],
        OperationKind::Viber => &[
            "viber_type",
            "viber_signature",
            "viber_message",
            "viber_image",
            "viber_link",
            "viber_button",
            "viber_carousel",
            "viber_lifetime",
            "short_link",
        ],
        OperationKind::Rcs => {
            &["rcs_message", "rcs_signature", "rcs_image", "rcs_button", "rcs_link", "rcs_lifetime", "short_link"]
        }
        OperationKind::Telegram => &["message", "telegram_lifetime"],
        OperationKind::Voice => &["message", "voice", "dtmf"],
        OperationKind::ViberSms => &[
            "sms_signature",
            "sms_message",
            "viber_type",
            "viber_signature",
            "viber_message",
            "viber_image",
            "viber_link",
            "viber_button",
            "viber_lifetime",
            "short_link",
        ],
        OperationKind::RcsSms => &[
            "rcs_message",
            "rcs_signature",
            "rcs_image",
            "rcs_button",
            "rcs_link",
            "rcs_lifetime",
            "sms_signature",
            "sms_message",
            "short_link",
        ],
        OperationKind::RcsViberSms => &[
            "rcs_message",
            "rcs_signature",
            "rcs_image",
            "rcs_button",
            "rcs_link",
            "rcs_lifetime",
            "sms_signature",
            "sms_message",
            "viber_type",
            "viber_signature",
            "viber_message",
            "viber_image",
            "viber_link",
            "viber_button",
            "short_link",
        ],
        OperationKind::Pipeline | OperationKind::Hlr | OperationKind::CallOtp => &[],
    }
}
