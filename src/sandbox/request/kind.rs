//! The types of an operation.

/// The types with their words on the wire.
macro_rules! kinds {
    ($($kind:ident = $word:literal;)*) => {
        /// The `type` of an operation (contract 2.1).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($kind),* }

        /// Every type with its word, in the order of the discriminants.
        pub(crate) const KINDS: &[(Kind, &str)] = &[$((Kind::$kind, $word)),*];
    };
}

kinds! {
    Balance = "balance";
    CallOtp = "call/otp";
    Hlr = "hlr";
    Pipeline = "pipeline";
    Rcs = "rcs";
    RcsSms = "rcs+sms";
    RcsViberSms = "rcs+viber+sms";
    Sender = "sender";
    Sms = "sms";
    Status = "status";
    Telegram = "telegram";
    TemplateCreate = "template/create";
    TemplateDelete = "template/delete";
    TemplateList = "template/list";
    ViberTemplateCreate = "template/viber/create";
    ViberTemplateDelete = "template/viber/delete";
    ViberTemplateList = "template/viber/list";
    Viber = "viber";
    ViberSms = "viber+sms";
    Voice = "voice";
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
        match self {
            Kind::Balance | Kind::Sender | Kind::Status => false,
            Kind::TemplateCreate | Kind::TemplateDelete | Kind::TemplateList => false,
            Kind::ViberTemplateCreate | Kind::ViberTemplateDelete | Kind::ViberTemplateList => false,
            Kind::CallOtp | Kind::Hlr | Kind::Pipeline | Kind::Rcs | Kind::RcsSms | Kind::RcsViberSms => true,
            Kind::Sms | Kind::Telegram | Kind::Viber | Kind::ViberSms | Kind::Voice => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_contract_is_known_and_whatsapp_is_none() {
        for (place, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(Kind::from_name(kind.name()), Some(*kind));
            assert_eq!(*kind as usize, place);
        }
        assert_eq!(Kind::from_name("whatsapp"), None);
        assert_eq!(Kind::from_name("SMS"), None);
    }
}
