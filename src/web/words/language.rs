//! The languages of pages, and which of them somebody reads.

use std::cmp::Ordering;

/// A language of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageLanguage {
    /// English, where nobody says otherwise.
    #[default]
    English,
    /// Ukrainian.
    Ukrainian,
}

impl PageLanguage {
    /// Every language.
    pub const ALL: [PageLanguage; 2] = [PageLanguage::English, PageLanguage::Ukrainian];

    /// Its code, as `lang` of a page has it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            PageLanguage::English => "en",
            PageLanguage::Ukrainian => "uk",
        }
    }

    /// The one that a browser wants most, by its `Accept-Language` (RFC 9110, 12.5.4); English where it wants none of ours.
    #[must_use]
    pub fn from_accept_language(header: &str) -> Self {
        let wanted = |language: &Self| language_weight(header, language.code());
        let ranked = Self::ALL.into_iter().map(|language| (language, wanted(&language)));
        // The first one that nothing is wanted more than.
        let best = ranked.reduce(|best, next| match next.1.total_cmp(&best.1) {
            Ordering::Greater => next,
            _ => best,
        });
        best.filter(|(_, weight)| *weight > 0.0).map(|(language, _)| language).unwrap_or_default()
    }

    /// The one of a locale such as `uk_UA.UTF-8`, as systems name it; English where it is none of ours.
    #[must_use]
    pub fn from_locale(locale: &str) -> Self {
        let code = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| code.eq_ignore_ascii_case(language.code())).unwrap_or_default()
    }
}

/// How much a language is wanted, from 0 to 1: by the range of the header that names it, else by `*`.
fn language_weight(header: &str, code: &str) -> f32 {
    let ranges = header.split(',').filter_map(parse_range);
    let named = |tag: &str| tag.split('-').next().is_some_and(|first| first.eq_ignore_ascii_case(code));
    let (mut own, mut any) = (None, 0.0_f32);
    for (tag, quality) in ranges {
        if named(tag) {
            own = Some(own.map_or(quality, |own: f32| own.max(quality)));
        } else if tag == "*" {
            any = any.max(quality);
        }
    }
    own.unwrap_or(any)
}

/// A range of the header with its quality; nothing where that is no number from 0 to 1.
fn parse_range(text: &str) -> Option<(&str, f32)> {
    let mut pieces = text.split(';').map(str::trim);
    let tag = pieces.next().filter(|tag| !tag.is_empty())?;
    let quality = pieces.find_map(|piece| piece.strip_prefix("q=").or_else(|| piece.strip_prefix("Q=")));
    let quality = quality.map_or(Some(1.0), |quality| quality.parse().ok())?;
    (0.0..=1.0).contains(&quality).then_some((tag, quality))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accept_language_selects_the_preferred_language() {
        use PageLanguage::{English, Ukrainian};
        let table = [
            ("", English),
            ("uk", Ukrainian),
            ("uk-UA,uk;q=0.9,en-US;q=0.8,en;q=0.7", Ukrainian),
            ("en-US,en;q=0.9,uk;q=0.8", English),
            ("de-DE,de;q=0.9,uk;q=0.5,en;q=0.3", Ukrainian),
            ("de, fr;q=0.5", English),
            ("uk;q=0, *", English),
            ("en;q=0, *;q=0.1", Ukrainian),
            ("*", English),
            ("*;q=0.5, uk;q=0.8", Ukrainian),
            ("UK-ua", Ukrainian),
            ("uk;q=2, en;q=0.1", English),
            ("uk;q=x", English),
            ("uk ; Q=0.4 , en ; q=0.3", Ukrainian),
            (";q=1,,uk", Ukrainian),
            ("ukr", English),
        ];
        for (header, language) in table {
            assert_eq!(PageLanguage::from_accept_language(header), language, "{header}");
        }
    }

    #[test]
    fn locale_selects_its_language() {
        let table = [("uk_UA.UTF-8", "uk"), ("uk", "uk"), ("UK@euro", "uk"), ("en_GB", "en"), ("C", "en"), ("", "en")];
        for (locale, code) in table {
            assert_eq!(PageLanguage::from_locale(locale).code(), code, "{locale}");
        }
    }

    proptest! {
        #[test]
        fn any_header_selects_a_language(header in any::<String>(), likely in "[a-z*;,q=.0-9 -]{0,60}") {
            for header in [header, likely] {
                let of = [PageLanguage::from_accept_language(&header), PageLanguage::from_locale(&header)];
                prop_assert!(of.iter().all(|language| PageLanguage::ALL.contains(language)));
            }
        }
    }
}
