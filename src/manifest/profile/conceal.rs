//! The text of gateways.yaml as findings may show it: without anything that could be a key.

use super::load::is_environment_name;

/// The same text with everything behind `api_key` and `secret` replaced, unless it names `env` or `file`.
///
/// Every byte is replaced by one byte, so places stay right.
pub(super) fn conceal(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut expects_key = false;
    for line in text.split_inclusive('\n') {
        let (open, rest) = match begin(line) {
            Some(at) => line.split_at(at),
            None if expects_key && !line.trim().is_empty() => ("", line),
            None => {
                shown.push_str(line);
                continue;
            }
        };
        let value = rest.trim_start_matches(['"', '\'', ' ', ':', '\t']);
        expects_key = value.trim().is_empty();
        let (gap, value) = rest.split_at(rest.len() - value.len());
        shown.push_str(open);
        shown.push_str(gap);
        if is_reference(value) {
            shown.push_str(value);
        } else {
            shown.extend(value.bytes().map(|byte| if byte.is_ascii_whitespace() { char::from(byte) } else { '*' }));
        }
    }
    shown
}

/// Where a line's `api_key` or `secret:` ends; a comment has none.
fn begin(line: &str) -> Option<usize> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let end = |word: &str| line.find(word).map(|at| at + word.len());
    let is_key = |&at: &usize| line[at..].trim_start_matches(['"', '\'', ' ']).starts_with(':');
    [end("api_key"), end("secret").filter(is_key)].into_iter().flatten().min()
}

/// Whether it says `env: NAME` or `file: PATH`, as a flow map or as the first key of a block.
fn is_reference(value: &str) -> bool {
    let inner = value.trim().trim_start_matches('{').trim_start();
    match inner.strip_prefix("env:") {
        Some(name) => is_environment_name(name.split(['}', '#']).next().unwrap_or("").trim()),
        None => inner.is_empty() || inner.starts_with("file:"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_literal_key_is_not_shown() {
        let cases = [
            ("  api_key: s3cret\n", "  api_key: ******\n"),
            ("  api_key: \"s3cret\" # x\n", "  api_key: \"******* * *\n"),
            ("  api_key: { env: KEY }\n", "  api_key: { env: KEY }\n"),
            ("  api_key: { env: s3-cret }\n", "  api_key: * **** ******* *\n"),
            ("  api_key s3cret\n", "  api_key ******\n"),
            ("  hook: { secret: s3cret }\n", "  hook: { secret: ****** *\n"),
            ("  api_key: { file: secrets/a.key }\n", "  api_key: { file: secrets/a.key }\n"),
            ("  api_key:\n    env: KEY\n", "  api_key:\n    env: KEY\n"),
            ("  api_key:\n    s3cret\n  rate: 1/s\n", "  api_key:\n    ******\n  rate: 1/s\n"),
            ("a: { api_key: {s3cret} }\n", "a: { api_key: ******** *\n"),
        ];
        for (text, shown) in cases {
            assert_eq!(conceal(text), shown, "{text}");
        }
    }

    proptest! {
        #[test]
        fn places_stay_where_they_are(text: String) {
            let text = text.replace("a", "api_key: ");
            prop_assert_eq!(conceal(&text).len(), text.len());
        }
    }
}
