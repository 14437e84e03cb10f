//! The keys of one channel become a stage.

use std::str::FromStr;

use super::Resolver;
use super::channels::Slot;
use crate::domain::{Channel, OperationKind, Rcs, Sms, Stage, Telegram, Text, Voice, Whatsapp};
use crate::finding::Finding;
use crate::manifest::value::Seconds;

impl Resolver<'_> {
    /// The stage of a channel in an operation of `kind`; nothing where a key is missing or wrong.
    pub(super) fn stage(&mut self, kind: Option<OperationKind>, slot: &Slot<'_>) -> Option<Stage<Text>> {
        match slot.channel {
            Channel::Sms => self.sms(slot),
            Channel::Viber => self.viber(kind, slot).map(Stage::Viber),
            Channel::Rcs => self.rcs(kind, slot),
            Channel::Telegram => {
                let message = self.slot_text(slot, "message");
                let fields = self.extra(slot);
                Some(Stage::Telegram(Telegram { message: message?, lifetime: lifetime(slot), fields }))
            }
            Channel::Voice => self.voice(kind, slot),
            Channel::Whatsapp => {
                let (signature, message) = (self.slot_text(slot, "signature"), self.slot_text(slot, "message"));
                let fields = self.extra(slot);
                Some(Stage::Whatsapp(Whatsapp { signature: signature?, message: message?, fields }))
            }
            Channel::Hlr => Some(Stage::Hlr { fields: self.extra(slot) }),
            Channel::CallOtp => Some(Stage::CallOtp { fields: self.extra(slot) }),
        }
    }

    /// The text under a key of a channel.
    pub(super) fn slot_text(&mut self, slot: &Slot<'_>, key: &str) -> Option<Text> {
        let entry = slot.section.entry(key)?;
        self.text(format!("{}.{key}", slot.path), entry)
    }

    /// Tells a key that is required by what the channel or its operation is.
    pub(super) fn require(&mut self, slot: &Slot<'_>, (key, why): (&str, &str)) {
        if slot.section.entry(key).is_none() {
            let finding = Finding::error("missing-key", format!("`{}` needs `{key}`", slot.channel));
            self.report.at(slot.name_span, finding.help(format!("add `{key}`: {why}")));
        }
    }

    fn sms(&mut self, slot: &Slot<'_>) -> Option<Stage<Text>> {
        let (signature, message) = (self.slot_text(slot, "signature"), self.slot_text(slot, "message"));
        let fields = self.extra(slot);
        Some(Stage::Sms(Sms {
            signature: signature?,
            message: message?,
            lifetime: lifetime(slot),
            short_link: typed(slot, "short_link"),
            max_parts: slot.section.parsed("max_parts")?,
            fields,
        }))
    }

    fn rcs(&mut self, kind: Option<OperationKind>, slot: &Slot<'_>) -> Option<Stage<Text>> {
        if kind.is_some_and(|kind| kind != OperationKind::Pipeline) {
            for key in ["image", "button", "link"] {
                self.require(slot, (key, "outside a pipeline an RCS message has an image and a button (contract 4.3)"));
            }
        }
        let (signature, message) = (self.slot_text(slot, "signature"), self.slot_text(slot, "message"));
        let (image, button, link) =
            (self.slot_text(slot, "image"), self.slot_text(slot, "button"), self.slot_text(slot, "link"));
        let fields = self.extra(slot);
        Some(Stage::Rcs(Rcs {
            signature: signature?,
            message: message?,
            image,
            button,
            link,
            lifetime: lifetime(slot),
            short_link: typed(slot, "short_link"),
            fields,
        }))
    }

    fn voice(&mut self, kind: Option<OperationKind>, slot: &Slot<'_>) -> Option<Stage<Text>> {
        if kind == Some(OperationKind::Voice) {
            for key in ["gender", "language", "name"] {
                self.require(slot, (key, "a voice message names who speaks"));
            }
        }
        let plain = |gender: &str| !gender.contains("{{") && !gender.contains("{%");
        let wrong = |(gender, _): &(&str, _)| plain(gender) && !matches!(*gender, "male" | "female");
        if let Some((gender, span)) = slot.section.typed("gender").filter(wrong) {
            let message = format!("`gender` is `{gender}`, but must be `male` or `female`");
            self.report.at(span, Finding::error("unknown-value", message).help("write `gender: female`"));
        }
        let message = self.slot_text(slot, "message");
        let (gender, language, name) =
            (self.slot_text(slot, "gender"), self.slot_text(slot, "language"), self.slot_text(slot, "name"));
        let fields = self.extra(slot);
        Some(Stage::Voice(Voice { message: message?, gender, language, name, dtmf: typed(slot, "dtmf"), fields }))
    }
}

/// The seconds for which delivery is tried.
pub(super) fn lifetime(slot: &Slot<'_>) -> Option<u32> {
    typed(slot, "lifetime").map(|Seconds(seconds)| seconds)
}

/// The value of a key without a default.
pub(super) fn typed<T: FromStr>(slot: &Slot<'_>, key: &str) -> Option<T> {
    slot.section.value(key).and_then(|_| slot.section.parsed(key))
}
