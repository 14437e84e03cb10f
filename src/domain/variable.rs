//! Names of variables: what a text can call a column or a constant.
//!
//! The words of the template language stand here once; whoever judges a name asks here.

/// Names that every text has besides columns and constants, the same for all recipients.
pub const CAMPAIGN_VARIABLES: [&str; 2] = ["campaign", "today"];
/// Names that a recipient's text has besides.
pub const ROW_VARIABLES: [&str; 2] = ["row", "recipient"];

/// Words that are a value of their own.
pub const LITERALS: [&str; 7] = ["true", "True", "false", "False", "none", "None", "null"];
/// Words that stand before a value, behind one or between two.
pub const OPERATORS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "for"];
/// Words that the language keeps for its blocks.
const BLOCK_WORDS: [&str; 4] = ["loop", "self", "break", "continue"];

/// Whether it means something in every text already.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    CAMPAIGN_VARIABLES.contains(&name) || ROW_VARIABLES.contains(&name)
}

/// Whether it is a word of the template language, or looks like one of its engine's own names.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let lists: [&[&str]; 3] = [&LITERALS, &OPERATORS, &BLOCK_WORDS];
    name.starts_with("__") || lists.iter().any(|words| words.contains(&name))
}

/// Whether a text can use it for a column or a constant: Latin letters, digits and `_`, no digit first, not taken.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    let starts = |first: char| first == '_' || first.is_ascii_alphabetic();
    name.starts_with(starts)
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && !is_built_in(name)
        && !is_reserved(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_and_malformed_names_are_not_variables() {
        for name in ["phone", "_x1", "First", "rows", "nothing", "iff", "NONE"] {
            assert!(is_variable(name), "{name:?}");
        }
        for name in ["", "1st", "First name", "Ім'я", "місто", "a-b", "__tera_context", "__x"] {
            assert!(!is_variable(name), "{name:?}");
        }
        for name in
            CAMPAIGN_VARIABLES.into_iter().chain(ROW_VARIABLES).chain(LITERALS).chain(OPERATORS).chain(BLOCK_WORDS)
        {
            assert!(!is_variable(name), "{name:?}");
        }
    }
}
