//! The columns of a list, and whether a campaign uses them.

use std::collections::BTreeSet;

use crate::audience::ListHeader;

/// A column of the list.
#[derive(Clone, Debug)]
pub struct ListColumn {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its header as it stands in the list.
    pub header: String,
    /// Its name in texts.
    pub name: String,
    /// Whether the campaign uses it.
    pub is_used: bool,
}

/// The columns of a list except the phone columns, and whether they are used.
pub(super) fn list_columns(header: &ListHeader, used: &BTreeSet<usize>) -> Vec<ListColumn> {
    let columns =
        header.headers().iter().zip(header.names()).enumerate().filter(|(index, _)| !header.phones().contains(*index));
    let column = |(index, (header, name)): (usize, (&String, &String))| ListColumn {
        index,
        header: header.clone(),
        name: name.clone(),
        is_used: used.contains(&index),
    };
    columns.map(column).collect()
}
