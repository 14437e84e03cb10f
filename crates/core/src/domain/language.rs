//! Languages of messages, with their date and amount formats.

use serde::{Deserialize, Serialize};

use super::Region;

/// A language for the amounts and dates in texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Ukrainian.
    Uk,
    /// Polish.
    Pl,
    /// German.
    De,
    /// French.
    Fr,
    /// Romanian.
    Ro,
}

impl Language {
    /// The codes of all languages in campaign files.
    pub const CODES: [&'static str; 6] = ["uk", "en", "pl", "de", "fr", "ro"];

    /// The language with this code.
    pub fn from_code(code: &str) -> Option<Self> {
        [Self::En, Self::Uk, Self::Pl, Self::De, Self::Fr, Self::Ro]
            .into_iter()
            .find(|language| language.code() == code)
    }

    /// The ISO 639 code.
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Uk => "uk",
            Self::Pl => "pl",
            Self::De => "de",
            Self::Fr => "fr",
            Self::Ro => "ro",
        }
    }

    /// The language of a list's region; English if that language is not supported.
    pub fn for_region(region: Region) -> Self {
        match region.to_string().as_str() {
            "UA" => Self::Uk,
            "PL" => Self::Pl,
            "DE" | "AT" | "CH" | "LI" => Self::De,
            "FR" | "MC" => Self::Fr,
            "RO" | "MD" => Self::Ro,
            _ => Self::En,
        }
    }

    /// The main country of the language. `None` for English, which has several.
    pub fn main_country(self) -> Option<Region> {
        match self {
            Self::En => None,
            Self::Uk => Some(Region::UKRAINE),
            Self::Pl | Self::De | Self::Fr | Self::Ro => self.code().parse().ok(),
        }
    }

    /// The thousands separator and the decimal separator.
    ///
    /// If the thousands separator is a space, it is plain: a no-break space would more than double the length of an SMS
    /// in Latin letters.
    pub fn separators(self) -> (char, char) {
        match self {
            Self::En => (',', '.'),
            Self::De | Self::Ro => ('.', ','),
            Self::Uk | Self::Pl | Self::Fr => (' ', ','),
        }
    }

    /// The names of the months, in the form that follows a day: `грудня`.
    pub fn month_names(self) -> [&'static str; 12] {
        match self {
            Self::En => [
                "January",
                "February",
                "March",
                "April",
                "May",
                "June",
                "July",
                "August",
                "September",
                "October",
                "November",
                "December",
            ],
            Self::Uk => [
                "січня",
                "лютого",
                "березня",
                "квітня",
                "травня",
                "червня",
                "липня",
                "серпня",
                "вересня",
                "жовтня",
                "листопада",
                "грудня",
            ],
            Self::Pl => [
                "stycznia",
                "lutego",
                "marca",
                "kwietnia",
                "maja",
                "czerwca",
                "lipca",
                "sierpnia",
                "września",
                "października",
                "listopada",
                "grudnia",
            ],
            Self::De => [
                "Januar",
                "Februar",
                "März",
                "April",
                "Mai",
                "Juni",
                "Juli",
                "August",
                "September",
                "Oktober",
                "November",
                "Dezember",
            ],
            Self::Fr => [
                "janvier",
                "février",
                "mars",
                "avril",
                "mai",
                "juin",
                "juillet",
                "août",
                "septembre",
                "octobre",
                "novembre",
                "décembre",
            ],
            Self::Ro => [
                "ianuarie",
                "februarie",
                "martie",
                "aprilie",
                "mai",
                "iunie",
                "iulie",
                "august",
                "septembrie",
                "octombrie",
                "noiembrie",
                "decembrie",
            ],
        }
    }

    /// The abbreviated months, in the form that CLDR uses next to a day: `груд.`.
    pub fn month_abbreviations(self) -> [&'static str; 12] {
        split_names(match self {
            Self::En => "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
            Self::Uk => "січ. лют. бер. квіт. трав. черв. лип. серп. вер. жовт. лист. груд.",
            Self::Pl => "sty lut mar kwi maj cze lip sie wrz paź lis gru",
            Self::De => "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
            Self::Fr => "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
            Self::Ro => "ian. feb. mar. apr. mai iun. iul. aug. sept. oct. nov. dec.",
        })
    }

    /// The days of the week, starting with Monday.
    pub fn weekday_names(self) -> [&'static str; 7] {
        split_names(match self {
            Self::En => "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
            Self::Uk => "понеділок вівторок середа четвер пʼятниця субота неділя",
            Self::Pl => "poniedziałek wtorek środa czwartek piątek sobota niedziela",
            Self::De => "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
            Self::Fr => "lundi mardi mercredi jeudi vendredi samedi dimanche",
            Self::Ro => "luni marți miercuri joi vineri sâmbătă duminică",
        })
    }

    /// The abbreviated days of the week from CLDR, starting with Monday.
    pub fn weekday_abbreviations(self) -> [&'static str; 7] {
        split_names(match self {
            Self::En => "Mon Tue Wed Thu Fri Sat Sun",
            Self::Uk => "пн вт ср чт пт сб нд",
            Self::Pl => "pon. wt. śr. czw. pt. sob. niedz.",
            Self::De => "Mo Di Mi Do Fr Sa So",
            Self::Fr => "lun. mar. mer. jeu. ven. sam. dim.",
            Self::Ro => "lun. mar. mie. joi vin. sâm. dum.",
        })
    }

    /// A date in words: `5 грудня 2026`.
    pub fn format_date(self, day: i8, month: i8, year: i16) -> String {
        let index = usize::try_from(month - 1).ok();
        let month = index.and_then(|index| self.month_names().get(index).copied()).unwrap_or_default();
        match self {
            Self::De => format!("{day}. {month} {year}"),
            Self::Fr if day == 1 => format!("1er {month} {year}"),
            _ => format!("{day} {month} {year}"),
        }
    }
}

/// Splits a list of names at its spaces. A missing name is empty.
fn split_names<const N: usize>(list: &'static str) -> [&'static str; N] {
    let mut names = list.split(' ');
    std::array::from_fn(|_| names.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_language_code_is_known() {
        for code in Language::CODES {
            assert_eq!(Language::from_code(code).map(Language::code), Some(code));
            let country = Language::from_code(code).and_then(Language::main_country);
            assert_eq!(country.map_or("en", |country| Language::for_region(country).code()), code);
        }
        assert_eq!(Language::for_region(Region::UKRAINE), Language::Uk);
    }

    #[test]
    fn every_language_names_all_months_and_weekdays() {
        for language in Language::CODES.into_iter().filter_map(Language::from_code) {
            let months = [language.month_names(), language.month_abbreviations()];
            let weekdays = [language.weekday_names(), language.weekday_abbreviations()];
            for names in months.iter().map(|names| &names[..]).chain(weekdays.iter().map(|names| &names[..])) {
                let distinct: HashSet<_> = names.iter().filter(|name| !name.is_empty()).collect();
                assert_eq!(distinct.len(), names.len(), "{names:?}");
            }
        }
    }

    #[test]
    fn dates_follow_the_rules_of_their_language() {
        for (language, date) in [
            (Language::Uk, "5 грудня 2026"),
            (Language::En, "5 December 2026"),
            (Language::De, "5. Dezember 2026"),
            (Language::Pl, "5 grudnia 2026"),
        ] {
            assert_eq!(language.format_date(5, 12, 2026), date);
        }
        assert_eq!(Language::Fr.format_date(1, 8, 2026), "1er août 2026");
    }
}
