//! Names of template variables.
//!
//! The reserved words of the template language are defined only here.

/// Built-in variables, which have the same value for all recipients.
pub const CAMPAIGN_VARIABLES: [&str; 2] = ["campaign", "today"];
/// Built-in variables, which have a different value for each recipient.
pub const ROW_VARIABLES: [&str; 2] = ["row", "recipient"];

/// Words of the template language that are values.
pub const LITERALS: [&str; 7] = ["true", "True", "false", "False", "none", "None", "null"];
/// Operators of the template language.
pub const OPERATORS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "for"];
/// Words that the template language reserves for its blocks.
const BLOCK_WORDS: [&str; 4] = ["loop", "self", "break", "continue"];

/// Whether the name is that of a built-in variable.
pub fn is_built_in(name: &str) -> bool {
    CAMPAIGN_VARIABLES.contains(&name) || ROW_VARIABLES.contains(&name)
}

/// Whether the name is a word of the template language or looks like an internal name of its engine.
pub fn is_reserved(name: &str) -> bool {
    let lists: [&[&str]; 3] = [&LITERALS, &OPERATORS, &BLOCK_WORDS];
    name.starts_with("__") || lists.iter().any(|words| words.contains(&name))
}

/// Whether a column or constant can have this name: Latin letters, digits and `_`, not starting with a digit, and not
/// built in or reserved.
pub fn is_variable(name: &str) -> bool {
    let can_be_first = |first: char| first == '_' || first.is_ascii_alphabetic();
    name.starts_with(can_be_first)
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
