//! The types of an operation.

/// The `type` of an operation (contract 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Balance,
    CallOtp,
    Hlr,
    Pipeline,
    Rcs,
    RcsSms,
    RcsViberSms,
    Sender,
    Sms,
    Status,
    Telegram,
    TemplateCreate,
    TemplateDelete,
    TemplateList,
    ViberTemplateCreate,
    ViberTemplateDelete,
    ViberTemplateList,
    Viber,
    ViberSms,
    Voice,
}

/// Every type with its word on the wire, in the order of the discriminants.
pub(crate) const KINDS: [(Kind, &str); 20] = [
    (Kind::Balance, "balance"),
    (Kind::CallOtp, "call/otp"),
    (Kind::Hlr, "hlr"),
    (Kind::Pipeline, "pipeline"),
    (Kind::Rcs, "rcs"),
    (Kind::RcsSms, "rcs+sms"),
    (Kind::RcsViberSms, "rcs+viber+sms"),
    (Kind::Sender, "sender"),
    (Kind::Sms, "sms"),
    (Kind::Status, "status"),
    (Kind::Telegram, "telegram"),
    (Kind::TemplateCreate, "template/create"),
    (Kind::TemplateDelete, "template/delete"),
    (Kind::TemplateList, "template/list"),
    (Kind::ViberTemplateCreate, "template/viber/create"),
    (Kind::ViberTemplateDelete, "template/viber/delete"),
    (Kind::ViberTemplateList, "template/viber/list"),
    (Kind::Viber, "viber"),
    (Kind::ViberSms, "viber+sms"),
    (Kind::Voice, "voice"),
];

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
        for (place, (kind, _)) in KINDS.into_iter().enumerate() {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            assert_eq!(kind as usize, place);
        }
        assert_eq!(Kind::from_name("whatsapp"), None);
        assert_eq!(Kind::from_name("SMS"), None);
    }
}
