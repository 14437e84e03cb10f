//! Tests that damaged text is found, and that ordinary text in many languages is not.

use proptest::prelude::*;

use super::*;
use campaign_content::message::mask_tags;
use campaign_core::domain::NamedTemplate;

/// Decodes the UTF-8 bytes of `text` in another encoding, as a misconfigured import would.
fn misread_as(text: &str, encoding: &'static Encoding) -> String {
    encoding.decode_without_bom_handling(text.as_bytes()).0.into_owned()
}

#[test]
fn damaged_text_is_reported_with_its_word() {
    for (cell, kind, word) in [
        ("?????", TextDamage::LostLetters, "?????"),
        ("????? ????????", TextDamage::LostLetters, "?????"),
        ("??", TextDamage::LostLetters, "??"),
        ("??? Smith", TextDamage::LostLetters, "???"),
        ("iPhone ?????? ?????", TextDamage::LostLetters, "??????"),
        ("?????-??????? 5", TextDamage::LostLetters, "?????-???????"),
        ("Ol\u{fffd}na Ko", TextDamage::LostLetters, "Ol\u{fffd}na"),
        ("Anna\u{96} B", TextDamage::ControlCharacter, "Anna\u{96}"),
        ("Anna\u{7}", TextDamage::ControlCharacter, "Anna\u{7}"),
        ("РћР»РµРЅР°", TextDamage::MisreadEncoding, "РћР»РµРЅР°"),
        ("cafÃ©", TextDamage::MisreadEncoding, "cafÃ©"),
        ("le cafГ© noir", TextDamage::MisreadEncoding, "cafГ©"),
        ("Itâ€™s", TextDamage::MisreadEncoding, "Itâ€™s"),
        ("Â£5", TextDamage::MisreadEncoding, "Â£5"),
        ("O&#039;Neil", TextDamage::HtmlEntity, "&#039;"),
        ("&quot;Olena&quot;", TextDamage::HtmlEntity, "&quot;"),
        ("Tom &amp; Co", TextDamage::HtmlEntity, "&amp;"),
        ("a&#x27;b", TextDamage::HtmlEntity, "&#x27;"),
    ] {
        assert_eq!(find_damage(cell).map(|(kind, at)| (kind, &cell[at])), Some((kind, word)), "{cell}");
    }
}

#[test]
fn misread_text_is_found_with_its_original() {
    for name in [
        "Олена",
        "Ґанна Їжак",
        "Рівне",
        "Сергій",
        "Żaneta",
        "Łódź",
        "Jürgen Müller",
        "François",
        "Ștefan",
        "Ελένη",
        "ნინო",
        "Zoë 😀",
    ] {
        for encoding in [WINDOWS_1251, WINDOWS_1252] {
            let damaged = misread_as(name, encoding);
            assert!(matches!(find_damage(&damaged), Some((TextDamage::MisreadEncoding, _))), "{name}: {damaged}");
        }
    }
    assert_eq!(find_misread_word("РћР»РµРЅР°").map(|(_, original)| original).as_deref(), Some("Олена"));
    assert_eq!(find_misread_word("cafÃ©").map(|(_, original)| original).as_deref(), Some("café"));
}

/// Names and sentences as people write them.
const ORDINARY_TEXTS: [&str; 66] = [
    "Олена",
    "Ґанна Їжак",
    "Рівне",
    "Рівненська обл.",
    "СІМ’Я",
    "Світлана",
    "Сєвєродонецьк",
    "СЄ",
    "РІ",
    "Рі",
    "Сі",
    "Віра",
    "Гія",
    "В’ячеслав",
    "В’ІННІ",
    "м. Київ, вул. Р. Ґонти, 5",
    "«Проект Г»",
    "«НГ»",
    "ТОВ «Рось»",
    "ТзОВ «РІО»",
    "Г. Ґ.",
    "Łukasz Żółć",
    "ŚĆ",
    "Ærø",
    "Élodie",
    "CAFÉ», dit-il",
    "« VOILÀ »",
    "«À»",
    "Ça va ?",
    "Vraiment ??",
    "Quoi ???",
    "Jürgen Müßig",
    "„Ä“",
    "»Ä«",
    "Ö–Ü",
    "GRÖẞE",
    "Ștefănescu",
    "Îles",
    "ÎN ȚARĂ",
    "Ñandú",
    "NÃO",
    "SÃO PAULO",
    "Âge",
    "ÂGÉ",
    "São–Rio",
    "Ελένη Παπά",
    "ΆΛΦΑ",
    "ნინო",
    "თბილისი",
    "日本",
    "مريم",
    "Zoë 😀",
    "👍🏽",
    "It’s",
    "20 °C",
    "5 €",
    "What?",
    "Really???",
    "Why ???",
    "Is it? Yes? No?",
    "a?b=1&c=2",
    "https://a.example/?a=1&amp=2&copy=3",
    "R&D",
    "AT&T; Co",
    "Tom & Jerry; Co",
    "&;",
];

#[test]
fn ordinary_text_is_not_damaged() {
    for text in ORDINARY_TEXTS {
        assert_eq!(find_damage(text).map(|(kind, at)| (kind, &text[at])), None, "{text}");
    }
}

#[test]
fn markup_is_found_but_prices_and_links_are_not() {
    type Find = fn(&str) -> Vec<Range<usize>>;
    // The search function, texts with the markup in each, and texts without markup.
    type MarkupCase<'t> = (Find, &'t [(&'t str, &'t str)], &'t [&'t str]);
    let cases: [MarkupCase<'_>; 5] = [
        (
            find_html_tags,
            &[
                ("Hi<br>there", "<br>"),
                ("Hi<br/>x", "<br/>"),
                ("<b>Sale</b>", "<b>"),
                ("a <a href=\"x\">b", "<a href=\"x\">"),
                ("x</p>", "</p>"),
            ],
            &["a < b > c", "<3", "1<2 and 3>2", "<name>", "<Name>", "x <-> y", "<b c>", "<<a"],
        ),
        (
            find_url_escapes,
            &[
                ("Hello%0Aworld", "%0A"),
                ("Hello%20world", "%20"),
                ("%0D%0AHi", "%0D"),
                ("%0ahttps://a.example/?c=", "%0a"),
            ],
            &["https://a.example/?t=a%0Ab%20c", "a.example/x%20y", "-5%20 грн", "100%0", "t=a%20b", "5%"],
        ),
        (
            |text| find_markdown(&mask_tags(&NamedTemplate { name: "t".into(), source: text.into() }), text),
            &[
                ("**Sale** today", "**Sale**"),
                ("Up to **50 percent**!", "**50 percent**"),
                ("Now **-20%**", "**-20%**"),
                ("with __{{ code }}__: x", "__{{ code }}__"),
                ("[our shop](https://shop.example)", "[our shop](https://shop.example)"),
                ("See [it]({{ link }}).", "[it]({{ link }})"),
            ],
            &[
                "100** грн, 200** грн",
                "** умови на сайті",
                "2**3",
                "a ** b ** c",
                "****",
                "card **1234**",
                "*bold*",
                "**5**",
                "Name: ____ Date: ____",
                "a__b__c",
                "snake_case, __",
                "[1](note)",
                "[](https://a.example)",
                "[TEST] (https://a.example)",
            ],
        ),
        (
            |text| find_escaped_line_break(text).into_iter().collect(),
            &[("Hello,\\nOlena", "\\n"), ("a\\r\\nb", "\\r\\n"), ("Sale:\\nshop", "\\n")],
            &["C:\\new", "a\nb", "and/or", "\\"],
        ),
        (
            find_html_entities,
            &[("a&nbsp;b", "&nbsp;"), ("Tom &amp; Co", "&amp;")],
            &["a & b; c", "&nbspx", "?a=1&b=2;"],
        ),
    ];
    for (find, with_markup, without_markup) in cases {
        for (text, part) in with_markup {
            assert_eq!(find(text).into_iter().next().map(|at| &text[at]), Some(*part), "{text}");
        }
        for text in without_markup {
            assert!(find(text).is_empty(), "{text}: {:?}", find(text));
        }
    }
}

#[test]
fn html_entities_are_decoded() {
    for (entity, character) in [("&#039;", "'"), ("&#x27;", "'"), ("&amp;", "&"), ("&nbsp;", " ")] {
        assert_eq!(decode_entity(entity).as_deref(), Some(character));
    }
}

proptest! {
    #[test]
    fn any_text_yields_ranges_of_whole_characters(text: String) {
        let found = [find_html_tags(&text), find_url_escapes(&text), find_markdown(&text, &text), find_html_entities(&text)].concat();
        for at in found.into_iter().chain(find_damage(&text).map(|(_, at)| at)).chain(find_escaped_line_break(&text)) {
            prop_assert!(text.get(at).is_some_and(|part| !part.is_empty()));
        }
    }

    #[test]
    fn words_of_one_alphabet_are_not_damaged(
        text in "[А-Яа-яІіЇїЄєҐґ]{1,12}( [А-Яа-яІіЇїЄєҐґ’]{1,12}){0,3}|[a-zA-ZäöüßÄÖÜ]{1,12}|[a-ząćęłńóśźżŁŻŚ]{1,12}|[a-zăâîșțĂÎȘȚ]{1,12}|[α-ωΑ-Ωάέή]{1,12}|[ა-ჰ]{1,12}",
    ) {
        // In Windows-1251, these letters are lead and continuation bytes of UTF-8. A word without other letters can
        // therefore look misread. Real words do not alternate between them three times.
        prop_assume!(text.split(' ').all(|word| !word.chars().all(|c| "РСІіЇїЄєҐґ’".contains(c))));
        prop_assert_eq!(find_damage(&text), None);
    }

    #[test]
    fn misread_names_are_found(name in "[А-ЯІЇЄҐ][а-яіїєґ]{2,11}", latin: bool) {
        // Only `Ґ` and `ґ` have a different lead byte. No check looks for it, because no name consists only of this
        // letter.
        prop_assume!(name.chars().any(|c| !"Ґґ".contains(c)));
        let damaged = misread_as(&name, if latin { WINDOWS_1252 } else { WINDOWS_1251 });
        prop_assert!(matches!(find_damage(&damaged), Some((TextDamage::MisreadEncoding, _))), "{}", damaged);
    }
}
