//! Viber business messages, in several forms.

use serde::{Deserialize, Serialize};

use super::field::TEXT_ALONE;
use super::value::{self, FieldValues, filled, map, optional, text};
use super::{Facts, Field, FieldKind, Form, Need, TextLimit, Value, Values, WirePlace};
use crate::domain::{Extra, OperationKind};

/// The widest limit that is known.
const BUTTON_CHARACTERS: usize = 30;
/// What every account allows.
const SAFE_BUTTON: usize = 19;
const CHARACTERS: TextLimit = TextLimit::AtMost(1000);
/// Image formats that Viber shows.
const IMAGES: TextLimit = TextLimit::Image(&["jpg", "jpeg", "png", "gif"]);
const TWO_DAYS: u32 = 172_800;
const NO_CARDS: &str = "it has no field for the cards";

const SIGNATURE: Field = Field::signature("viber_signature");
const MESSAGE: Field =
    Field::message("viber_message").limit(CHARACTERS).need(Need::InPipeline("a pipeline stage needs a message"));
const TYPE: Field = Field::new("type", FieldKind::Form(&KINDS))
    .about("text+image+link", "The type of the message. Defaults to the type that matches the keys.")
    .flat(WirePlace::Under("viber_type"))
    .stage(WirePlace::Under("type"));
const IMAGE: Field = Field::image(WirePlace::Under("viber_image")).limit(IMAGES).stage(WirePlace::Nowhere(TEXT_ALONE));
const LINK: Field = Field::link("viber_link").stage(WirePlace::Nowhere(TEXT_ALONE));
const BUTTON: Field = Field::button(WirePlace::Under("viber_button"), BUTTON_CHARACTERS)
    .everywhere(SAFE_BUTTON)
    .stage(WirePlace::Nowhere(TEXT_ALONE));
const CAROUSEL: Field = Field::new("carousel", FieldKind::Cards { least: 2, most: 5 })
    .about("[ { image: …, url: …, button: … }, … ]", "The 2 to 5 cards of a carousel.")
    .flat(WirePlace::Under("viber_carousel"))
    .stage(WirePlace::Nowhere(TEXT_ALONE))
    .nowhere(&[
        (OperationKind::ViberSms, NO_CARDS),
        (OperationKind::RcsSms, NO_CARDS),
        (OperationKind::RcsViberSms, NO_CARDS),
    ]);
const LIFETIME: Field = Field::lifetime("viber_lifetime", 60, TWO_DAYS)
    .nowhere(&[(OperationKind::RcsViberSms, "it has no field for the Viber lifetime")]);
const SHORT_LINK: Field = Field::short_link();

const CAPTION: Field = Field::new("caption", FieldKind::Message)
    .about("Coats", "The card's text.")
    .called("card's caption")
    .limit(CHARACTERS)
    .flat(WirePlace::Under("caption"));
const CARD_IMAGE: Field = Field::image(WirePlace::Under("image")).called("card's image").limit(IMAGES).required();
const CARD_URL: Field = Field::new("url", FieldKind::Template)
    .about("https://shop.example/1", "The URL that the button opens.")
    .called("card's link")
    .limit(TextLimit::WebAddress)
    .required()
    .flat(WirePlace::Under("url"));
const CARD_BUTTON: Field = Field::button(WirePlace::Under("button"), BUTTON_CHARACTERS)
    .everywhere(SAFE_BUTTON)
    .called("card's button")
    .required();

pub(super) const FACTS: Facts = Facts {
    title: "Viber",
    example: "{ signature: OlenaCo, message: \"Hello\" }",
    doc: "A Viber message. Its keys determine its type.",
    fields: &[SIGNATURE, MESSAGE, TYPE, IMAGE, LINK, BUTTON, CAROUSEL, LIFETIME, SHORT_LINK, Field::extra()],
    forms: &[
        Form { name: ViberKind::Text.name(), needs: &["message"], may_have: &[] },
        Form { name: ViberKind::Image.name(), needs: &["image"], may_have: &[] },
        Form { name: ViberKind::TextLink.name(), needs: &["message", "link", "button"], may_have: &[] },
        Form { name: ViberKind::TextImageLink.name(), needs: &["message", "image", "link", "button"], may_have: &[] },
        Form { name: ViberKind::Carousel.name(), needs: &["carousel"], may_have: &["message"] },
    ],
    senders_listed: true,
    price_example: "0.50",
    price_doc: "The price of a Viber message.",
    mobile: true,
    ..Facts::PLAIN
};

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

/// The names of the forms.
const KINDS: [&str; ViberKind::ALL.len()] = {
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
    #[must_use]
    pub const fn name(self) -> &'static str {
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

impl<T> Viber<T> {
    pub(super) fn of(mut values: Values<T>) -> Option<Self> {
        Some(Self {
            kind: ViberKind::from_name(values.word(&TYPE)?)?,
            signature: values.text(&SIGNATURE)?,
            message: values.text(&MESSAGE),
            image: values.text(&IMAGE),
            link: values.text(&LINK),
            button: values.text(&BUTTON),
            carousel: values.cards(&CAROUSEL),
            lifetime: values.number(&LIFETIME),
            short_link: values.flag(&SHORT_LINK),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValues<'_, T> {
        let cards = || Value::Cards(self.carousel.iter().map(Card::as_ref).collect());
        filled([
            Some((&TYPE, Value::Word(self.kind.name()))),
            text(&SIGNATURE, &self.signature),
            optional(&MESSAGE, &self.message),
            optional(&IMAGE, &self.image),
            optional(&LINK, &self.link),
            optional(&BUTTON, &self.button),
            (!self.carousel.is_empty()).then(|| (&CAROUSEL, cards())),
            value::number(&LIFETIME, self.lifetime),
            value::flag(&SHORT_LINK, self.short_link),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Viber<U>, E> {
        Ok(Viber {
            kind: self.kind,
            signature: f(&self.signature)?,
            message: map(&self.message, f)?,
            image: map(&self.image, f)?,
            link: map(&self.link, f)?,
            button: map(&self.button, f)?,
            carousel: self.carousel.iter().map(|card| card.try_map(f)).collect::<Result<_, E>>()?,
            lifetime: self.lifetime,
            short_link: self.short_link,
            fields: self.fields.clone(),
        })
    }
}

impl<T> Card<T> {
    /// The keys of a card.
    pub const FIELDS: [Field; 4] = [CAPTION, CARD_IMAGE, CARD_URL, CARD_BUTTON];

    /// The card over borrowed texts.
    fn as_ref(&self) -> Card<&T> {
        Card { caption: self.caption.as_ref(), image: &self.image, url: &self.url, button: &self.button }
    }

    /// Each text of the card with its key, in the order in which they are sent.
    pub fn into_texts(self) -> impl Iterator<Item = (&'static Field, T)> {
        let (image, url, button) = ((&CARD_IMAGE, self.image), (&CARD_URL, self.url), (&CARD_BUTTON, self.button));
        self.caption.map(|caption| (&CAPTION, caption)).into_iter().chain([image, url, button])
    }

    fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Card<U>, E> {
        Ok(Card {
            caption: map(&self.caption, f)?,
            image: f(&self.image)?,
            url: f(&self.url)?,
            button: f(&self.button)?,
        })
    }
}
