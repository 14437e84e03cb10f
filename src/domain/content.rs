//! What a campaign says on each channel.
//!
//! Every type is generic over its texts: `Content<Text>` is what an author wrote, a compiled
//! form holds templates, and `Content<Cow<str>>` is what one recipient gets.

use serde::{Deserialize, Serialize};

use super::{Channel, OperationKind};

/// A text as its author wrote it: a template, and the name by which messages about it call it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Where the text stands: a path of keys in the campaign file (`channels[0].sms.message`)
    /// or the name of a text file (`welcome.sms.txt`).
    pub name: String,
    /// The template's source.
    pub source: String,
}

/// Extra properties of a channel that are sent as they are.
pub type Extra = serde_json::Map<String, serde_json::Value>;

/// An SMS (contract 4.3 `sms`; the fields are in the platform's documentation).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sms<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// Seconds for which delivery is tried.
    pub lifetime: Option<u32>,
    /// Whether links are shortened and tracked.
    pub short_link: Option<bool>,
    /// The most billed parts that the author allows; not sent.
    pub max_parts: u32,
    /// Extra properties.
    pub fields: Extra,
}

/// The form of a Viber message (contract 4.3 `viber`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViberKind {
    /// A text alone.
    #[serde(rename = "text")]
    Text,
    /// An image alone.
    #[serde(rename = "image")]
    Image,
    /// A text with a button.
    #[serde(rename = "text+link")]
    TextLink,
    /// A text with an image and a button.
    #[serde(rename = "text+image+link")]
    TextImageLink,
    /// Two to five cards.
    #[serde(rename = "carousel")]
    Carousel,
}

impl ViberKind {
    /// Every form.
    pub const ALL: [ViberKind; 5] =
        [ViberKind::Text, ViberKind::Image, ViberKind::TextLink, ViberKind::TextImageLink, ViberKind::Carousel];

    /// The form's name on the wire and in campaign files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ViberKind::Text => "text",
            ViberKind::Image => "image",
            ViberKind::TextLink => "text+link",
            ViberKind::TextImageLink => "text+image+link",
            ViberKind::Carousel => "carousel",
        }
    }

    /// The form of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A Viber message; which texts are present follows from `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Viber<T> {
    /// The form of the message.
    pub kind: ViberKind,
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: Option<T>,
    /// Address of the image.
    pub image: Option<T>,
    /// Address that the button opens.
    pub link: Option<T>,
    /// Caption of the button.
    pub button: Option<T>,
    /// The cards of a carousel; empty otherwise.
    pub carousel: Carousel<T>,
    /// Seconds for which delivery is tried.
    pub lifetime: Option<u32>,
    /// Whether links are shortened and tracked.
    pub short_link: Option<bool>,
    /// Extra properties.
    pub fields: Extra,
}

/// The cards of a Viber carousel.
pub type Carousel<T> = Vec<Card<T>>;

/// One card of a Viber carousel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card<T> {
    /// The card's text.
    pub caption: Option<T>,
    /// Address of the image.
    pub image: T,
    /// Address that the button opens.
    pub url: T,
    /// Caption of the button.
    pub button: T,
}

/// An RCS message; image, button and link are required outside a pipeline and impossible in one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rcs<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// Address of the image.
    pub image: Option<T>,
    /// Caption of the button.
    pub button: Option<T>,
    /// Address that the button opens.
    pub link: Option<T>,
    /// Seconds for which delivery is tried; at least 60.
    pub lifetime: Option<u32>,
    /// Whether links are shortened and tracked.
    pub short_link: Option<bool>,
    /// Extra properties.
    pub fields: Extra,
}

/// A one-time code by Telegram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Telegram<T> {
    /// The code, 4 to 8 digits.
    pub message: T,
    /// Seconds for which delivery is tried; at least 60.
    pub lifetime: Option<u32>,
    /// Extra properties.
    pub fields: Extra,
}

/// A spoken message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voice<T> {
    /// The text to speak.
    pub message: T,
    /// `male` or `female`.
    pub gender: Option<T>,
    /// The language, for example `uk-UA`.
    pub language: Option<T>,
    /// The voice, for example `uk-UA-Standard-A`.
    pub name: Option<T>,
    /// Whether the digits that the recipient presses are collected.
    pub dtmf: Option<bool>,
    /// Extra properties.
    pub fields: Extra,
}

/// A WhatsApp message. An empty one is charged and arrives empty, so both texts are required here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whatsapp<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// Extra properties.
    pub fields: Extra,
}

/// What is said on one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage<T> {
    /// An SMS.
    Sms(Sms<T>),
    /// A Viber message.
    Viber(Viber<T>),
    /// An RCS message.
    Rcs(Rcs<T>),
    /// A code by Telegram.
    Telegram(Telegram<T>),
    /// A spoken message.
    Voice(Voice<T>),
    /// A WhatsApp message.
    Whatsapp(Whatsapp<T>),
    /// A lookup of the number.
    Hlr {
        /// Extra properties.
        fields: Extra,
    },
    /// A code call.
    CallOtp {
        /// Extra properties.
        fields: Extra,
    },
}

impl<T> Stage<T> {
    /// The channel of this stage.
    pub fn channel(&self) -> Channel {
        match self {
            Stage::Sms(_) => Channel::Sms,
            Stage::Viber(_) => Channel::Viber,
            Stage::Rcs(_) => Channel::Rcs,
            Stage::Telegram(_) => Channel::Telegram,
            Stage::Voice(_) => Channel::Voice,
            Stage::Whatsapp(_) => Channel::Whatsapp,
            Stage::Hlr { .. } => Channel::Hlr,
            Stage::CallOtp { .. } => Channel::CallOtp,
        }
    }

    /// The extra properties of this stage.
    pub fn fields(&self) -> &Extra {
        match self {
            Stage::Sms(s) => &s.fields,
            Stage::Viber(s) => &s.fields,
            Stage::Rcs(s) => &s.fields,
            Stage::Telegram(s) => &s.fields,
            Stage::Voice(s) => &s.fields,
            Stage::Whatsapp(s) => &s.fields,
            Stage::Hlr { fields } | Stage::CallOtp { fields } => fields,
        }
    }

    /// Each text of this stage with the name of its key, in the order of the keys.
    ///
    /// The texts of a carousel's cards come under `carousel`.
    pub fn texts(&self) -> Vec<(&'static str, &T)> {
        match self {
            Stage::Sms(s) => vec![("signature", &s.signature), ("message", &s.message)],
            Stage::Viber(s) => {
                let mut texts = vec![("signature", &s.signature)];
                let optional = [("message", &s.message), ("image", &s.image), ("link", &s.link), ("button", &s.button)];
                texts.extend(optional.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))));
                for card in &s.carousel {
                    texts.extend(card.caption.as_ref().map(|caption| ("carousel.caption", caption)));
                    texts.extend([
                        ("carousel.image", &card.image),
                        ("carousel.url", &card.url),
                        ("carousel.button", &card.button),
                    ]);
                }
                texts
            }
            Stage::Rcs(s) => {
                let mut texts = vec![("signature", &s.signature), ("message", &s.message)];
                let optional = [("image", &s.image), ("button", &s.button), ("link", &s.link)];
                texts.extend(optional.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))));
                texts
            }
            Stage::Telegram(s) => vec![("message", &s.message)],
            Stage::Voice(s) => {
                let mut texts = vec![("message", &s.message)];
                let optional = [("gender", &s.gender), ("language", &s.language), ("name", &s.name)];
                texts.extend(optional.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))));
                texts
            }
            Stage::Whatsapp(s) => vec![("signature", &s.signature), ("message", &s.message)],
            Stage::Hlr { .. } | Stage::CallOtp { .. } => Vec::new(),
        }
    }

    /// The same stage with each text turned into another form by `f`.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Stage<U>, E> {
        fn option<'a, T, U, E>(text: &'a Option<T>, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Option<U>, E> {
            text.as_ref().map(f).transpose()
        }
        Ok(match self {
            Stage::Sms(s) => Stage::Sms(Sms {
                signature: f(&s.signature)?,
                message: f(&s.message)?,
                lifetime: s.lifetime,
                short_link: s.short_link,
                max_parts: s.max_parts,
                fields: s.fields.clone(),
            }),
            Stage::Viber(s) => Stage::Viber(Viber {
                kind: s.kind,
                signature: f(&s.signature)?,
                message: option(&s.message, f)?,
                image: option(&s.image, f)?,
                link: option(&s.link, f)?,
                button: option(&s.button, f)?,
                carousel: s
                    .carousel
                    .iter()
                    .map(|card| {
                        Ok(Card {
                            caption: option(&card.caption, f)?,
                            image: f(&card.image)?,
                            url: f(&card.url)?,
                            button: f(&card.button)?,
                        })
                    })
                    .collect::<Result<_, E>>()?,
                lifetime: s.lifetime,
                short_link: s.short_link,
                fields: s.fields.clone(),
            }),
            Stage::Rcs(s) => Stage::Rcs(Rcs {
                signature: f(&s.signature)?,
                message: f(&s.message)?,
                image: option(&s.image, f)?,
                button: option(&s.button, f)?,
                link: option(&s.link, f)?,
                lifetime: s.lifetime,
                short_link: s.short_link,
                fields: s.fields.clone(),
            }),
            Stage::Telegram(s) => {
                Stage::Telegram(Telegram { message: f(&s.message)?, lifetime: s.lifetime, fields: s.fields.clone() })
            }
            Stage::Voice(s) => Stage::Voice(Voice {
                message: f(&s.message)?,
                gender: option(&s.gender, f)?,
                language: option(&s.language, f)?,
                name: option(&s.name, f)?,
                dtmf: s.dtmf,
                fields: s.fields.clone(),
            }),
            Stage::Whatsapp(s) => Stage::Whatsapp(Whatsapp {
                signature: f(&s.signature)?,
                message: f(&s.message)?,
                fields: s.fields.clone(),
            }),
            Stage::Hlr { fields } => Stage::Hlr { fields: fields.clone() },
            Stage::CallOtp { fields } => Stage::CallOtp { fields: fields.clone() },
        })
    }
}

/// What a campaign says: the operation that carries it and a stage per channel, in the order of trying.
///
/// `stages` is not empty and repeats no channel; `kind` can carry them. The manifest makes sure of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Content<T> {
    /// The operation that each recipient becomes.
    pub kind: OperationKind,
    /// The channels in the order in which they are tried.
    pub stages: Vec<Stage<T>>,
}

impl<T> Content<T> {
    /// Whether a second message does no harm beyond being a second one: a repeated code or call confuses or costs a person.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        let personal = [Channel::CallOtp, Channel::Telegram, Channel::Voice];
        !self.stages.iter().any(|stage| personal.contains(&stage.channel()))
    }

    /// The same content with each text turned into another form by `f`.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn try_map<'a, U, E>(&'a self, mut f: impl FnMut(&'a T) -> Result<U, E>) -> Result<Content<U>, E> {
        let stages = self.stages.iter().map(|stage| stage.try_map(&mut f)).collect::<Result<_, E>>()?;
        Ok(Content { kind: self.kind, stages })
    }
}
