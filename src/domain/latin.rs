//! Cyrillic in Latin letters, by the official Ukrainian table (resolution No. 55 of the Cabinet of Ministers, 2010).
//!
//! Four letters that only Russian has stand beside it. Letters of other scripts stay as they are.

/// The letters, and what they are anywhere but at the beginning of a word.
const LETTERS: [(char, &str); 37] = [
    ('а', "a"),
    ('б', "b"),
    ('в', "v"),
    ('г', "h"),
    ('ґ', "g"),
    ('д', "d"),
    ('е', "e"),
    ('є', "ie"),
    ('ж', "zh"),
    ('з', "z"),
    ('и', "y"),
    ('і', "i"),
    ('ї', "i"),
    ('й', "i"),
    ('к', "k"),
    ('л', "l"),
    ('м', "m"),
    ('н', "n"),
    ('о', "o"),
    ('п', "p"),
    ('р', "r"),
    ('с', "s"),
    ('т', "t"),
    ('у', "u"),
    ('ф', "f"),
    ('х', "kh"),
    ('ц', "ts"),
    ('ч', "ch"),
    ('ш', "sh"),
    ('щ', "shch"),
    ('ь', ""),
    ('ю', "iu"),
    ('я', "ia"),
    ('ё', "e"),
    ('ы', "y"),
    ('э', "e"),
    ('ъ', ""),
];
/// What some of them are at the beginning of a word.
const INITIAL_LETTERS: [(char, &str); 5] = [('є', "ye"), ('ї', "yi"), ('й', "y"), ('ю', "yu"), ('я', "ya")];

/// The text with its Cyrillic letters in Latin ones; apostrophes between them, and soft signs, vanish.
///
/// A letter that becomes several is written in capitals within a word of capitals (`ЩАСТЯ`, `SHCHASTIA`), else with one
/// (`Щастя`, `Shchastia`).
pub(crate) fn transliterate(text: &str) -> String {
    let mut latin = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_word_character(c)).unwrap_or(rest.len());
        if end == 0 {
            latin.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            transliterate_word(&rest[..end], &mut latin);
            rest = &rest[end..];
        }
    }
    latin
}

/// A letter, an apostrophe, or a mark above the letter before it.
fn is_word_character(c: char) -> bool {
    c.is_alphabetic() || is_apostrophe(c) || matches!(c, '\u{300}'..='\u{36f}')
}

/// The apostrophe of Ukrainian as it is typed and printed.
pub(crate) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{2bc}')
}

fn transliterate_word(word: &str, latin: &mut String) {
    let letters: Vec<char> = compose_letters(word);
    let capitals = letters.iter().filter(|c| c.is_uppercase()).count() > 1 && !letters.iter().any(|c| c.is_lowercase());
    let cyrillic = |at: Option<usize>| at.and_then(|at| letters.get(at)).and_then(|c| find_letter(*c));
    let mut begun = false;
    for (at, &letter) in letters.iter().enumerate() {
        let (before, here) = (cyrillic(at.checked_sub(1)), cyrillic(Some(at)));
        match here {
            None if is_apostrophe(letter) && before.is_some() && cyrillic(Some(at + 1)).is_some() => {}
            None => latin.push(letter),
            Some((small, _)) => {
                let written = match before {
                    // `Зг` is not `Zh`, which is `Ж`.
                    Some(('з', _)) if small == 'г' => "gh",
                    _ if begun => find_latin(&LETTERS, small),
                    _ => INITIAL_LETTERS
                        .iter()
                        .find(|(first, _)| *first == small)
                        .map_or(find_latin(&LETTERS, small), |(_, to)| to),
                };
                match (letter.is_uppercase(), capitals) {
                    (false, _) => latin.push_str(written),
                    (true, true) => latin.push_str(&written.to_ascii_uppercase()),
                    (true, false) => {
                        let (first, rest) = written.split_at(written.len().min(1));
                        latin.push_str(&first.to_ascii_uppercase());
                        latin.push_str(rest);
                    }
                }
            }
        }
        begun |= letter.is_alphabetic() && !is_apostrophe(letter);
    }
}

/// The letter as the table has it, with what it becomes; nothing if it is none of the table's.
fn find_letter(letter: char) -> Option<(char, &'static str)> {
    let small = letter.to_lowercase().next()?;
    LETTERS.iter().find(|(from, _)| *from == small).copied()
}

fn find_latin(table: &[(char, &'static str)], small: char) -> &'static str {
    table.iter().find(|(from, _)| *from == small).map_or("", |(_, to)| to)
}

/// The letters of a word, those that some programs write as a letter and a mark above it as one.
fn compose_letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = Vec::with_capacity(word.len());
    for c in word.chars() {
        let whole = match (letters.last(), c) {
            (Some('и'), '\u{306}') => 'й',
            (Some('И'), '\u{306}') => 'Й',
            (Some('і'), '\u{308}') => 'ї',
            (Some('І'), '\u{308}') => 'Ї',
            (Some('е'), '\u{308}') => 'ё',
            (Some('Е'), '\u{308}') => 'Ё',
            _ => {
                letters.push(c);
                continue;
            }
        };
        letters.pop();
        letters.push(whole);
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the resolution.
    const OFFICIAL: &str = "Алушта Alushta, Андрій Andrii, Борщагівка Borshchahivka, Борисенко Borysenko, Вінниця Vinnytsia, \
        Володимир Volodymyr, Гадяч Hadiach, Богдан Bohdan, Згурський Zghurskyi, Ґалаґан Galagan, Ґорґани Gorgany, \
        Донецьк Donetsk, Дмитро Dmytro, Рівне Rivne, Олег Oleh, Есмань Esman, Єнакієве Yenakiieve, Гаєвич Haievych, \
        Короп'є Koropie, Житомир Zhytomyr, Жанна Zhanna, Жежелів Zhezheliv, Закарпаття Zakarpattia, Казимирчук Kazymyrchuk, \
        Медвин Medvyn, Михайленко Mykhailenko, Іванків Ivankiv, Іващенко Ivashchenko, Їжакевич Yizhakevych, \
        Кадиївка Kadyivka, Мар'їне Marine, Йосипівка Yosypivka, Стрий Stryi, Олексій Oleksii, Київ Kyiv, Коваленко Kovalenko, \
        Лебедин Lebedyn, Леонід Leonid, Миколаїв Mykolaiv, Маринич Marynych, Ніжин Nizhyn, Наталія Nataliia, Одеса Odesa, \
        Онищенко Onyshchenko, Полтава Poltava, Петро Petro, Решетилівка Reshetylivka, Рибчинський Rybchynskyi, Суми Sumy, \
        Соломія Solomiia, Тернопіль Ternopil, Троць Trots, Ужгород Uzhhorod, Уляна Uliana, Фастів Fastiv, Філіпчук Filipchuk, \
        Харків Kharkiv, Христина Khrystyna, Біла Bila, Церква Tserkva, Стеценко Stetsenko, Чернівці Chernivtsi, \
        Шевченко Shevchenko, Шостка Shostka, Кишеньки Kyshenky, Щербухи Shcherbukhy, Гоща Hoshcha, Гаращенко Harashchenko, \
        Юрій Yurii, Корюківка Koriukivka, Яготин Yahotyn, Ярошенко Yaroshenko, Костянтин Kostiantyn, Знам'янка Znamianka, \
        Феодосія Feodosiia, Розгон Rozghon";

    #[test]
    fn official_examples_are_transliterated() {
        let pairs: Vec<_> = OFFICIAL.split(", ").collect();
        assert!(pairs.len() > 70);
        for pair in pairs {
            let (cyrillic, latin) = pair.split_once(' ').unwrap();
            assert_eq!(transliterate(cyrillic), latin);
        }
    }

    #[test]
    fn capitals_and_other_alphabets_stay() {
        for (text, latin) in [
            ("ЩАСТЯ", "SHCHASTIA"),
            ("Щастя й щирість", "Shchastia y shchyrist"),
            ("Я ЇХАВ, а Ю. Щ. — ні", "Ya YIKHAV, a Yu. Shch. — ni"),
            ("ЗГОДА, Згода, згода", "ZGHODA, Zghoda, zghoda"),
            ("Нью-Йорк, пів'яблука, об\u{2019}єкт, м\u{2bc}яч", "Niu-York, piviabluka, obiekt, miach"),
            ("it's Olena's 'дім'", "it's Olena's 'dim'"),
            ("-20% на ВСЕ: https://shop.example/?c=Я1", "-20% na VSE: https://shop.example/?c=Ya1"),
            ("объявление, съёмка, Эхо, мыло", "obiavlenye, semka, Ekho, mylo"),
            ("Zażółć, naïve, Ωμέγα", "Zażółć, naïve, Ωμέγα"),
            ("Стри\u{306}, и\u{306}од, і\u{308}жа", "Stri, yod, yizha"),
            ("", ""),
        ] {
            assert_eq!(transliterate(text), latin, "{text}");
        }
    }
}
