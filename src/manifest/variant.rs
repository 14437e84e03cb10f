//! Variants of a campaign that are tried against each other, and who gets none of them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Brief, Share};
use crate::domain::{Allotment, Content, Text};

/// One of several messages, of which each person gets one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// The part of all people who get it.
    pub share: Share,
    /// What it says, where it says something else than the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content<Text>>,
    /// Its own constants, in the place of those of the campaign or beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vars: Vec<(String, String)>,
}

/// The part of the people who get nothing, to compare with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdout {
    /// How many of them.
    pub share: Share,
    /// The group of campaigns that leave out the same people; nothing for this campaign alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A message that some people get: a variant, or the one of a campaign without variants.
#[derive(Clone, Debug)]
pub struct Arm<'b> {
    /// The variant's name; nothing without variants.
    pub name: Option<&'b str>,
    /// What it says.
    pub content: &'b Content<Text>,
    /// The constants of its texts.
    pub vars: Cow<'b, [(String, String)]>,
}

/// What a variant is called in its own texts.
pub const VARIANT: &str = "variant";

impl Brief {
    /// The messages that people get one of, in the order of the file; never none.
    #[must_use]
    pub fn arms(&self) -> Vec<Arm<'_>> {
        if self.variants.is_empty() {
            return vec![Arm { name: None, content: &self.content, vars: Cow::Borrowed(&self.vars) }];
        }
        let mut arms = Vec::with_capacity(self.variants.len());
        for variant in &self.variants {
            let own = |name: &String| variant.vars.iter().any(|(other, _)| other == name);
            let shared = self.vars.iter().filter(|(name, _)| !own(name));
            let named = (VARIANT.to_owned(), variant.name.clone());
            arms.push(Arm {
                name: Some(&variant.name),
                content: variant.content.as_ref().unwrap_or(&self.content),
                vars: Cow::Owned(shared.chain(&variant.vars).cloned().chain([named]).collect()),
            });
        }
        arms
    }

    /// What is said, each content once: that of the campaign, then those of variants that say something else.
    pub fn contents(&self) -> impl Iterator<Item = &Content<Text>> {
        std::iter::once(&self.content).chain(self.variants.iter().filter_map(|variant| variant.content.as_ref()))
    }

    /// The names of the constants that its texts may use, of any variant.
    #[must_use]
    pub fn constants(&self) -> Vec<&str> {
        let own = self.variants.iter().flat_map(|variant| &variant.vars);
        let named = (!self.variants.is_empty()).then_some(VARIANT);
        self.vars.iter().chain(own).map(|(name, _)| name.as_str()).chain(named).collect()
    }

    /// How its people are divided.
    #[must_use]
    pub fn allotment(&self) -> Allotment {
        let shares: Vec<u64> = self.variants.iter().map(|variant| variant.share.hundredths().into()).collect();
        let allotment = Allotment::new(&self.name, &shares);
        match &self.holdout {
            Some(Holdout { share, group }) => {
                allotment.holding_out(group.as_deref().unwrap_or(&self.name), share.hundredths().into())
            }
            None => allotment,
        }
    }
}
