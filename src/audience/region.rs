//! The region whose national numbers a list may hold.

use std::fmt;
use std::str::FromStr;

use rlibphonenumber::PHONE_NUMBER_UTIL;

/// A region that has telephone numbers, by its ISO 3166 code such as `UA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region(rlibphonenumber::Region);

/// Why a text names no region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseRegionError {
    /// The country's other abbreviation was written.
    #[error("`{typed}` is not a region; the code of that country is `{code}`")]
    OtherCode {
        /// What was written.
        typed: String,
        /// The code to write.
        code: &'static str,
    },
    /// No region has that code.
    #[error("`{0}` is not a region; write the two letters of its ISO 3166 code, such as `UA` or `PL`")]
    Unknown(String),
}

impl Region {
    /// Ukraine, whose numbers have rules of their own.
    pub(super) const UKRAINE: Region = Region(rlibphonenumber::Region::UA);

    /// Where a list with national numbers is likely to come from, the likeliest first.
    pub(super) const LIKELY: [Region; 14] = {
        use rlibphonenumber::Region as R;
        [
            Region(R::UA),
            Region(R::PL),
            Region(R::MD),
            Region(R::RO),
            Region(R::KZ),
            Region(R::GE),
            Region(R::LT),
            Region(R::CZ),
            Region(R::DE),
            Region(R::BG),
            Region(R::TR),
            Region(R::FR),
            Region(R::GB),
            Region(R::US),
        ]
    };

    /// The region as the phone library calls it.
    pub(super) fn code(self) -> rlibphonenumber::Region {
        self.0
    }
}

impl FromStr for Region {
    type Err = ParseRegionError;

    fn from_str(text: &str) -> Result<Self, ParseRegionError> {
        let typed = text.trim();
        if typed.eq_ignore_ascii_case("UK") {
            return Err(ParseRegionError::OtherCode { typed: typed.to_owned(), code: "GB" });
        }
        rlibphonenumber::Region::from_code(typed)
            .ok()
            .filter(|region| PHONE_NUMBER_UTIL.get_supported_regions().any(|known| known == *region))
            .map(Region)
            .ok_or_else(|| ParseRegionError::Unknown(typed.to_owned()))
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_written_as_it_was_read() {
        for (text, code) in [("UA", "UA"), ("pl", "PL"), (" Gb ", "GB")] {
            assert_eq!(text.parse::<Region>().unwrap().to_string(), code);
        }
    }

    #[test]
    fn what_is_no_region_is_refused_with_what_to_write() {
        for text in ["", "U", "UKR", "ZZ", "001", "Україна"] {
            assert_eq!(text.parse::<Region>(), Err(ParseRegionError::Unknown(text.into())));
        }
        assert!("UK".parse::<Region>().unwrap_err().to_string().contains("`GB`"));
    }
}
