//! Queries that the database itself keeps from answering with more than a list may have.
//!
//! The drivers read a row whole before anything here sees it, so that only the server can refuse a long one early. MySQL
//! needs no such query: no row is longer than its `max_allowed_packet`, 64 MiB unless somebody raised it.

use std::fmt::Write as _;

use crate::audience::{CELL_LIMIT, RECORD_LIMIT};

/// What PostgreSQL says of a row that is too long.
pub(super) const LONG_ROW: &str = "campaign: a row is too long";
/// What SQLite answers with instead of a value that is too long.
pub(super) const LONG_VALUE: &[u8] = b"campaign: too long";

/// The same query for PostgreSQL, which fails with [`LONG_ROW`].
///
/// `OFFSET 0` keeps the server from looking at rows that the query itself leaves out, and from changing their order. As
/// text a row has quotes that its values do not have, at most as many again.
pub(super) fn bound_postgres_query(sql: &str) -> String {
    let most = 4 * RECORD_LIMIT;
    format!(
        "SELECT campaign_row.* FROM (SELECT * FROM (\n{sql}\n) AS campaign_query OFFSET 0) AS campaign_row \
         WHERE CASE WHEN octet_length(campaign_row::text) <= {most} THEN true \
         ELSE (left(campaign_row::text, 0) || '{LONG_ROW}')::boolean END"
    )
}

/// The same query for SQLite, which answers with [`LONG_VALUE`]; it knows the length of a value without reading it.
pub(super) fn bound_sqlite_query(sql: &str, columns: usize) -> String {
    let mark = LONG_VALUE.iter().fold(String::new(), |mut mark, byte| {
        let _ = write!(mark, "{byte:02x}");
        mark
    });
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let bounded =
        |name: &String| format!("CASE WHEN octet_length({name}) > {CELL_LIMIT} THEN x'{mark}' ELSE {name} END");
    let cells: Vec<String> = names.iter().map(bounded).collect();
    format!("WITH campaign_list ({}) AS (\n{sql}\n) SELECT {} FROM campaign_list", names.join(", "), cells.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_wrapped_on_lines_of_its_own() {
        let sql = "select 1 -- one";
        for bounded in [bound_postgres_query(sql), bound_sqlite_query(sql, 1)] {
            assert!(bounded.contains("(\nselect 1 -- one\n)"), "{bounded}");
        }
    }

    #[test]
    fn sqlite_columns_need_no_names() {
        let bounded = bound_sqlite_query("select 1, 1", 2);
        assert!(bounded.starts_with("WITH campaign_list (c0, c1) AS"), "{bounded}");
        assert_eq!(bounded.matches("THEN x'63616d706169676e3a20746f6f206c6f6e67'").count(), 2, "{bounded}");
    }
}
