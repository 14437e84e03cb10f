//! Which column somebody means by a header.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::digits::is_invisible;

/// The headers of a list, to be found by what people write for them.
pub(super) struct Headers<'h> {
    exact: HashMap<&'h str, usize>,
    headers: &'h [String],
    /// The columns by what stays of their headers without what is easily mistaken; made when it is needed.
    forgiving: OnceCell<HashMap<String, Vec<usize>>>,
}

/// What a header means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    Column(usize),
    /// It may be any of these, and is none of them exactly.
    Several(Vec<usize>),
    Nothing,
}

impl<'h> Headers<'h> {
    pub(super) fn of(headers: &'h [String]) -> Self {
        let mut exact = HashMap::with_capacity(headers.len());
        for (column, header) in headers.iter().enumerate() {
            exact.entry(header.as_str()).or_insert(column);
        }
        Self { exact, headers, forgiving: OnceCell::new() }
    }

    /// The first column that is headed so, else the only one that is but for case, spaces and the form of an apostrophe.
    pub(super) fn meant(&self, header: &str) -> Meant {
        if let Some(&column) = self.exact.get(header.trim()) {
            return Meant::Column(column);
        }
        let forgiving = self.forgiving.get_or_init(|| {
            let mut columns: HashMap<String, Vec<usize>> = HashMap::with_capacity(self.headers.len());
            for (column, header) in self.headers.iter().enumerate().filter(|(_, header)| !header.is_empty()) {
                columns.entry(plainly(header)).or_default().push(column);
            }
            columns
        });
        match forgiving.get(&plainly(header)).map(Vec::as_slice) {
            None => Meant::Nothing,
            Some([column]) => Meant::Column(*column),
            Some(several) => Meant::Several(several.to_vec()),
        }
    }
}

/// A header without what is easily mistaken: case, how wide a space is, the form of an apostrophe, what nobody sees.
fn plainly(header: &str) -> String {
    let plain = header.chars().filter(|character| !is_invisible(*character)).map(|character| match character {
        '\u{2019}' | '\u{2018}' | '\u{2bc}' | '`' | '\u{b4}' => '\'',
        other => other,
    });
    let plain: String = plain.collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_by_what_people_write_for_it() {
        let headers = ["Phone", "Ім’я  клієнта", "NAME", "Name", "city", "City", ""].map(str::to_owned);
        let headers = Headers::of(&headers);
        for (written, meant) in [
            ("Phone", Meant::Column(0)),
            ("phone", Meant::Column(0)),
            (" \u{a0}PHONE\u{200b} ", Meant::Column(0)),
            ("ім'я\u{a0}клієнта", Meant::Column(1)),
            ("Name", Meant::Column(3)),
            ("name", Meant::Several(vec![2, 3])),
            ("city", Meant::Column(4)),
            ("street", Meant::Nothing),
        ] {
            assert_eq!(headers.meant(written), meant, "{written:?}");
        }
    }
}
