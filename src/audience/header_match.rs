//! Which column somebody means by a header.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::digits::is_invisible;

/// The headers of a list, to be found by what people write for them.
pub(super) struct HeaderIndex<'h> {
    exact: HashMap<&'h str, usize>,
    headers: &'h [String],
    /// The columns by what stays of their headers without what is easily mistaken; made when it is needed.
    forgiving: OnceCell<HashMap<String, Vec<usize>>>,
}

/// What a header means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderMatch {
    Column(usize),
    /// It may be any of these, and is none of them exactly.
    Several(Vec<usize>),
    Nothing,
}

impl<'h> HeaderIndex<'h> {
    pub(super) fn of(headers: &'h [String]) -> Self {
        let mut exact = HashMap::with_capacity(headers.len());
        for (column, header) in headers.iter().enumerate() {
            exact.entry(header.as_str()).or_insert(column);
        }
        Self { exact, headers, forgiving: OnceCell::new() }
    }

    /// The first column that is headed so, else the only one that is but for case, spaces and the form of an apostrophe.
    pub(super) fn find(&self, header: &str) -> HeaderMatch {
        if let Some(&column) = self.exact.get(header.trim()) {
            return HeaderMatch::Column(column);
        }
        let forgiving = self.forgiving.get_or_init(|| {
            let mut columns: HashMap<String, Vec<usize>> = HashMap::with_capacity(self.headers.len());
            for (column, header) in self.headers.iter().enumerate().filter(|(_, header)| !header.is_empty()) {
                columns.entry(normalize_header(header)).or_default().push(column);
            }
            columns
        });
        match forgiving.get(&normalize_header(header)).map(Vec::as_slice) {
            None => HeaderMatch::Nothing,
            Some([column]) => HeaderMatch::Column(*column),
            Some(several) => HeaderMatch::Several(several.to_vec()),
        }
    }
}

/// A header without what is easily mistaken: case, how wide a space is, the form of an apostrophe, what nobody sees.
fn normalize_header(header: &str) -> String {
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
    fn header_is_found_by_a_similar_spelling() {
        let headers = ["Phone", "Ім’я  клієнта", "NAME", "Name", "city", "City", ""].map(str::to_owned);
        let headers = HeaderIndex::of(&headers);
        for (written, meant) in [
            ("Phone", HeaderMatch::Column(0)),
            ("phone", HeaderMatch::Column(0)),
            (" \u{a0}PHONE\u{200b} ", HeaderMatch::Column(0)),
            ("ім'я\u{a0}клієнта", HeaderMatch::Column(1)),
            ("Name", HeaderMatch::Column(3)),
            ("name", HeaderMatch::Several(vec![2, 3])),
            ("city", HeaderMatch::Column(4)),
            ("street", HeaderMatch::Nothing),
        ] {
            assert_eq!(headers.find(written), meant, "{written:?}");
        }
    }
}
