//! One item of an envelope's `data`.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Channel, MessageContent, MessageId, Phone};

/// Makes the kinds from their list: each with its word, and the channels that it tries in this order.
macro_rules! operations {
    ($($kind:ident = $word:literal tries [$($channel:ident),*];)*) => {
        /// The `type` of an operation that is sent per recipient (contract 2.1 and 4.3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum OperationKind {
            $(#[doc = concat!("`", $word, "`")] #[serde(rename = $word)] $kind,)*
        }

        impl OperationKind {
            /// Every kind.
            pub const ALL: [OperationKind; [$($word),*].len()] = [$(OperationKind::$kind),*];

            /// The value of `type` on the wire.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(OperationKind::$kind => $word,)*
                }
            }

            /// The channels that it tries, in this order; none of a pipeline, which names its own.
            #[must_use]
            pub fn channels(self) -> &'static [Channel] {
                match self {
                    $(OperationKind::$kind => &[$(Channel::$channel),*],)*
                }
            }
        }
    };
}

operations! {
    Sms = "sms" tries [Sms];
    Viber = "viber" tries [Viber];
    Rcs = "rcs" tries [Rcs];
    Voice = "voice" tries [Voice];
    Telegram = "telegram" tries [Telegram];
    ViberSms = "viber+sms" tries [Viber, Sms];
    RcsSms = "rcs+sms" tries [Rcs, Sms];
    RcsViberSms = "rcs+viber+sms" tries [Rcs, Viber, Sms];
    Pipeline = "pipeline" tries [];
    Hlr = "hlr" tries [Hlr];
    CallOtp = "call/otp" tries [CallOtp];
}

impl OperationKind {
    /// The operation that carries these channels, tried in this order.
    ///
    /// What has no type of its own is a `pipeline`; WhatsApp is one even alone (contract 2.1).
    #[must_use]
    pub fn for_channels(channels: &[Channel]) -> Self {
        Self::ALL.into_iter().find(|kind| kind.channels() == channels).unwrap_or(OperationKind::Pipeline)
    }

    /// Whether the gateway promises a webhook for each message (contract 6.3); of a pipeline it promises less (6.4 and 6.5).
    #[must_use]
    pub fn promises_webhooks(self) -> bool {
        match self {
            Self::Viber | Self::Rcs | Self::RcsSms | Self::RcsViberSms => true,
            Self::Sms | Self::Voice | Self::Telegram | Self::ViberSms | Self::Pipeline | Self::Hlr | Self::CallOtp => {
                false
            }
        }
    }

    /// Whether the answer is a result of its own instead of a send result (contract 4.3 `hlr`, `call/otp`).
    #[must_use]
    pub fn is_single(self) -> bool {
        self.channels().iter().any(|channel| channel.facts().single)
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
    pub content: MessageContent<Cow<'a, str>>,
}
