//! Rules for single files and for commands. Rules that compare several files are in `check::rules`.

/// Defines rules, each as a static, and a list of them for the parent module.
///
/// A static is private unless a visibility precedes its severity.
#[macro_export]
macro_rules! define_rules {
    ($list:ident: $($vis:vis $severity:ident $rule:ident = $id:literal {
        cause: $cause:literal,
        example: [$($example:literal),+ $(,)?],
        fix: $fix:literal,
    })*) => {
        $(
            #[doc = $cause]
            $vis static $rule: $crate::finding::Rule = $crate::finding::Rule::$severity(
                $id,
                $crate::finding::RuleText { cause: $cause, example: &[$($example),+], fix: $fix },
            );
        )*

        pub(super) static $list: &[&$crate::finding::Rule] = &[$(&$rule),*];
    };
}

mod campaign;
mod commands;
mod files;

use super::Rule;

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
