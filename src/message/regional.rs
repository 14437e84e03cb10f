//! The filters `money` and `date`, which format cells in the campaign's language.

use jiff::civil::Date;
use jiff::fmt::strtime;
use tera::{Error, Kwargs, State, TeraResult, Value};

use crate::domain::Language;

/// The name under which the context holds the code of the campaign's language; no text can use it.
pub(super) const LANGUAGE: &str = "__language";
/// The beginning of messages about cells that are not amounts or dates; the reason follows.
pub(super) const NO_AMOUNT: &str = "No amount: ";
pub(super) const NO_DATE: &str = "No date: ";

/// The spellings of dates in cells.
const DATE_FORMATS: [&str; 3] = ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d"];

/// The language that the filter names, or the campaign's.
fn choose_language(kwargs: &Kwargs, state: &State) -> TeraResult<Language> {
    let named: Option<&str> = kwargs.get("language")?;
    match named {
        Some(code) => Language::from_code(code).ok_or_else(|| {
            Error::message(format!(
                "unknown language `{code}`; the supported languages are {}",
                Language::CODES.join(", ")
            ))
        }),
        None => {
            let code: Option<String> = state.get(LANGUAGE)?;
            Ok(code.and_then(|code| Language::from_code(&code)).unwrap_or_default())
        }
    }
}

/// An amount with separated thousands, rounded to hundredths: `4392.66` is `4 392,66` in Ukrainian.
pub(super) fn format_money(value: &Value, kwargs: Kwargs, state: &State) -> TeraResult<String> {
    let language = choose_language(&kwargs, state)?;
    let hundredths = match value.as_str() {
        Some(cell) => parse_hundredths(cell),
        None => number_to_hundredths(&value.to_string()),
    };
    let hundredths = hundredths.map_err(|why| Error::message(format!("{NO_AMOUNT}{why}")))?;
    let (thousands, fraction) = language.separators();
    let whole = (hundredths.unsigned_abs() / 100).to_string();
    let mut text = String::from(if hundredths < 0 { "-" } else { "" });
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(thousands);
        }
        text.push(digit);
    }
    match hundredths.unsigned_abs() % 100 {
        0 => {}
        cents => text += &format!("{fraction}{cents:02}"),
    }
    Ok(text)
}

/// The hundredths of an amount as people write it, or why it is not one.
///
/// Groups of three digits stand between the same sign, and the fraction behind another one. A comma or a point before three
/// digits can be either, so such an amount is refused.
fn parse_hundredths(text: &str) -> Result<i128, &'static str> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('’', "'");
    if text.is_empty() {
        return Err("empty");
    }
    let (minus, amount) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.as_str()),
    };
    let groups: Vec<&str> = amount.split([',', '.', ' ', '\'']).collect();
    let signs: Vec<char> = amount.chars().filter(|c| matches!(c, ',' | '.' | ' ' | '\'')).collect();
    let is_digits = |group: &&str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    if !groups.iter().all(is_digits) {
        return Err("letters");
    }
    let (whole, fraction) = match (groups.as_slice(), signs.as_slice()) {
        ([first, last], [',' | '.']) if last.len() == 3 && (1..=3).contains(&first.len()) && *first != "0" => {
            return Err("unclear");
        }
        ([whole @ .., last], [thousands @ .., ',' | '.']) if are_thousands(whole, thousands, signs.last()) => {
            (whole, *last)
        }
        (whole, thousands) if are_thousands(whole, thousands, None) => (whole, ""),
        _ => return Err("letters"),
    };
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let whole = whole.concat();
    if whole.len() > 15 {
        return Err("letters");
    }
    let number: i128 = format!("{whole}{thousandths}").parse().map_err(|_| "letters")?;
    let rounded = (number + 5) / 10;
    Ok(if minus { -rounded } else { rounded })
}

/// Whether groups of digits are the thousands of a number: one group, or groups of three behind the first one, between the same
/// signs. The sign before the fraction is another one.
fn are_thousands(groups: &[&str], signs: &[char], fraction: Option<&char>) -> bool {
    let is_same =
        signs.windows(2).all(|pair| pair[0] == pair[1]) && signs.first().is_none_or(|sign| Some(sign) != fraction);
    match groups {
        [] => false,
        [_] => true,
        [first, others @ ..] => {
            is_same && (1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3)
        }
    }
}

/// The hundredths of a number that a text calculated.
fn number_to_hundredths(text: &str) -> Result<i128, &'static str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    // More digits than three can be no thousands.
    parse_hundredths(&format!("{whole}.{fraction:0<6}"))
}

/// A date in words, or in the digits of `format`: `2026-12-05` is `5 грудня 2026` in Ukrainian.
pub(super) fn format_date(value: &Value, kwargs: Kwargs, state: &State) -> TeraResult<String> {
    let language = choose_language(&kwargs, state)?;
    let text = value.to_string();
    let refuse = |why: &str| Error::message(format!("{NO_DATE}{why}"));
    let (day, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), ""));
    if day.is_empty() {
        return Err(refuse("empty"));
    }
    let is_time = time.is_empty()
        || time.contains(':') && time.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'Z'));
    let read = DATE_FORMATS.into_iter().find_map(|format| Date::strptime(format, day).ok());
    // A year of two digits would be one of the first century.
    let date = read.filter(|date| is_time && date.year() >= 1000).ok_or_else(|| refuse("letters"))?;
    let format: Option<&str> = kwargs.get("format")?;
    match format {
        Some(format) => strtime::format(format, date).map_err(|_| refuse("format")),
        None => Ok(language.format_date((date.day(), date.month(), date.year()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_common_spellings() {
        for (text, expected) in [
            ("4392.66", Ok(439_266)),
            ("4 392,66", Ok(439_266)),
            ("4\u{a0}392,66", Ok(439_266)),
            ("4,392.66", Ok(439_266)),
            ("4.392,66", Ok(439_266)),
            ("1200", Ok(120_000)),
            ("-12.5", Ok(-1_250)),
            ("12.3456", Ok(1_235)),
            ("1250.000000", Ok(125_000)),
            ("1250.000", Ok(125_000)),
            ("0,125", Ok(13)),
            ("0.125", Ok(13)),
            ("1.234.567", Ok(123_456_700)),
            ("1,234,567", Ok(123_456_700)),
            ("-1.500.000", Ok(-150_000_000)),
            ("1 234 567.8", Ok(123_456_780)),
            ("1’234.50", Ok(123_450)),
            ("", Err("empty")),
            ("1,200", Err("unclear")),
            ("2.500", Err("unclear")),
            ("12 UAH", Err("letters")),
            (".5", Err("letters")),
            ("12.34.56", Err("letters")),
            ("1,2,3", Err("letters")),
            ("192.168.1.1", Err("letters")),
            ("05.12.2026", Err("letters")),
            ("12 34", Err("letters")),
            ("1.234,567,890", Err("letters")),
        ] {
            assert_eq!(parse_hundredths(text), expected, "{text}");
        }
        assert_eq!((number_to_hundredths("2.125"), number_to_hundredths("1200")), (Ok(213), Ok(120_000)));
    }
}
