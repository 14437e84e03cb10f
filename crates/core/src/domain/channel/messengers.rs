//! The messenger channels: Viber business messages, RCS messages, one-time codes through Telegram, and WhatsApp
//! messages.
//!
//! Viber messages have several forms. WhatsApp is available only as a stage of a pipeline (contract 1 and 2.1).

use serde::{Deserialize, Serialize};

use super::field::{
    FieldValueIter, TEXT_ONLY, flag_value, number_value, optional_text_value, present_values, text_value,
    try_map_optional,
};
use super::{
    ChannelFacts, ChannelField, FieldKind, FieldRequirement, FieldValue, MessageForm, StageValues, TextLimit, WirePlace,
};
use crate::domain::{ExtraProperties, OperationKind};

/// The highest known limit for the length of a button caption.
const BUTTON_CHARACTERS: usize = 30;
/// The length of a button caption that every account allows.
const SAFE_BUTTON: usize = 19;
const VIBER_CHARACTERS: TextLimit = TextLimit::AtMost(1000);
/// Image formats that Viber shows.
const VIBER_IMAGES: TextLimit = TextLimit::Image(&["jpg", "jpeg", "png", "gif"]);
/// Two days, in seconds.
const TWO_DAYS: u32 = 172_800;
const NO_CARDS: &str = "it has no field for the cards";

const VIBER_SIGNATURE: ChannelField = ChannelField::signature("viber_signature");
const VIBER_MESSAGE: ChannelField = ChannelField::message("viber_message")
    .with_limit(VIBER_CHARACTERS)
    .with_requirement(FieldRequirement::InPipeline("a pipeline stage needs a message"));
const VIBER_TYPE: ChannelField = ChannelField::new("type", FieldKind::Form(&VIBER_KINDS))
    .with_docs("text+image+link", "The message type. Defaults to the type that matches the keys.")
    .with_flat_place(WirePlace::Under("viber_type"))
    .with_stage_place(WirePlace::Under("type"));
const VIBER_IMAGE: ChannelField = ChannelField::image(WirePlace::Under("viber_image"))
    .with_limit(VIBER_IMAGES)
    .with_stage_place(WirePlace::Nowhere(TEXT_ONLY));
const VIBER_LINK: ChannelField = ChannelField::link("viber_link").with_stage_place(WirePlace::Nowhere(TEXT_ONLY));
const VIBER_BUTTON: ChannelField = ChannelField::button(WirePlace::Under("viber_button"), BUTTON_CHARACTERS)
    .with_safe_length(SAFE_BUTTON)
    .with_stage_place(WirePlace::Nowhere(TEXT_ONLY));
const VIBER_CAROUSEL: ChannelField = ChannelField::new("carousel", FieldKind::Cards { least: 2, most: 5 })
    .with_docs("[ { image: …, url: …, button: … }, … ]", "The 2 to 5 cards of a carousel.")
    .with_flat_place(WirePlace::Under("viber_carousel"))
    .with_stage_place(WirePlace::Nowhere(TEXT_ONLY))
    .with_unsupported_kinds(&[
        (OperationKind::ViberSms, NO_CARDS),
        (OperationKind::RcsSms, NO_CARDS),
        (OperationKind::RcsViberSms, NO_CARDS),
    ]);
const VIBER_LIFETIME: ChannelField = ChannelField::lifetime("viber_lifetime", 60, TWO_DAYS)
    .with_unsupported_kinds(&[(OperationKind::RcsViberSms, "it has no field for the Viber lifetime")]);
const VIBER_SHORT_LINK: ChannelField = ChannelField::short_link();

const CAPTION: ChannelField = ChannelField::new("caption", FieldKind::Message)
    .with_docs("Coats", "The card's text.")
    .with_noun("card's caption")
    .with_limit(VIBER_CHARACTERS)
    .with_flat_place(WirePlace::Under("caption"));
const CARD_IMAGE: ChannelField =
    ChannelField::image(WirePlace::Under("image")).with_noun("card's image").with_limit(VIBER_IMAGES).required();
const CARD_URL: ChannelField = ChannelField::new("url", FieldKind::Template)
    .with_docs("https://shop.example/1", "The URL that the button opens.")
    .with_noun("card's link")
    .with_limit(TextLimit::WebAddress)
    .required()
    .with_flat_place(WirePlace::Under("url"));
const CARD_BUTTON: ChannelField = ChannelField::button(WirePlace::Under("button"), BUTTON_CHARACTERS)
    .with_safe_length(SAFE_BUTTON)
    .with_noun("card's button")
    .required();

pub(super) const VIBER_FACTS: ChannelFacts = ChannelFacts {
    title: "Viber",
    example: "{ signature: OlenaCo, message: \"Hello\" }",
    doc: "A Viber message. Its keys determine its type.",
    fields: &[
        VIBER_SIGNATURE,
        VIBER_MESSAGE,
        VIBER_TYPE,
        VIBER_IMAGE,
        VIBER_LINK,
        VIBER_BUTTON,
        VIBER_CAROUSEL,
        VIBER_LIFETIME,
        VIBER_SHORT_LINK,
        ChannelField::extra(),
    ],
    forms: &[
        MessageForm { name: ViberKind::Text.name(), required_keys: &["message"], optional_keys: &[] },
        MessageForm { name: ViberKind::Image.name(), required_keys: &["image"], optional_keys: &[] },
        MessageForm {
            name: ViberKind::TextLink.name(),
            required_keys: &["message", "link", "button"],
            optional_keys: &[],
        },
        MessageForm {
            name: ViberKind::TextImageLink.name(),
            required_keys: &["message", "image", "link", "button"],
            optional_keys: &[],
        },
        MessageForm { name: ViberKind::Carousel.name(), required_keys: &["carousel"], optional_keys: &["message"] },
    ],
    senders_listed: true,
    price_example: "0.50",
    price_doc: "The price of a Viber message.",
    mobile: true,
    ..ChannelFacts::PLAIN
};

/// The form of a Viber message (contract 4.3 `viber`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViberKind {
    /// Only a text.
    #[serde(rename = "text")]
    Text,
    /// Only an image.
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

/// The names of the forms.
const VIBER_KINDS: [&str; ViberKind::ALL.len()] = {
    let mut names = [""; ViberKind::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ViberKind::ALL[at].name();
        at += 1;
    }
    names
};

impl ViberKind {
    /// Every form.
    pub const ALL: [ViberKind; 5] =
        [ViberKind::Text, ViberKind::Image, ViberKind::TextLink, ViberKind::TextImageLink, ViberKind::Carousel];

    /// The form's name on the wire and in campaign files.
    pub const fn name(self) -> &'static str {
        match self {
            ViberKind::Text => "text",
            ViberKind::Image => "image",
            ViberKind::TextLink => "text+link",
            ViberKind::TextImageLink => "text+image+link",
            ViberKind::Carousel => "carousel",
        }
    }

    /// The form with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A Viber message; `kind` defines which texts are present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Viber<T> {
    /// The form of the message.
    pub kind: ViberKind,
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: Option<T>,
    /// The address of the image.
    pub image: Option<T>,
    /// The address that the button opens.
    pub link: Option<T>,
    /// The caption of the button.
    pub button: Option<T>,
    /// The cards of a carousel; empty otherwise.
    pub carousel: Carousel<T>,
    /// The number of seconds for which delivery is attempted.
    pub lifetime: Option<u32>,
    /// Whether links are shortened and tracked.
    pub short_link: Option<bool>,
    /// Extra properties.
    pub fields: ExtraProperties,
}

/// The cards of a Viber carousel.
pub type Carousel<T> = Vec<Card<T>>;

/// One card of a Viber carousel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card<T> {
    /// The card's text.
    pub caption: Option<T>,
    /// The address of the image.
    pub image: T,
    /// The address that the button opens.
    pub url: T,
    /// The caption of the button.
    pub button: T,
}

impl<T> Viber<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        Some(Self {
            kind: ViberKind::from_name(values.take_word(&VIBER_TYPE)?)?,
            signature: values.take_text(&VIBER_SIGNATURE)?,
            message: values.take_text(&VIBER_MESSAGE),
            image: values.take_text(&VIBER_IMAGE),
            link: values.take_text(&VIBER_LINK),
            button: values.take_text(&VIBER_BUTTON),
            carousel: values.take_cards(&VIBER_CAROUSEL),
            lifetime: values.take_number(&VIBER_LIFETIME),
            short_link: values.take_flag(&VIBER_SHORT_LINK),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        let cards = || FieldValue::Cards(self.carousel.iter().map(Card::as_ref).collect());
        present_values([
            Some((&VIBER_TYPE, FieldValue::Word(self.kind.name()))),
            text_value(&VIBER_SIGNATURE, &self.signature),
            optional_text_value(&VIBER_MESSAGE, &self.message),
            optional_text_value(&VIBER_IMAGE, &self.image),
            optional_text_value(&VIBER_LINK, &self.link),
            optional_text_value(&VIBER_BUTTON, &self.button),
            (!self.carousel.is_empty()).then(|| (&VIBER_CAROUSEL, cards())),
            number_value(&VIBER_LIFETIME, self.lifetime),
            flag_value(&VIBER_SHORT_LINK, self.short_link),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Viber<U>, E> {
        Ok(Viber {
            kind: self.kind,
            signature: f(&self.signature)?,
            message: try_map_optional(&self.message, f)?,
            image: try_map_optional(&self.image, f)?,
            link: try_map_optional(&self.link, f)?,
            button: try_map_optional(&self.button, f)?,
            carousel: self.carousel.iter().map(|card| card.try_map(f)).collect::<Result<_, E>>()?,
            lifetime: self.lifetime,
            short_link: self.short_link,
            fields: self.fields.clone(),
        })
    }
}

impl<T> Card<T> {
    /// The keys of a card.
    pub const FIELDS: [ChannelField; 4] = [CAPTION, CARD_IMAGE, CARD_URL, CARD_BUTTON];

    /// The card with borrowed texts.
    fn as_ref(&self) -> Card<&T> {
        Card { caption: self.caption.as_ref(), image: &self.image, url: &self.url, button: &self.button }
    }

    /// Each text of the card with its key, in the order in which they are sent.
    pub fn into_texts(self) -> impl Iterator<Item = (&'static ChannelField, T)> {
        let (image, url, button) = ((&CARD_IMAGE, self.image), (&CARD_URL, self.url), (&CARD_BUTTON, self.button));
        self.caption.map(|caption| (&CAPTION, caption)).into_iter().chain([image, url, button])
    }

    fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Card<U>, E> {
        Ok(Card {
            caption: try_map_optional(&self.caption, f)?,
            image: f(&self.image)?,
            url: f(&self.url)?,
            button: f(&self.button)?,
        })
    }
}

const RCS_REQUIREMENT: FieldRequirement =
    FieldRequirement::OutsidePipeline("outside a pipeline, an RCS message needs an image and a button with a link");

const RCS_SIGNATURE: ChannelField = ChannelField::signature("rcs_signature");
const RCS_MESSAGE: ChannelField = ChannelField::message("rcs_message").required().with_limit(TextLimit::AtMost(3072));
const RCS_IMAGE: ChannelField = ChannelField::image(WirePlace::Under("rcs_image"))
    .with_limit(TextLimit::WebAddress)
    .with_requirement(RCS_REQUIREMENT)
    .with_stage_place(RCS_NO_PLACE);
const RCS_BUTTON: ChannelField = ChannelField::button(WirePlace::Under("rcs_button"), 25)
    .with_requirement(RCS_REQUIREMENT)
    .with_stage_place(RCS_NO_PLACE);
const RCS_LINK: ChannelField =
    ChannelField::link("rcs_link").with_requirement(RCS_REQUIREMENT).with_stage_place(RCS_NO_PLACE);
const RCS_LIFETIME: ChannelField = ChannelField::lifetime("rcs_lifetime", 60, u32::MAX);
const RCS_SHORT_LINK: ChannelField = ChannelField::short_link();
const RCS_NO_PLACE: WirePlace = WirePlace::Nowhere(TEXT_ONLY);

pub(super) const RCS_FACTS: ChannelFacts = ChannelFacts {
    title: "RCS",
    example: "{ signature: OlenaCo, message: \"Hello\", … }",
    doc: "A rich message. An image, a button and a link are required, except in a pipeline, which does not support them.",
    fields: &[
        RCS_SIGNATURE,
        RCS_MESSAGE,
        RCS_IMAGE,
        RCS_BUTTON,
        RCS_LINK,
        RCS_LIFETIME,
        RCS_SHORT_LINK,
        ChannelField::extra(),
    ],
    senders_listed: true,
    price_example: "0.50",
    price_doc: "The price of an RCS message.",
    mobile: true,
    ..ChannelFacts::PLAIN
};

/// An RCS message; image, button and link are required outside a pipeline and not allowed inside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rcs<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// The address of the image.
    pub image: Option<T>,
    /// The caption of the button.
    pub button: Option<T>,
    /// The address that the button opens.
    pub link: Option<T>,
    /// The number of seconds for which delivery is attempted; at least 60.
    pub lifetime: Option<u32>,
    /// Whether links are shortened and tracked.
    pub short_link: Option<bool>,
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl<T> Rcs<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        Some(Self {
            signature: values.take_text(&RCS_SIGNATURE)?,
            message: values.take_text(&RCS_MESSAGE)?,
            image: values.take_text(&RCS_IMAGE),
            button: values.take_text(&RCS_BUTTON),
            link: values.take_text(&RCS_LINK),
            lifetime: values.take_number(&RCS_LIFETIME),
            short_link: values.take_flag(&RCS_SHORT_LINK),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([
            text_value(&RCS_SIGNATURE, &self.signature),
            text_value(&RCS_MESSAGE, &self.message),
            optional_text_value(&RCS_IMAGE, &self.image),
            optional_text_value(&RCS_BUTTON, &self.button),
            optional_text_value(&RCS_LINK, &self.link),
            number_value(&RCS_LIFETIME, self.lifetime),
            flag_value(&RCS_SHORT_LINK, self.short_link),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Rcs<U>, E> {
        Ok(Rcs {
            signature: f(&self.signature)?,
            message: f(&self.message)?,
            image: try_map_optional(&self.image, f)?,
            button: try_map_optional(&self.button, f)?,
            link: try_map_optional(&self.link, f)?,
            lifetime: self.lifetime,
            short_link: self.short_link,
            fields: self.fields.clone(),
        })
    }
}

const TELEGRAM_MESSAGE: ChannelField =
    ChannelField::message("message").required().with_limit(TextLimit::Digits { least: 4, most: 8 });
const TELEGRAM_LIFETIME: ChannelField = ChannelField::lifetime("telegram_lifetime", 60, u32::MAX);

pub(super) const TELEGRAM_FACTS: ChannelFacts = ChannelFacts {
    title: "Telegram",
    example: "{ message: \"{{ code }}\" }",
    doc: "A one-time code sent through Telegram.",
    fields: &[TELEGRAM_MESSAGE, TELEGRAM_LIFETIME, ChannelField::extra()],
    personal: true,
    price_example: "0.40",
    price_doc: "The price of a one-time code sent through Telegram.",
    mobile: true,
    ..ChannelFacts::PLAIN
};

/// A one-time code sent through Telegram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Telegram<T> {
    /// The code, 4 to 8 digits.
    pub message: T,
    /// The number of seconds for which delivery is attempted; at least 60.
    pub lifetime: Option<u32>,
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl<T> Telegram<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        let (message, lifetime) = (values.take_text(&TELEGRAM_MESSAGE)?, values.take_number(&TELEGRAM_LIFETIME));
        Some(Self { message, lifetime, fields: values.fields })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([text_value(&TELEGRAM_MESSAGE, &self.message), number_value(&TELEGRAM_LIFETIME, self.lifetime)])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Telegram<U>, E> {
        Ok(Telegram { message: f(&self.message)?, lifetime: self.lifetime, fields: self.fields.clone() })
    }
}

const WHATSAPP_SIGNATURE: ChannelField = ChannelField::signature("signature");
const WHATSAPP_MESSAGE: ChannelField = ChannelField::message("message").required().with_limit(TextLimit::AtMost(4096));

pub(super) const WHATSAPP_FACTS: ChannelFacts = ChannelFacts {
    title: "WhatsApp",
    example: "{ signature: OlenaCo, message: \"Hello\" }",
    doc: "A WhatsApp message, always sent as a stage of a pipeline.",
    fields: &[WHATSAPP_SIGNATURE, WHATSAPP_MESSAGE, ChannelField::extra()],
    empty: "is empty, but the gateway would accept it, charge for it and deliver an empty message",
    enabled_by_hand: true,
    price_example: "1.00",
    price_doc: "The price of a WhatsApp message.",
    mobile: true,
    ..ChannelFacts::PLAIN
};

/// A WhatsApp message. An empty message is charged for and arrives empty, so both texts are required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whatsapp<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl<T> Whatsapp<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        let (signature, message) = (values.take_text(&WHATSAPP_SIGNATURE)?, values.take_text(&WHATSAPP_MESSAGE)?);
        Some(Self { signature, message, fields: values.fields })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([text_value(&WHATSAPP_SIGNATURE, &self.signature), text_value(&WHATSAPP_MESSAGE, &self.message)])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Whatsapp<U>, E> {
        Ok(Whatsapp { signature: f(&self.signature)?, message: f(&self.message)?, fields: self.fields.clone() })
    }
}
