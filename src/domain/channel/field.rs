//! A key of a channel: what may stand behind it, what is accepted of it, and where operations carry it.
//!
//! The structure of campaign files, the refusal of what an operation cannot carry, the rules of the texts and the
//! encoder all read these tables, so that a key is known to all of them or to none.

use super::TextLimit;
use crate::domain::OperationKind;

/// Why a stage of a pipeline has no place for a lifetime or short links.
const NO_SUCH_FIELD: &str = "its stages have no field for this key";
/// Why a stage of a pipeline has no place for images and buttons.
pub(super) const TEXT_ALONE: &str = "its stages contain only a signature and a message";

/// A key of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelField {
    /// Its name in campaign files.
    pub key: &'static str,
    /// What may stand behind it.
    pub kind: FieldKind,
    /// A value as somebody would write it.
    pub example: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What holds without it, as it would be written.
    pub default: Option<&'static str>,
    /// Where it may not be left out.
    pub need: FieldRequirement,
    /// What is accepted of its text.
    pub limit: TextLimit,
    /// The most characters that every account allows, where some allow fewer than the limit.
    pub safe_length: Option<usize>,
    /// How a person calls its text: `button`, `card's caption`.
    pub noun: &'static str,
    flat: WirePlace,
    stage: WirePlace,
    nowhere: &'static [(OperationKind, &'static str)],
}

/// What may stand behind a key of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A text that is a template.
    Template,
    /// A template, or the text file that holds it.
    Message,
    /// A template that becomes one of some words.
    Choice(&'static [&'static str]),
    /// The form of the message, by its name.
    Form(&'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Seconds.
    Seconds {
        /// The fewest.
        least: u32,
        /// The most.
        most: u32,
    },
    /// A whole number.
    Number {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
    },
    /// `true` or `false`.
    Flag,
    /// Cards.
    Cards {
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Extra properties, sent as they are.
    Extra,
}

/// Where a key may not be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRequirement {
    /// Nowhere.
    Never,
    /// Everywhere.
    Always,
    /// Outside of a pipeline, and why.
    OutsidePipeline(&'static str),
    /// In a pipeline, and why.
    InPipeline(&'static str),
}

/// Where an operation carries a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WirePlace {
    /// Under this name, in the operation or in the channel's stage of a pipeline.
    Under(&'static str),
    /// In the object of the first name, under the second.
    Within(&'static str, &'static str),
    /// Under this name, once for all channels of the operation.
    Shared(&'static str),
    /// Nowhere, since it is ours and not for the gateway.
    LocalOnly,
    /// Nowhere, and why; it is refused.
    Nowhere(&'static str),
}

impl WirePlace {
    /// The property of the operation or stage that it takes.
    #[must_use]
    pub fn property(self) -> Option<&'static str> {
        match self {
            WirePlace::Under(name) | WirePlace::Within(name, _) | WirePlace::Shared(name) => Some(name),
            WirePlace::LocalOnly | WirePlace::Nowhere(_) => None,
        }
    }
}

impl ChannelField {
    /// A key whose value stays with us.
    pub(super) const fn new(key: &'static str, kind: FieldKind) -> Self {
        Self {
            key,
            kind,
            example: "",
            doc: "",
            default: None,
            need: FieldRequirement::Never,
            limit: TextLimit::NotEmpty,
            safe_length: None,
            noun: key,
            flat: WirePlace::LocalOnly,
            stage: WirePlace::LocalOnly,
            nowhere: &[],
        }
    }

    /// The sender name, under this name outside of a pipeline.
    pub(super) const fn signature(flat: &'static str) -> Self {
        let field = Self::new("signature", FieldKind::Template).with_docs("OlenaCo", "The sender name.").required();
        field.with_flat_place(WirePlace::Under(flat)).with_stage_place(WirePlace::Under("signature"))
    }

    /// The text, under this name outside of a pipeline.
    pub(super) const fn message(flat: &'static str) -> Self {
        Self::new("message", FieldKind::Message)
            .with_docs(
                "\"Hello, {{ first_name }}\"",
                "The message text, or `{ file: NAME }` for a text file in this file's folder or in templates/.",
            )
            .with_noun("text")
            .with_flat_place(WirePlace::Under(flat))
            .with_stage_place(WirePlace::Under("message"))
    }

    /// The address of the image, under this name; a pipeline has no place for it.
    pub(super) const fn image(flat: WirePlace) -> Self {
        let doc = "The URL of the image.";
        Self::new("image", FieldKind::Template).with_docs("https://cdn.example/autumn.png", doc).with_flat_place(flat)
    }

    /// The address that the button opens, under this name; a pipeline has no place for it.
    pub(super) const fn link(flat: &'static str) -> Self {
        Self::new("link", FieldKind::Template)
            .with_docs("https://shop.example", "The URL that the button opens.")
            .with_limit(TextLimit::WebAddress)
            .with_flat_place(WirePlace::Under(flat))
    }

    /// The caption of the button, of at most so many characters; a pipeline has no place for it.
    pub(super) const fn button(flat: WirePlace, most: usize) -> Self {
        let doc = "The caption of the button.";
        Self::new("button", FieldKind::Template)
            .with_docs("Shop now", doc)
            .with_limit(TextLimit::AtMost(most))
            .with_flat_place(flat)
    }

    /// The seconds for which delivery is tried, under this name; a pipeline has no place for it.
    pub(super) const fn lifetime(flat: &'static str, least: u32, most: u32) -> Self {
        Self::new("lifetime", FieldKind::Seconds { least, most })
            .with_docs("1h", "How long to keep trying to deliver the message on this channel.")
            .with_flat_place(WirePlace::Under(flat))
            .with_stage_place(WirePlace::Nowhere(NO_SUCH_FIELD))
    }

    /// Whether links are shortened; a pipeline has no place for it.
    pub(super) const fn short_link() -> Self {
        Self::new("short_link", FieldKind::Flag)
            .with_docs("true", "Shortens and tracks links, if your pricing plan includes this.")
            .with_flat_place(WirePlace::Shared("short_link"))
            .with_stage_place(WirePlace::Nowhere(NO_SUCH_FIELD))
    }

    /// Extra properties.
    pub(super) const fn extra() -> Self {
        let doc = "Additional properties of the operation, sent unchanged.";
        Self::new("fields", FieldKind::Extra).with_docs("{ unsubscribe_link: true }", doc)
    }

    pub(super) const fn with_docs(mut self, example: &'static str, doc: &'static str) -> Self {
        self.example = example;
        self.doc = doc;
        self
    }

    pub(super) const fn with_default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    pub(super) const fn required(self) -> Self {
        self.with_requirement(FieldRequirement::Always)
    }

    pub(super) const fn with_requirement(mut self, need: FieldRequirement) -> Self {
        self.need = need;
        self
    }

    pub(super) const fn with_limit(mut self, limit: TextLimit) -> Self {
        self.limit = limit;
        self
    }

    /// With so many characters that every account allows.
    pub(super) const fn with_safe_length(mut self, characters: usize) -> Self {
        self.safe_length = Some(characters);
        self
    }

    pub(super) const fn with_noun(mut self, noun: &'static str) -> Self {
        self.noun = noun;
        self
    }

    /// Where it stands outside of a pipeline.
    pub(super) const fn with_flat_place(mut self, place: WirePlace) -> Self {
        self.flat = place;
        self
    }

    /// Where it stands in a stage of a pipeline.
    pub(super) const fn with_stage_place(mut self, place: WirePlace) -> Self {
        self.stage = place;
        self
    }

    /// Operations outside of a pipeline that have no place for it, and why.
    pub(super) const fn with_no_place_in(mut self, kinds: &'static [(OperationKind, &'static str)]) -> Self {
        self.nowhere = kinds;
        self
    }

    /// Where an operation of `kind` carries it.
    #[must_use]
    pub fn place_in(&self, kind: OperationKind) -> WirePlace {
        if kind == OperationKind::Pipeline {
            return self.stage;
        }
        let nowhere = self.nowhere.iter().find(|(without, _)| *without == kind);
        nowhere.map_or(self.flat, |(_, why)| WirePlace::Nowhere(why))
    }
}
