//! Detection of the encoding of text that is not UTF-8.
//!
//! Short texts look plausible in several encodings: the bytes of `так` in Windows-1251 are `òàê` in Windows-1254.
//! The country of the recipients and the campaign's own texts decide between them.

use std::collections::BTreeMap;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding, IBM866, ISO_8859_5, KOI8_R, KOI8_U, WINDOWS_1251, X_MAC_CYRILLIC};

use crate::audience::phones::parse_phone_number;
use campaign_core::domain::{Region, find_country};

/// Encodings with Cyrillic letters.
const CYRILLIC_ENCODINGS: [&Encoding; 6] = [WINDOWS_1251, KOI8_U, KOI8_R, ISO_8859_5, IBM866, X_MAC_CYRILLIC];
/// Countries whose main alphabet is Cyrillic.
const CYRILLIC_COUNTRIES: [&str; 9] = ["BG", "BY", "KG", "KZ", "MK", "MN", "RU", "TJ", "UA"];
/// The minimum number of digits in a cell that can be an international phone number.
const MIN_DIGITS: usize = 10;
/// The maximum number of phone numbers that are parsed to find their country.
const MAX_NUMBERS: usize = 200;
/// The maximum length of an example, in characters.
const MAX_EXAMPLE: usize = 40;

/// Evidence for the encoding of a list, apart from its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodingHints {
    /// The declared region of the national numbers.
    pub region: Option<Region>,
    /// The country that other settings suggest, such as the language or the time zone.
    pub country: Option<Region>,
    /// Whether the campaign itself contains Cyrillic letters.
    pub is_cyrillic: bool,
}

impl From<Option<Region>> for EncodingHints {
    fn from(region: Option<Region>) -> Self {
        Self { region, ..Self::default() }
    }
}

/// A part of a file that has characters outside ASCII.
#[derive(Clone, Copy)]
pub(super) struct EncodingSample<'b> {
    /// The first bytes of the file.
    pub(super) head: &'b [u8],
    /// ASCII text immediately before `text`.
    pub(super) before: &'b [u8],
    /// The text from the first character outside ASCII on.
    pub(super) text: &'b [u8],
    /// Whether the file ends with `text`.
    pub(super) ended: bool,
}

/// The probable encoding of a file.
pub(super) struct EncodingGuess {
    pub(super) encoding: &'static Encoding,
    /// A decoded cell, if another encoding is almost as probable.
    pub(super) doubtful_cell: Option<String>,
}

impl EncodingSample<'_> {
    /// Guesses the encoding. `None` if no encoding decodes the text.
    pub(super) fn guess_encoding(self, hints: EncodingHints) -> Option<EncodingGuess> {
        let EncodingSample { text, ended, .. } = self;
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(text, ended);
        let guess_for = |country: Option<Region>| {
            let domain = country.map(|country| country.to_string().to_lowercase());
            detector.guess(domain.as_deref().map(str::as_bytes), Utf8Detection::Deny)
        };
        let of_texts = hints.is_cyrillic.then_some(Region::UKRAINE);
        let of_numbers = self.find_number_country();
        let country = hints.region.or(of_texts).or(hints.country).or(of_numbers);
        let encoding = guess_for(country);
        let decoded = encoding.new_decoder_without_bom_handling().decode_to_utf8_without_replacement(
            text,
            &mut vec![0; 3 * text.len() + 16],
            ended,
        );
        if matches!(decoded.0, DecoderResult::Malformed(..)) {
            return None;
        }
        let is_cyrillic = hints.is_cyrillic || [country, of_numbers].into_iter().flatten().any(writes_cyrillic);
        let is_implausible = is_cyrillic && !CYRILLIC_ENCODINGS.contains(&encoding);
        let depends_on_country = hints.region.is_none() && guess_for(None) != encoding;
        let doubtful_cell = (is_implausible || depends_on_country).then(|| self.decode_first_cell(encoding));
        Some(EncodingGuess { encoding, doubtful_cell })
    }

    /// The most frequent country of the international phone numbers in the file.
    fn find_number_country(self) -> Option<Region> {
        let cells = [self.head, self.text].into_iter().flat_map(|text| text.split(ends_cell));
        let cells = cells.filter(|cell| cell.iter().filter(|byte| byte.is_ascii_digit()).count() >= MIN_DIGITS);
        let numbers =
            cells.take(MAX_NUMBERS).filter_map(|cell| parse_phone_number(str::from_utf8(cell).ok()?, None).ok());
        let mut countries = BTreeMap::<String, (usize, Region)>::new();
        for country in numbers.filter_map(find_country) {
            countries.entry(country.to_string()).or_insert((0, country)).0 += 1;
        }
        countries.into_values().max_by_key(|(count, _)| *count).map(|(_, country)| country)
    }

    /// The first cell with a character outside ASCII.
    fn decode_first_cell(self, encoding: &'static Encoding) -> String {
        let start = self.before.iter().rposition(ends_cell).map_or(0, |end| end + 1);
        let end = self.text.iter().position(ends_cell).unwrap_or(self.text.len());
        let cell = [&self.before[start..], &self.text[..end]].concat();
        let (cell, _) = encoding.decode_without_bom_handling(&cell);
        cell.trim().chars().filter(|character| !character.is_control()).take(MAX_EXAMPLE).collect()
    }
}

fn writes_cyrillic(country: Region) -> bool {
    CYRILLIC_COUNTRIES.contains(&country.to_string().as_str())
}

fn ends_cell(byte: &u8) -> bool {
    matches!(byte, b',' | b';' | b'\t' | b'|' | b'"' | b'\r' | b'\n')
}
