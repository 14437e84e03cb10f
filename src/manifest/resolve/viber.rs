//! A Viber message: its type, and what each type needs.

use super::Resolver;
use super::channels::Slot;
use super::stage::{lifetime, typed};
use crate::domain::{Card, Carousel, OperationKind, Text, Viber, ViberKind};
use crate::finding::{Finding, list_all};
use crate::manifest::yaml::Entry;

/// The keys that depend on the type.
const KEYS: [&str; 5] = ["message", "image", "link", "button", "carousel"];

/// The keys that a type needs, and those that it may have besides.
fn keys_of(kind: ViberKind) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        ViberKind::Text => (&["message"], &[]),
        ViberKind::Image => (&["image"], &[]),
        ViberKind::TextLink => (&["message", "link", "button"], &[]),
        ViberKind::TextImageLink => (&["message", "image", "link", "button"], &[]),
        ViberKind::Carousel => (&["carousel"], &["message"]),
    }
}

/// The type that the keys which are there make.
fn derived(has: impl Fn(&str) -> bool) -> ViberKind {
    let button = has("link") || has("button");
    if has("carousel") {
        ViberKind::Carousel
    } else if has("image") && (has("message") || button) {
        ViberKind::TextImageLink
    } else if has("image") {
        ViberKind::Image
    } else if button {
        ViberKind::TextLink
    } else {
        ViberKind::Text
    }
}

impl Resolver<'_> {
    pub(super) fn viber(&mut self, operation: Option<OperationKind>, slot: &Slot<'_>) -> Option<Viber<Text>> {
        let kind =
            if operation == Some(OperationKind::Pipeline) { self.pipeline_kind(slot) } else { self.viber_kind(slot) };
        let signature = self.slot_text(slot, "signature");
        let [message, image, link, button] =
            ["message", "image", "link", "button"].map(|key| self.slot_text(slot, key));
        let carousel = self.carousel(slot);
        let fields = self.extra(slot);
        Some(Viber {
            kind: kind?,
            signature: signature?,
            message,
            image,
            link,
            button,
            carousel: carousel?,
            lifetime: lifetime(slot),
            short_link: typed(slot, "short_link"),
            fields,
        })
    }

    /// The type: as given or as derived, if the keys fit it.
    fn viber_kind(&mut self, slot: &Slot<'_>) -> Option<ViberKind> {
        let given = slot.section.typed("type");
        let kind = match given {
            Some((name, _)) => ViberKind::from_name(name)?,
            None => derived(|key| slot.section.has(key)),
        };
        let (needs, may_have) = keys_of(kind);
        for key in needs.iter().filter(|key| slot.section.entry(key).is_none()) {
            let message = format!("a Viber message of type `{}` needs `{key}`", kind.name());
            let help = match given {
                Some(_) => format!("add `{key}`, or change `type`"),
                None => format!("add `{key}`; the type follows from the keys that are there"),
            };
            self.report.at(slot.name_span, Finding::error("viber-type", message).help(help));
        }
        for key in KEYS.iter().filter(|key| !needs.contains(key) && !may_have.contains(key)) {
            let Some(entry) = slot.section.entry(key) else { continue };
            let message = format!("a Viber message of type `{}` has no `{key}`", kind.name());
            let has = list_all(needs.iter().copied());
            let help = format!("remove it, or change the type: `{}` has {has}", kind.name());
            self.report.at(&entry.key_span, Finding::error("viber-type", message).help(help));
        }
        Some(kind)
    }

    /// A stage of a pipeline carries a text; other keys are told as not carried.
    fn pipeline_kind(&mut self, slot: &Slot<'_>) -> Option<ViberKind> {
        if let Some((name, span)) = slot.section.typed("type").filter(|(name, _)| *name != ViberKind::Text.name()) {
            let message = format!("a pipeline cannot carry a Viber message of type `{name}`, only `text`");
            self.report.at(span, Finding::error("not-carried", message).help("remove `type`"));
        }
        self.require(slot, ("message", "a stage of a pipeline carries a text (contract 4.3)"));
        Some(ViberKind::Text)
    }

    fn carousel(&mut self, slot: &Slot<'_>) -> Option<Carousel<Text>> {
        let cards = slot.section.value("carousel").and_then(|node| node.items()).unwrap_or_default();
        let texts = cards.iter().enumerate().map(|(index, card)| {
            let path = format!("{}.carousel[{index}]", slot.path);
            let mut text = |key: &str| {
                let entry: &Entry = card.get(key)?;
                self.text(format!("{path}.{key}"), entry)
            };
            let [caption, image, url, button] = ["caption", "image", "url", "button"].map(&mut text);
            Some(Card { caption, image: image?, url: url?, button: button? })
        });
        // Every card is read before the first that is incomplete ends the reading.
        texts.collect::<Vec<_>>().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_from_the_keys_that_are_there() {
        let cases: [(&[&str], ViberKind); 7] = [
            (&["message"], ViberKind::Text),
            (&["image"], ViberKind::Image),
            (&["message", "link", "button"], ViberKind::TextLink),
            (&["message", "image", "link", "button"], ViberKind::TextImageLink),
            (&["message", "image"], ViberKind::TextImageLink),
            (&["carousel", "message"], ViberKind::Carousel),
            (&[], ViberKind::Text),
        ];
        for (keys, kind) in cases {
            assert_eq!(derived(|key| keys.contains(&key)), kind, "{keys:?}");
        }
    }
}
