//! The text of a file as findings may show it: without anything that could be a secret.
//!
//! Every byte is replaced by one byte, so places stay right.

use super::profile::is_environment_name;

/// What the private half of an approver's key begins with, which a person may write in the place of the public half.
const PRIVATE_HALF: &str = "ed25519-private:";

/// The text of gateways.yaml with everything behind `api_key` and `secret` replaced, unless it names `env` or `file`. The
/// private half of an approver's key is replaced wherever it is.
pub(super) fn conceal_keys(text: &str) -> String {
    conceal_lines(text, find_key)
}

/// The text of a campaign file with every address under `notify` replaced.
pub(super) fn conceal_addresses(text: &str) -> String {
    let mut inside = false;
    conceal_lines(text, |line| {
        let goes_on = inside && line.starts_with([' ', '\t', '}', '\r', '\n']);
        inside = goes_on || line.contains("notify");
        if inside { find_address(line) } else { None }
    })
}

/// The same text with the rest of each line replaced behind where a secret begins, or the next line where nothing is left.
fn conceal_lines(text: &str, mut begin: impl FnMut(&str) -> Option<usize>) -> String {
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
fn find_key(line: &str) -> Option<usize> {
    let ends = [find_end("api_key", line), find_key_end("secret", line), find_end(PRIVATE_HALF, line)];
    ends.into_iter().flatten().min().filter(|_| !line.trim_start().starts_with('#'))
}

/// Where a line's `url:` ends, or what an address begins with.
fn find_address(line: &str) -> Option<usize> {
    [find_end("://", line), find_key_end("url", line)].into_iter().flatten().min()
}

fn find_end(word: &str, line: &str) -> Option<usize> {
    line.find(word).map(|at| at + word.len())
}

/// Where a word ends that is the name of a key.
fn find_key_end(word: &str, line: &str) -> Option<usize> {
    find_end(word, line).filter(|at| line[*at..].trim_start_matches(['"', '\'', ' ']).starts_with(':'))
}

/// Whether it says `env: NAME` or `file: PATH`, as a flow map or as the first key of a block.
fn is_reference(value: &str) -> bool {
    let inner = value.trim().trim_start_matches('{').trim_start();
    match inner.strip_prefix("env:") {
        Some(name) => is_environment_name(name.split(['}', '#']).next().unwrap_or("").trim()),
        None => inner.is_empty() || inner.starts_with("file:") && !inner.contains("://"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literal_key_is_concealed() {
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
            ("  by: { O: ed25519-private:s3cret }\n", "  by: { O: ed25519-private:****** *\n"),
        ];
        for (text, shown) in cases {
            assert_eq!(conceal_keys(text), shown, "{text}");
        }
    }

    #[test]
    fn literal_notify_address_is_concealed() {
        let cases = [
            ("notify: { url: https://s3cret }\n", "notify: { url: ************** *\n"),
            ("notify:\n  url: s3cret\n  local: true\n", "notify:\n  url: ******\n  local: true\n"),
            ("notify:\n\n  url:\n    s3cret\nname: x\n", "notify:\n\n  url:\n    ******\nname: x\n"),
            ("notify: https://s3cret\n", "notify: https://******\n"),
            ("notify:\n  ulr: 'https://s3cret'\n", "notify:\n  ulr: 'https://*******\n"),
            ("notify: { url: { file: https://s3cret } }\n", "notify: { url: * ***** ************** * *\n"),
            ("notify: { url: { env: URL } }\n", "notify: { url: { env: URL } }\n"),
            (
                "notify: { local: true }\nlink: https://a.example\n",
                "notify: { local: true }\nlink: https://a.example\n",
            ),
            (
                "channels:\n  - sms: { message: \"url: https://a\" }\n",
                "channels:\n  - sms: { message: \"url: https://a\" }\n",
            ),
        ];
        for (text, shown) in cases {
            assert_eq!(conceal_addresses(text), shown, "{text}");
        }
    }

    proptest! {
        #[test]
        fn concealing_keeps_positions(text: String) {
            let text = text.replace("a", "api_key: ").replace("b", "notify: { url: ");
            prop_assert_eq!(conceal_keys(&text).len(), text.len());
            prop_assert_eq!(conceal_addresses(&text).len(), text.len());
        }
    }
}
