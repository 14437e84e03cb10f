//! Names of variables: what a text can call a column or a constant.
//!
//! The words of the template language stand here once; whoever judges a name asks here.

/// Names that every text has besides columns and constants, the same for all recipients.
pub const OF_CAMPAIGN: [&str; 2] = ["campaign", "today"];
/// Names that a recipient's text has besides.
pub const OF_ROW: [&str; 2] = ["row", "recipient"];

/// Words that are a value of their own.
pub const VALUES: [&str; 7] = ["true", "True", "false", "False", "none", "None", "null"];
/// Words that stand before a value, behind one or between two.
pub const OPERATORS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "for"];
/// Words that the language keeps for its blocks.
const OF_BLOCKS: [&str; 4] = ["loop", "self", "break", "continue"];

/// Whether it means something in every text already.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    OF_CAMPAIGN.contains(&name) || OF_ROW.contains(&name)
}

/// Whether it is a word of the template language, or looks like one of its engine's own names.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let lists: [&[&str]; 3] = [&VALUES, &OPERATORS, &OF_BLOCKS];
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
    fn only_plain_names_that_mean_nothing_else_are_variables() {
        for name in ["phone", "_x1", "First", "rows", "nothing", "iff", "NONE"] {
            assert!(is_variable(name), "{name:?}");
        }
        for name in ["", "1st", "First name", "Ім'я", "місто", "a-b", "__tera_context", "__x"] {
            assert!(!is_variable(name), "{name:?}");
        }
        for name in OF_CAMPAIGN.into_iter().chain(OF_ROW).chain(VALUES).chain(OPERATORS).chain(OF_BLOCKS) {
            assert!(!is_variable(name), "{name:?}");
        }
    }
}
