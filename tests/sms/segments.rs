//! SMS parts compared with a second implementation, which encodes texts and splits the encoded bytes.

use std::collections::HashMap;

use campaign_core::domain::{SmsEncoding, measure_sms};

use crate::support::Chance;

/// The default alphabet of 3GPP TS 23.038, in the order of the codes 0x00 to 0x7F. `␛` is the escape to the extension
/// table.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ␛ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
                     ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/// The extension table: codes and characters.
const EXTENSION: [(u8, char); 10] = [
    (0x0a, '\u{c}'),
    (0x14, '^'),
    (0x28, '{'),
    (0x29, '}'),
    (0x2f, '\\'),
    (0x3c, '['),
    (0x3d, '~'),
    (0x3e, ']'),
    (0x40, '|'),
    (0x65, '€'),
];
const ESCAPE: u8 = 0x1b;

/// The septets of each character.
fn build_alphabet() -> HashMap<char, Vec<u8>> {
    let basic =
        BASIC.chars().zip(0..).filter(|(_, code)| *code != ESCAPE).map(|(character, code)| (character, vec![code]));
    basic.chain(EXTENSION.map(|(code, character)| (character, vec![ESCAPE, code]))).collect()
}

/// Splits encoded units into parts and counts the parts. A part never ends after a unit that needs the next unit.
fn count_parts<U: Copy>(units: &[U], single_limit: usize, part_limit: usize, needs_next: impl Fn(U) -> bool) -> usize {
    if units.len() <= single_limit {
        return usize::from(!units.is_empty());
    }
    let (mut parts, mut rest) = (0, units);
    while !rest.is_empty() {
        let mut end = rest.len().min(part_limit);
        while needs_next(rest[end - 1]) {
            end -= 1;
        }
        (parts, rest) = (parts + 1, &rest[end..]);
    }
    parts
}

/// The encoding, the number of units and the number of parts of a text.
fn measure_encoded(alphabet: &HashMap<char, Vec<u8>>, text: &str) -> (SmsEncoding, usize, usize) {
    let septets: Option<Vec<&[u8]>> =
        text.chars().map(|character| alphabet.get(&character).map(Vec::as_slice)).collect();
    match septets {
        Some(septets) => {
            let septets = septets.concat();
            (SmsEncoding::Gsm7, septets.len(), count_parts(&septets, 160, 153, |septet| septet == ESCAPE))
        }
        None => {
            let units: Vec<u16> = text.encode_utf16().collect();
            (SmsEncoding::Ucs2, units.len(), count_parts(&units, 70, 67, |unit| (0xd800..0xdc00).contains(&unit)))
        }
    }
}

#[test]
fn sms_parts_agree_with_encoded_bytes_for_random_texts() {
    let (alphabet, mut chance) = (build_alphabet(), Chance::seeded());
    assert_eq!(alphabet.len(), 127 + 10);
    let kinds: [Vec<char>; 5] = [
        "abc XYZ012.,!".chars().collect(),
        "ab€[]^{}|~\\é\n\u{c}".chars().collect(),
        BASIC.chars().filter(|character| *character != '␛').collect(),
        "Привіт, яїєґ ’—“”…«»\u{a0}".chars().collect(),
        "ab я😀🇺🇦👨\u{200d}👩 é€\t`ç".chars().collect(),
    ];
    let mut texts_by_parts = [0; 8];
    for _ in 0..100_000 {
        let mut below = |end: usize| usize::try_from(chance.below(end as u64)).expect("a small number");
        let (first, second) = (below(5), below(5));
        // Half of the texts use one kind of character. The others include a few characters of another kind.
        let rare = if below(2) == 0 { 0 } else { 1 + below(40) };
        let length = below(360);
        let text: String = (0..length)
            .map(|_| {
                let kind = &kinds[if below(100) < rare { second } else { first }];
                kind[below(kind.len())]
            })
            .collect();
        let measured = measure_sms(&text);
        assert_eq!((measured.encoding, measured.units, measured.parts), measure_encoded(&alphabet, &text), "{text:?}");
        texts_by_parts[measured.parts.min(7)] += 1;
    }
    assert!(texts_by_parts.iter().all(|texts| *texts > 100), "{texts_by_parts:?}");
}
