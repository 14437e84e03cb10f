//! The text of gateways.yaml as findings may show it: without anything that could be a key.

/// The same text with everything behind `api_key:` replaced, unless it names `env` or `file`.
///
/// Every byte is replaced by one byte, so places stay right.
pub(super) fn conceal(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut expects_key = false;
    for line in text.split_inclusive('\n') {
        let begins = line.find("api_key").filter(|_| !line.trim_start().starts_with('#'));
        let (open, rest) = match begins {
            Some(at) => line.split_at(at + "api_key".len()),
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

/// Whether it says `env: NAME` or `file: PATH`, as a flow map or as the first key of a block.
fn is_reference(value: &str) -> bool {
    let inner = value.trim().trim_start_matches('{').trim_start();
    inner.starts_with("env:") || inner.starts_with("file:") || inner.is_empty()
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
