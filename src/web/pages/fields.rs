//! The fields of a form or of an address.

/// Fields with their values, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Reads them as forms write them.
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// What stands in a field, without the blanks around it; nothing where it is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}

/// A word as it stands in an address.
pub(super) fn encode_path_segment(word: &str) -> String {
    form_urlencoded::byte_serialize(word.as_bytes()).collect::<String>().replace('+', "%20").replace("%40", "@")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_forms_write_them() {
        let fields = FormFields::parse("why=%D1%82%D0%B0%D0%BA+&empty=&why=2&count=%203".as_bytes());
        assert_eq!((fields.get("why"), fields.get("count")), (Some("так"), Some("3")));
        assert_eq!((fields.get("empty"), fields.get("none")), (None, None));
        assert_eq!(encode_path_segment("autumn-sale@3"), "autumn-sale@3");
        assert_eq!(encode_path_segment("a b/?c"), "a%20b%2F%3Fc");
    }
}
