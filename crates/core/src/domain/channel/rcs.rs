//! The RCS channel: rich messages.

use serde::{Deserialize, Serialize};

use super::field::{
    FieldValueIter, TEXT_ONLY, flag_value, number_value, optional_text_value, present_values, text_value,
    try_map_optional,
};
use super::{ChannelFacts, ChannelField, FieldRequirement, StageValues, TextLimit, WirePlace};
use crate::domain::ExtraProperties;

const REQUIREMENT: FieldRequirement =
    FieldRequirement::OutsidePipeline("outside a pipeline, an RCS message needs an image and a button with a link");

const SIGNATURE: ChannelField = ChannelField::signature("rcs_signature");
const MESSAGE: ChannelField = ChannelField::message("rcs_message").required().with_limit(TextLimit::AtMost(3072));
const IMAGE: ChannelField = ChannelField::image(WirePlace::Under("rcs_image"))
    .with_limit(TextLimit::WebAddress)
    .with_requirement(REQUIREMENT)
    .with_stage_place(NO_PLACE);
const BUTTON: ChannelField =
    ChannelField::button(WirePlace::Under("rcs_button"), 25).with_requirement(REQUIREMENT).with_stage_place(NO_PLACE);
const LINK: ChannelField = ChannelField::link("rcs_link").with_requirement(REQUIREMENT).with_stage_place(NO_PLACE);
const LIFETIME: ChannelField = ChannelField::lifetime("rcs_lifetime", 60, u32::MAX);
const SHORT_LINK: ChannelField = ChannelField::short_link();
const NO_PLACE: WirePlace = WirePlace::Nowhere(TEXT_ONLY);

pub(super) const FACTS: ChannelFacts = ChannelFacts {
    title: "RCS",
    example: "{ signature: OlenaCo, message: \"Hello\", … }",
    doc: "A rich message. An image, a button and a link are required, except in a pipeline, which does not support them.",
    fields: &[SIGNATURE, MESSAGE, IMAGE, BUTTON, LINK, LIFETIME, SHORT_LINK, ChannelField::extra()],
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
            signature: values.take_text(&SIGNATURE)?,
            message: values.take_text(&MESSAGE)?,
            image: values.take_text(&IMAGE),
            button: values.take_text(&BUTTON),
            link: values.take_text(&LINK),
            lifetime: values.take_number(&LIFETIME),
            short_link: values.take_flag(&SHORT_LINK),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([
            text_value(&SIGNATURE, &self.signature),
            text_value(&MESSAGE, &self.message),
            optional_text_value(&IMAGE, &self.image),
            optional_text_value(&BUTTON, &self.button),
            optional_text_value(&LINK, &self.link),
            number_value(&LIFETIME, self.lifetime),
            flag_value(&SHORT_LINK, self.short_link),
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
