//! The filters `money` and `date`: what a cell holds, as the campaign's language writes it.

use jiff::civil::Date;
use jiff::fmt::strtime;
use tera::{Error, Kwargs, State, TeraResult, Value};

use crate::domain::Language;

/// The name under which the context holds the code of the campaign's language; no text can use it.
pub(super) const LANGUAGE: &str = "__language";
/// How messages about a cell begin that is no amount or no date; the words behind say why.
pub(super) const NO_AMOUNT: &str = "No amount: ";
pub(super) const NO_DATE: &str = "No date: ";

/// The spellings of dates in cells.
const DATES: [&str; 3] = ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d"];

/// The language that the filter names, or the campaign's.
fn language(kwargs: &Kwargs, state: &State) -> TeraResult<Language> {
    let named: Option<&str> = kwargs.get("language")?;
    match named {
        Some(code) => Language::from_code(code).ok_or_else(|| {
            Error::message(format!("there is no language `{code}` here, only {}", Language::CODES.join(", ")))
        }),
        None => {
            let code: Option<String> = state.get(LANGUAGE)?;
            Ok(code.and_then(|code| Language::from_code(&code)).unwrap_or_default())
        }
    }
}

/// An amount with its thousands apart, rounded to hundredths: `4392.66` is `4 392,66` in Ukrainian.
pub(super) fn money(value: &Value, kwargs: Kwargs, state: &State) -> TeraResult<String> {
    let language = language(&kwargs, state)?;
    let hundredths = hundredths(&value.to_string()).map_err(|why| Error::message(format!("{NO_AMOUNT}{why}")))?;
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

/// The hundredths of an amount as people write it, or why it is none.
fn hundredths(text: &str) -> Result<i128, &'static str> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\'' | '’')).collect();
    if digits.is_empty() {
        return Err("empty");
    }
    let (minus, digits) = digits.strip_prefix('-').map_or((false, digits.as_str()), |rest| (true, rest));
    let (whole, fraction) = match (digits.rfind(','), digits.rfind('.')) {
        (Some(comma), Some(point)) => digits.split_at(comma.max(point)),
        (Some(comma), None) if digits.len() - comma == 4 => return Err("comma"),
        (Some(comma), None) => digits.split_at(comma),
        (None, Some(point)) => digits.split_at(point),
        (None, None) => (digits, ""),
    };
    let fraction = fraction.trim_start_matches([',', '.']);
    let whole: String = whole.chars().filter(|c| !matches!(c, ',' | '.')).collect();
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 15 || !all_digits(&whole) || !all_digits(fraction) {
        return Err("letters");
    }
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let number: i128 = format!("{whole}{thousandths}").parse().map_err(|_| "letters")?;
    let rounded = (number + 5) / 10;
    Ok(if minus { -rounded } else { rounded })
}

/// A date in words, or in the digits of `format`: `2026-12-05` is `5 грудня 2026` in Ukrainian.
pub(super) fn date(value: &Value, kwargs: Kwargs, state: &State) -> TeraResult<String> {
    let language = language(&kwargs, state)?;
    let text = value.to_string();
    let refuse = |why: &str| Error::message(format!("{NO_DATE}{why}"));
    // A time may stand behind the date.
    let day = text.trim().split([' ', 'T']).next().unwrap_or_default();
    if day.is_empty() {
        return Err(refuse("empty"));
    }
    let date =
        DATES.into_iter().find_map(|format| Date::strptime(format, day).ok()).ok_or_else(|| refuse("letters"))?;
    let format: Option<&str> = kwargs.get("format")?;
    match format {
        Some(format) => strtime::format(format, date).map_err(|_| refuse("format")),
        None => Ok(language.date((date.day(), date.month(), date.year()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, expected) in [
            ("4392.66", Ok(439_266)),
            ("4 392,66", Ok(439_266)),
            ("4\u{a0}392,66", Ok(439_266)),
            ("4,392.66", Ok(439_266)),
            ("4.392,66", Ok(439_266)),
            ("1200", Ok(120_000)),
            ("-12.5", Ok(-1_250)),
            ("12.345", Ok(1_235)),
            ("", Err("empty")),
            ("1,200", Err("comma")),
            ("12 UAH", Err("letters")),
            (".5", Err("letters")),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
    }
}
