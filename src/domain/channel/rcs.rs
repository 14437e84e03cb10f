//! RCS: rich messages.

use serde::{Deserialize, Serialize};

use super::field::TEXT_ALONE;
use super::value::{self, FieldValues, filled, map, optional, text};
use super::{Facts, Field, Need, TextLimit, Values, WirePlace};
use crate::domain::Extra;

const NEEDED: Need =
    Need::OutsidePipeline("outside a pipeline, an RCS message needs an image and a button with a link");

const SIGNATURE: Field = Field::signature("rcs_signature");
const MESSAGE: Field = Field::message("rcs_message").required().limit(TextLimit::AtMost(3072));
const IMAGE: Field =
    Field::image(WirePlace::Under("rcs_image")).limit(TextLimit::WebAddress).need(NEEDED).stage(UNCARRIED);
const BUTTON: Field = Field::button(WirePlace::Under("rcs_button"), 25).need(NEEDED).stage(UNCARRIED);
const LINK: Field = Field::link("rcs_link").need(NEEDED).stage(UNCARRIED);
const LIFETIME: Field = Field::lifetime("rcs_lifetime", 60, u32::MAX);
const SHORT_LINK: Field = Field::short_link();
const UNCARRIED: WirePlace = WirePlace::Nowhere(TEXT_ALONE);

pub(super) const FACTS: Facts = Facts {
    title: "RCS",
    example: "{ signature: OlenaCo, message: \"Hello\", … }",
    doc: "A rich message. Image, button and link are required, except in a pipeline, which does not support them.",
    fields: &[SIGNATURE, MESSAGE, IMAGE, BUTTON, LINK, LIFETIME, SHORT_LINK, Field::extra()],
    senders_listed: true,
    price_example: "0.50",
    price_doc: "The price of an RCS message.",
    mobile: true,
    ..Facts::PLAIN
};

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

impl<T> Rcs<T> {
    pub(super) fn of(mut values: Values<T>) -> Option<Self> {
        Some(Self {
            signature: values.text(&SIGNATURE)?,
            message: values.text(&MESSAGE)?,
            image: values.text(&IMAGE),
            button: values.text(&BUTTON),
            link: values.text(&LINK),
            lifetime: values.number(&LIFETIME),
            short_link: values.flag(&SHORT_LINK),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValues<'_, T> {
        filled([
            text(&SIGNATURE, &self.signature),
            text(&MESSAGE, &self.message),
            optional(&IMAGE, &self.image),
            optional(&BUTTON, &self.button),
            optional(&LINK, &self.link),
            value::number(&LIFETIME, self.lifetime),
            value::flag(&SHORT_LINK, self.short_link),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Rcs<U>, E> {
        Ok(Rcs {
            signature: f(&self.signature)?,
            message: f(&self.message)?,
            image: map(&self.image, f)?,
            button: map(&self.button, f)?,
            link: map(&self.link, f)?,
            lifetime: self.lifetime,
            short_link: self.short_link,
            fields: self.fields.clone(),
        })
    }
}
