//! Names that templates can use, and names made from headers of any language.

use std::collections::{HashMap, HashSet};

use crate::domain::latin::{is_apostrophe, transliterate};
use crate::domain::variable::is_variable;

/// Headers of customer lists in Ukrainian, Russian and English, and what they are called in templates.
const KNOWN: [(&str, &[&str]); 17] = [
    ("first_name", &["ім'я", "імʼя", "ім’я", "имя", "first name", "firstname", "given name"]),
    ("last_name", &["прізвище", "фамилия", "last name", "lastname", "surname", "family name"]),
    ("middle_name", &["по батькові", "отчество", "middle name", "patronymic"]),
    ("full_name", &["піб", "фио", "п.і.б.", "ф.и.о.", "full name"]),
    ("city", &["місто", "город"]),
    ("address", &["адреса", "адрес"]),
    ("birthday", &["день народження", "дата народження", "день рождения", "дата рождения", "date of birth"]),
    ("date", &["дата"]),
    ("amount", &["сума", "сумма", "amount"]),
    ("debt", &["борг", "долг"]),
    ("discount", &["знижка", "скидка"]),
    ("code", &["код", "промокод", "промо-код", "promo code", "promocode"]),
    ("order", &["замовлення", "номер замовлення", "заказ", "номер заказа", "order number"]),
    ("company", &["компанія", "компания", "организация", "організація"]),
    ("email", &["пошта", "почта", "e-mail", "ел. пошта", "эл. почта", "електронна пошта", "электронная почта"]),
    ("language", &["мова", "язык"]),
    ("note", &["примітка", "примечание", "коментар", "комментарий"]),
];

/// Names that columns have already.
#[derive(Debug, Default)]
pub(super) struct TakenNames {
    names: HashSet<String>,
    /// The number that was last put behind a name.
    numbers: HashMap<String, u32>,
    /// How many names with numbers were tried.
    #[cfg(test)]
    tried: usize,
}

impl TakenNames {
    /// Takes the name, or that name with the first number behind it that makes it free.
    pub(super) fn take_free_name(&mut self, name: String) -> String {
        if self.names.insert(name.clone()) {
            return name;
        }
        let last = self.numbers.entry(name.clone()).or_insert(1);
        loop {
            *last += 1;
            #[cfg(test)]
            {
                self.tried += 1;
            }
            let numbered = format!("{name}_{last}");
            if self.names.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// A name for a column that is none of those taken: a known word, else the header in Latin letters.
pub(super) fn suggest_name(header: &str, column: usize, taken: &mut TakenNames) -> String {
    let lower = header.trim().to_lowercase();
    let known = KNOWN.iter().find(|(_, words)| words.contains(&lower.as_str()));
    let name = match known {
        Some(&(name, _)) => name.to_owned(),
        None if is_variable(header) && header.contains(char::is_alphanumeric) => header.to_owned(),
        None => to_latin_name(&lower),
    };
    let name = if is_variable(&name) { name } else { format!("column_{}", column + 1) };
    taken.take_free_name(name)
}

/// The letters and digits of a lower-case text in Latin script, words joined by `_`.
fn to_latin_name(lower: &str) -> String {
    let mut name = String::new();
    for character in transliterate(lower).chars() {
        match character {
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            apostrophe if is_apostrophe(apostrophe) => {}
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    name.truncate(name.trim_end_matches('_').len());
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn header_in_any_language_gets_a_latin_name() {
        for (header, name) in [
            ("Ім'я", "first_name"),
            ("Имя", "first_name"),
            ("First name", "first_name"),
            ("plan", "plan"),
            ("Бонусна картка №", "bonusna_kartka"),
            ("Loyalty points (2026)", "loyalty_points_2026"),
            ("2026", "column_3"),
            ("顧客", "column_3"),
            ("row", "column_3"),
            ("if", "column_3"),
            ("__id", "id"),
            ("_", "column_3"),
            ("city", "city_2"),
        ] {
            let mut taken = TakenNames::default();
            taken.take_free_name("city".to_owned());
            assert_eq!(suggest_name(header, 2, &mut taken), name, "{header:?}");
        }
    }

    #[test]
    fn equal_headers_are_numbered_in_linear_time() {
        let mut taken = TakenNames::default();
        let last = (0..4_000).map(|_| taken.take_free_name("x_y".to_owned())).last();
        assert_eq!((last, taken.tried), (Some("x_y_4000".to_owned()), 3_999));
    }

    proptest! {
        #[test]
        fn suggested_name_is_valid_and_free(header: String, taken in prop::collection::vec("[a-c]", 0..4)) {
            let mut names = TakenNames::default();
            let mut taken: Vec<String> = taken.into_iter().map(|name| names.take_free_name(name)).collect();
            for _ in 0..3 {
                let name = suggest_name(&header, 0, &mut names);
                prop_assert!(is_variable(&name), "{}", name);
                prop_assert!(!taken.contains(&name));
                taken.push(name);
            }
        }
    }
}
