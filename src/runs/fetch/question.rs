//! The text of a query: that it is one, and where the date stands in it. Pure.

/// What stands in a query for the date.
const DATE_PARAMETER: &str = ":today";

/// A query with something of the database's own in place of each `:today`, and how many there are; nothing where more than
/// one query stands there.
pub(super) fn replace_date(sql: &str, place: &str) -> Option<(String, usize)> {
    let (mut text, mut dates, mut rest) = (String::with_capacity(sql.len()), 0, sql);
    while let Some(next) = rest.chars().next() {
        let piece = next_token(rest);
        if piece.len() > next.len_utf8() || next == ':' {
            if rest.starts_with(DATE_PARAMETER) && piece == DATE_PARAMETER {
                text += place;
                dates += 1;
            } else {
                text += piece;
            }
        } else if next == ';' {
            let behind = &rest[1..];
            return is_blank(behind).then_some((text, dates));
        } else {
            text.push(next);
        }
        rest = &rest[piece.len()..];
    }
    Some((text, dates))
}

/// The next piece of a query that is one thing: a text, a name in quotes, a remark, a parameter; else a character.
fn next_token(rest: &str) -> &str {
    let until = |from: usize, end: &str| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    let length = match rest.as_bytes() {
        [b'\'' | b'"' | b'`', ..] => until(1, &rest[..1]),
        [b'-', b'-', ..] => until(2, "\n"),
        [b'/', b'*', ..] => until(2, "*/"),
        // A cast of PostgreSQL.
        [b':', b':', ..] => 2,
        [b':', ..] => 1 + rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len() - 1),
        [b'$', ..] => dollar_quoted_length(rest).unwrap_or(1),
        _ => rest.chars().next().map_or(0, char::len_utf8),
    };
    &rest[..length]
}

/// The length of a text between dollars, as PostgreSQL has them: `$tag$…$tag$`.
fn dollar_quoted_length(rest: &str) -> Option<usize> {
    let tag = &rest[..rest[1..].find('$')? + 2];
    let name = &tag[1..tag.len() - 1];
    let is_tag =
        name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| rest[tag.len()..].find(tag).map_or(rest.len(), |at| tag.len() * 2 + at))
}

/// Whether nothing but remarks stands there.
fn is_blank(rest: &str) -> bool {
    let mut rest = rest.trim_start();
    while rest.starts_with("--") || rest.starts_with("/*") {
        rest = rest[next_token(rest).len()..].trim_start();
    }
    rest.trim_end_matches([';', ' ', '\n', '\r', '\t']).is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn date_is_replaced_only_where_it_is_a_parameter() {
        for (sql, expected) in [
            ("select * from t where d = :today", Some(("select * from t where d = ?", 1))),
            ("select :today, ':today', \":today\" -- :today", Some(("select ?, ':today', \":today\" -- :today", 1))),
            ("select x::text, '2026'::today from t", Some(("select x::text, '2026'::today from t", 0))),
            ("select :todays, a:=:today", Some(("select :todays, a:=?", 1))),
            ("select $$ ; :today $$, $a$ ; $a$;", Some(("select $$ ; :today $$, $a$ ; $a$", 0))),
            ("select 'it''s ;' /* ; */ ; -- end", Some(("select 'it''s ;' /* ; */ ", 0))),
            ("select 1; drop table people", None),
            ("select 1;;", Some(("select 1", 0))),
            ("select 'щ' || :today", Some(("select 'щ' || ?", 1))),
        ] {
            let found = replace_date(sql, "?");
            assert_eq!(found.as_ref().map(|(text, dates)| (text.as_str(), *dates)), expected, "{sql}");
        }
    }

    proptest! {
        #[test]
        fn text_without_the_date_is_unchanged(sql in "[-a:'\"$;/*щ\n ]{0,40}") {
            if let Some((text, dates)) = replace_date(&sql, "?") {
                prop_assert!(dates > 0 || sql.starts_with(&text));
            }
        }
    }
}
