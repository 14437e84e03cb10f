//! Languages of messages, with their date and amount formats, and the regions where the language of a text is spoken.

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

/// Cyrillic letters that Ukrainian uses, but Russian and Bulgarian do not. Kazakh also uses `і`.
const UKRAINIAN_LETTERS: &str = "іїєґ";
/// Cyrillic letters that only Kazakh uses among the languages of the likely regions.
const KAZAKH_LETTERS: &str = "әғқңөұүһ";

/// Latin letters that only few languages use, and the codes of the likely regions where these languages are spoken.
const LATIN_LETTERS: [(&str, &[&str]); 7] = [
    ("łąęńśźż", &["PL"]),
    ("řěů", &["CZ"]),
    ("ășțţ", &["RO", "MD"]),
    ("ğı", &["TR"]),
    ("ėųį", &["LT"]),
    ("äß", &["DE"]),
    ("èêàùœ", &["FR"]),
];

/// The numbers of letters in texts, by the language that uses them.
#[derive(Default)]
struct LetterCounts {
    all: usize,
    cyrillic: usize,
    georgian: usize,
    ukrainian: usize,
    kazakh: usize,
    /// In the order of [`LATIN_LETTERS`].
    latin: [usize; LATIN_LETTERS.len()],
}

impl LetterCounts {
    fn add_letter(&mut self, letter: char) {
        self.all += 1;
        self.cyrillic += usize::from(('\u{400}'..='\u{52f}').contains(&letter));
        self.georgian += usize::from(('\u{10a0}'..='\u{10ff}').contains(&letter));
        self.ukrainian += usize::from(UKRAINIAN_LETTERS.contains(letter));
        self.kazakh += usize::from(KAZAKH_LETTERS.contains(letter));
        for (count, (letters, _)) in self.latin.iter_mut().zip(LATIN_LETTERS) {
            *count += usize::from(letters.contains(letter));
        }
    }

    /// The codes of the regions that the letters suggest. Empty if the letters show nothing.
    fn suggest_codes(&self) -> &'static [&'static str] {
        // Headers of lists are often in English, so a quarter of the letters is enough.
        let prevails = |count: usize| count > 0 && count * 4 >= self.all;
        if prevails(self.georgian) {
            return &["GE"];
        }
        if prevails(self.cyrillic) {
            return match (self.kazakh, self.ukrainian) {
                (0, 0) => &["UA", "MD", "KZ", "BG"],
                (0, _) => &["UA"],
                _ => &["KZ"],
            };
        }
        let most_frequent = self.latin.into_iter().zip(LATIN_LETTERS).rev().max_by_key(|(count, _)| *count);
        most_frequent.filter(|(count, _)| *count > 0).map_or(&[], |(_, (_, codes))| codes)
    }
}

/// The likely regions where the language of these texts is spoken, according to its letters. Empty if the letters show
/// nothing.
pub fn find_regions_by_letters<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<Region> {
    let mut counts = LetterCounts::default();
    let letters = texts.flat_map(str::chars).filter(|character| character.is_alphabetic());
    letters.flat_map(char::to_lowercase).for_each(|letter| counts.add_letter(letter));
    let codes = counts.suggest_codes();
    Region::LIKELY_REGIONS.into_iter().filter(|region| codes.contains(&region.to_string().as_str())).collect()
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
