//! How the list is written, as far as the campaign says it.

use encoding_rs::Encoding;

use super::Resolver;
use crate::domain::{Delimiter, ListFormat};
use crate::finding::{Finding, did_you_mean, rules};
use crate::manifest::section::ConfigSection;

/// Encodings as people write them, for those who meant one of them.
const ENCODINGS: [&str; 14] = [
    "utf-8",
    "utf-16le",
    "utf-16be",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "windows-1254",
    "windows-1257",
    "koi8-u",
    "koi8-r",
    "iso-8859-2",
    "iso-8859-5",
    "ibm866",
    "x-mac-cyrillic",
];

impl Resolver<'_> {
    /// The form; nothing where a key says nothing that there is, which was told.
    pub(super) fn resolve_list_format(&mut self, recipients: ConfigSection<'_>) -> Option<ListFormat> {
        let encoding = recipients.typed_text("encoding").map(|(label, span)| {
            let encoding = Encoding::for_label_no_replacement(label.as_bytes());
            if encoding.is_none() {
                let finding = Finding::new(&rules::UNKNOWN_ENCODING, format!("unknown encoding `{label}`"));
                let help = match did_you_mean(&label.to_lowercase(), ENCODINGS) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => {
                        "remove `encoding` to have the encoding detected, or write, for example, `windows-1251` or \
                            `utf-16le`"
                            .to_owned()
                    }
                };
                self.report.add(span, finding.help(help));
            }
            encoding
        });
        let delimiter = recipients.typed_text("delimiter").map(|(name, span)| {
            let delimiter = Delimiter::from_name(name);
            if delimiter.is_none() {
                let finding = Finding::new(&rules::UNKNOWN_DELIMITER, format!("`{name}` is not a valid delimiter"));
                let help = "write one character, as in `delimiter: \";\"`, or `delimiter: tab`";
                self.report.add(span, finding.help(help));
            }
            delimiter
        });
        let sheet = recipients.typed_text("sheet").map(|(name, _)| name.to_owned());
        let header_row = recipients.parse_value("header_row");
        Some(ListFormat { encoding: require_valid(encoding)?, delimiter: require_valid(delimiter)?, sheet, header_row })
    }
}

/// What a key says; nothing where it says nothing that there is.
fn require_valid<T>(key: Option<Option<T>>) -> Option<Option<T>> {
    match key {
        None => Some(None),
        Some(None) => None,
        Some(said) => Some(said),
    }
}
