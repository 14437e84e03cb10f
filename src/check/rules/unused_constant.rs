//! Constants of variants that no text uses, because their names are misspelt.

use std::collections::BTreeSet;

use crate::domain::{NamedTemplate, Stage};
use crate::finding::{Finding, Rule, RuleText, did_you_mean};
use crate::manifest::{Campaign, MessageVariant};
use crate::message::{Mentions, find_mentions};

pub(super) static RULE: Rule = Rule::error(
    "unused-constant",
    RuleText {
        cause: "A variant sets a constant that no message uses. Recipients of all variants would get the same message.",
        example: &[
            "vars: { greeting: Hi }",
            "variants: { a: { share: 50%, vars: { greting: Hello } }, b: { share: 50% } }",
            "message: \"{{ greeting }}!\"",
        ],
        fix: "spell the name as it appears in the messages, or remove the constant",
    },
);

/// Unused constants of variants whose names resemble constants that texts use.
pub(super) fn check_unused_constants(campaign: &Campaign) -> Vec<Finding> {
    let brief = &campaign.brief;
    if brief.variants.iter().all(|variant| variant.vars.is_empty()) {
        return Vec::new();
    }
    let texts = brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts).map(|(_, text)| text);
    let mut load = |name: &str| campaign.folders.read_text(name).ok().map(|(_, text)| text);
    let Some(used) = collect_used_names(texts, &mut load) else { return Vec::new() };
    let constants = brief.constant_names();
    let known: Vec<&str> = used.iter().map(String::as_str).filter(|name| constants.contains(name)).collect();
    let of_variant = |variant: &'_ MessageVariant| {
        find_misspelt(variant, &used, &known)
            .into_iter()
            .map(|(name, meant)| {
                let message = format!(
                    "no message uses `{name}`, so this constant has no effect in the variant `{}`",
                    variant.name
                );
                let place = campaign.places.locate_key(&format!("variants.{}.vars.{name}", variant.name));
                Finding::new(&RULE, message).help(format!("did you mean `{meant}`?")).at(place)
            })
            .collect::<Vec<_>>()
    };
    brief.variants.iter().flat_map(of_variant).collect()
}

/// The names that texts and their included texts mention. `None` if an included text is missing.
fn collect_used_names<'t>(
    texts: impl Iterator<Item = &'t NamedTemplate>,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<BTreeSet<String>> {
    let (mut used, mut included, mut left) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for text in texts {
        if NamedTemplate::is_stand_in(&text.name) {
            return None;
        }
        left.push(text.clone());
    }
    while let Some(text) = left.pop() {
        let Mentions { names, texts } = find_mentions(&text);
        used.extend(names);
        for name in texts {
            if included.insert(name.clone()) {
                left.push(NamedTemplate { source: load(&name)?, name });
            }
        }
    }
    Some(used)
}

/// The unused constants of a variant, each with the name that was probably meant.
fn find_misspelt<'v>(
    variant: &'v MessageVariant,
    used: &BTreeSet<String>,
    known: &[&'v str],
) -> Vec<(&'v str, &'v str)> {
    let own = |name: &str| variant.vars.iter().any(|(own, _)| own == name);
    let unused = variant.vars.iter().map(|(name, _)| name.as_str()).filter(|name| !used.contains(*name));
    unused
        .filter_map(|name| Some((name, did_you_mean(name, known.iter().copied().filter(|known| !own(known)))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Percentage;

    fn find_pairs(texts: &[&str], constants: &[&str], own: &[&str]) -> Vec<(String, String)> {
        let texts: Vec<NamedTemplate> =
            texts.iter().map(|source| NamedTemplate { name: "t".into(), source: (*source).into() }).collect();
        let mut load = |name: &str| (name == "part.txt").then(|| "{{ offer }}".to_owned());
        let Some(used) = collect_used_names(texts.iter(), &mut load) else { return Vec::new() };
        let vars = own.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        let variant = MessageVariant { name: "a".into(), share: Percentage::WHOLE, content: None, vars };
        let unused = find_misspelt(&variant, &used, constants);
        unused.into_iter().map(|(name, meant)| (name.to_owned(), meant.to_owned())).collect()
    }

    #[test]
    fn misspelt_constant_is_found_with_its_name() {
        let misspelt = find_pairs(&["{{ greeting }}, {{ name }}"], &["greeting"], &["greting"]);
        assert_eq!(misspelt, [("greting".to_owned(), "greeting".to_owned())]);
    }

    #[test]
    fn constant_that_may_be_used_is_not_found() {
        let fine: [(&[&str], &[&str], &[&str]); 5] = [
            (&["{{ greeting }}"], &["greeting"], &["greeting"]),
            (&["{{ greeting }}"], &["greeting"], &["footer"]),
            (&["{% include 'part.txt' %}{{ ofer }}"], &["ofer"], &["offer"]),
            (&["{% include 'gone.txt' %}{{ greeting }}"], &["greeting"], &["greting"]),
            (&["{{ link_a }}"], &["link_a"], &["link_a", "link_b"]),
        ];
        for (texts, constants, own) in fine {
            assert_eq!(find_pairs(texts, constants, own), [], "{texts:?}");
        }
    }
}
