//! Rules for files, keys, texts and lists. Rules that compare several files are in `check::rules`.

/// Defines rules and a list of them.
macro_rules! rules {
    ($list:ident: $($severity:ident $rule:ident = $id:literal {
        cause: $cause:literal,
        example: [$($example:literal),+ $(,)?],
        fix: $fix:literal,
    })*) => {
        $(
            #[doc = $cause]
            pub static $rule: Rule =
                Rule::$severity($id, RuleText { cause: $cause, example: &[$($example),+], fix: $fix });
        )*

        pub(super) static $list: &[&Rule] = &[$(&$rule),*];
    };
}

mod campaign;
mod commands;
mod files;

use super::{Rule, RuleText};

pub use campaign::*;
pub use commands::*;
pub use files::*;

/// All rules of this folder, in groups.
pub static GROUPS: &[(&str, &[&Rule])] = &[
    ("Files", files::FILES),
    ("YAML", files::YAML),
    ("Keys and values", files::KEYS),
    ("Campaign files", campaign::CAMPAIGN),
    ("Message templates", campaign::TEMPLATES),
    ("Recipient lists", files::LIST),
    ("Gateway profiles", commands::PROFILE),
    ("Sandbox scenarios", commands::SCENARIO),
    ("Commands", commands::COMMANDS),
];
