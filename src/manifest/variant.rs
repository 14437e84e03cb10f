//! Variants of a campaign that are tried against each other, and who gets none of them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{CampaignBrief, Percentage};
use crate::domain::{MessageContent, NamedTemplate, VariantAllocation};

/// One of several messages, of which each person gets one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageVariant {
    /// Its name: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// The part of all people who get it.
    pub share: Percentage,
    /// What it says, where it says something else than the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<MessageContent<NamedTemplate>>,
    /// Its own constants, in the place of those of the campaign or beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vars: Vec<(String, String)>,
}

/// The part of the people who get nothing, to compare with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdout {
    /// How many of them.
    pub share: Percentage,
    /// The group of campaigns that leave out the same people; nothing for this campaign alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A message that some people get: a variant, or the one of a campaign without variants.
#[derive(Clone, Debug)]
pub struct MessageArm<'b> {
    /// The variant's name; nothing without variants.
    pub name: Option<&'b str>,
    /// What it says.
    pub content: &'b MessageContent<NamedTemplate>,
    /// The constants of its texts.
    pub vars: Cow<'b, [(String, String)]>,
}

/// What a variant is called in its own texts.
pub const VARIANT: &str = "variant";

impl CampaignBrief {
    /// The messages that people get one of, in the order of the file; never none.
    #[must_use]
    pub fn list_arms(&self) -> Vec<MessageArm<'_>> {
        if self.variants.is_empty() {
            return vec![MessageArm { name: None, content: &self.content, vars: Cow::Borrowed(&self.vars) }];
        }
        let mut arms = Vec::with_capacity(self.variants.len());
        for variant in &self.variants {
            let own = |name: &String| variant.vars.iter().any(|(other, _)| other == name);
            let shared = self.vars.iter().filter(|(name, _)| !own(name));
            let named = (VARIANT.to_owned(), variant.name.clone());
            arms.push(MessageArm {
                name: Some(&variant.name),
                content: variant.content.as_ref().unwrap_or(&self.content),
                vars: Cow::Owned(shared.chain(&variant.vars).cloned().chain([named]).collect()),
            });
        }
        arms
    }

    /// What is said, each content once: that of the campaign, then those of variants that say something else.
    pub fn all_contents(&self) -> impl Iterator<Item = &MessageContent<NamedTemplate>> {
        std::iter::once(&self.content).chain(self.variants.iter().filter_map(|variant| variant.content.as_ref()))
    }

    /// The names of the constants that its texts may use, of any variant.
    #[must_use]
    pub fn constant_names(&self) -> Vec<&str> {
        let own = self.variants.iter().flat_map(|variant| &variant.vars);
        let named = (!self.variants.is_empty()).then_some(VARIANT);
        self.vars.iter().chain(own).map(|(name, _)| name.as_str()).chain(named).collect()
    }

    /// How its people are divided.
    #[must_use]
    pub fn variant_allocation(&self) -> VariantAllocation {
        let shares: Vec<u64> = self.variants.iter().map(|variant| variant.share.hundredths().into()).collect();
        let allotment = VariantAllocation::new(&self.name, &shares);
        match &self.holdout {
            Some(Holdout { share, group }) => {
                allotment.with_holdout(group.as_deref().unwrap_or(&self.name), share.hundredths().into())
            }
            None => allotment,
        }
    }
}
