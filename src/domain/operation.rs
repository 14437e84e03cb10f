//! One item of an envelope's `data`.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Channel, Content, MessageId, Phone};

/// The `type` of an operation that is sent per recipient (contract 2.1 and 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OperationKind {
    /// `sms`
    #[serde(rename = "sms")]
    Sms,
    /// `viber`
    #[serde(rename = "viber")]
    Viber,
    /// `rcs`
    #[serde(rename = "rcs")]
    Rcs,
    /// `voice`
    #[serde(rename = "voice")]
    Voice,
    /// `telegram`
    #[serde(rename = "telegram")]
    Telegram,
    /// `viber+sms`
    #[serde(rename = "viber+sms")]
    ViberSms,
    /// `rcs+sms`
    #[serde(rename = "rcs+sms")]
    RcsSms,
    /// `rcs+viber+sms`
    #[serde(rename = "rcs+viber+sms")]
    RcsViberSms,
    /// `pipeline`
    #[serde(rename = "pipeline")]
    Pipeline,
    /// `hlr`
    #[serde(rename = "hlr")]
    Hlr,
    /// `call/otp`
    #[serde(rename = "call/otp")]
    CallOtp,
}

impl OperationKind {
    /// Every kind.
    pub const ALL: [OperationKind; 11] = [
        OperationKind::Sms,
        OperationKind::Viber,
        OperationKind::Rcs,
        OperationKind::Voice,
        OperationKind::Telegram,
        OperationKind::ViberSms,
        OperationKind::RcsSms,
        OperationKind::RcsViberSms,
        OperationKind::Pipeline,
        OperationKind::Hlr,
        OperationKind::CallOtp,
    ];

    /// The value of `type` on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Sms => "sms",
            OperationKind::Viber => "viber",
            OperationKind::Rcs => "rcs",
            OperationKind::Voice => "voice",
            OperationKind::Telegram => "telegram",
            OperationKind::ViberSms => "viber+sms",
            OperationKind::RcsSms => "rcs+sms",
            OperationKind::RcsViberSms => "rcs+viber+sms",
            OperationKind::Pipeline => "pipeline",
            OperationKind::Hlr => "hlr",
            OperationKind::CallOtp => "call/otp",
        }
    }

    /// The operation that carries these channels, tried in this order.
    ///
    /// One channel is its own type, three orders have a combined type, everything else is a
    /// `pipeline`; WhatsApp is one even alone (contract 2.1).
    #[must_use]
    pub fn of(channels: &[Channel]) -> Self {
        match channels {
            [Channel::Sms] => OperationKind::Sms,
            [Channel::Viber] => OperationKind::Viber,
            [Channel::Rcs] => OperationKind::Rcs,
            [Channel::Voice] => OperationKind::Voice,
            [Channel::Telegram] => OperationKind::Telegram,
            [Channel::Hlr] => OperationKind::Hlr,
            [Channel::CallOtp] => OperationKind::CallOtp,
            [Channel::Viber, Channel::Sms] => OperationKind::ViberSms,
            [Channel::Rcs, Channel::Sms] => OperationKind::RcsSms,
            [Channel::Rcs, Channel::Viber, Channel::Sms] => OperationKind::RcsViberSms,
            _ => OperationKind::Pipeline,
        }
    }

    /// Whether the answer is a result of its own instead of a send result (contract 4.3 `hlr`, `call/otp`).
    #[must_use]
    pub fn is_inquiry(self) -> bool {
        matches!(self, OperationKind::Hlr | OperationKind::CallOtp)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One message to one recipient, ready to be encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation<'a> {
    /// Our identifier.
    pub id: MessageId,
    /// The recipient.
    pub phone: Phone,
    /// What is said.
    pub content: Content<Cow<'a, str>>,
}
