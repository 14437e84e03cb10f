//! The types of an operation.

use crate::domain::Channel;

/// The types with their words on the wire, and the channels that they try in this order.
macro_rules! kinds {
    ($($kind:ident = $word:literal $(tries [$($channel:ident),*])?;)*) => {
        /// The `type` of an operation (contract 2.1).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($kind),* }

        /// Every type with its word, in the order of the discriminants.
        pub(crate) const KINDS: &[(Kind, &str)] = &[$((Kind::$kind, $word)),*];

        impl Kind {
            /// The channels that it tries, in this order; a pipeline names its own.
            pub(crate) fn channels(self) -> &'static [Channel] {
                match self {
                    $(Kind::$kind => &[$($(Channel::$channel),*)?],)*
                }
            }
        }
    };
}

kinds! {
    Balance = "balance";
    CallOtp = "call/otp" tries [CallOtp];
    Hlr = "hlr" tries [Hlr];
    Pipeline = "pipeline";
    Rcs = "rcs" tries [Rcs];
    RcsSms = "rcs+sms" tries [Rcs, Sms];
    RcsViberSms = "rcs+viber+sms" tries [Rcs, Viber, Sms];
    Sender = "sender";
    Sms = "sms" tries [Sms];
    Status = "status";
    Telegram = "telegram" tries [Telegram];
    TemplateCreate = "template/create";
    TemplateDelete = "template/delete";
    TemplateList = "template/list";
    ViberTemplateCreate = "template/viber/create";
    ViberTemplateDelete = "template/viber/delete";
    ViberTemplateList = "template/viber/list";
    Viber = "viber" tries [Viber];
    ViberSms = "viber+sms" tries [Viber, Sms];
    Voice = "voice" tries [Voice];
}

impl Kind {
    /// The word on the wire.
    pub(crate) fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The type of that name; nothing for `whatsapp`, which is none (contract 2.1).
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Whether the operation is a message, so that it may have a `hook` (contract 6.3).
    pub(crate) fn is_message(self) -> bool {
        self.reaches_a_phone() && !matches!(self, Kind::CallOtp | Kind::Hlr)
    }

    /// Whether the operation reaches for a phone, so that it leaves a message with a status behind.
    pub(crate) fn reaches_a_phone(self) -> bool {
        self == Kind::Pipeline || !self.channels().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_type_tries_the_channels_of_the_client() {
        for kind in crate::domain::OperationKind::ALL {
            let known = Kind::from_name(kind.name()).map(Kind::channels);
            assert_eq!(known, Some(kind.channels()), "{kind}");
        }
    }

    #[test]
    fn contract_types_are_known_but_whatsapp_is_not() {
        for (place, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(Kind::from_name(kind.name()), Some(*kind));
            assert_eq!(*kind as usize, place);
        }
        assert_eq!(Kind::from_name("whatsapp"), None);
        assert_eq!(Kind::from_name("SMS"), None);
    }
}
