//! Rules for what is read: files, keys, texts, lists. Rules that compare several files are in `check::rules`.

/// Defines rules, and the list of them.
macro_rules! rules {
    ($($severity:ident $rule:ident = $id:literal {
        cause: $cause:literal,
        example: [$($example:literal),+ $(,)?],
        fix: $fix:literal,
    })*) => {
        $(
            #[doc = $cause]
            pub static $rule: Rule =
                Rule::$severity($id, RuleText { cause: $cause, example: &[$($example),+], fix: $fix });
        )*

        pub(super) static ALL: &[&Rule] = &[$(&$rule),*];
    };
}

mod campaign;
mod commands;
mod files;
mod keys;
mod list;
mod profile;
mod scenario;
mod text;
mod yaml;

use super::{Rule, RuleText};

pub use campaign::*;
pub use commands::*;
pub use files::*;
pub use keys::*;
pub use list::*;
pub use profile::*;
pub use scenario::*;
pub use text::*;
pub use yaml::*;

/// All rules of this folder, in groups.
pub static GROUPS: &[(&str, &[&Rule])] = &[
    ("Files", files::ALL),
    ("YAML", yaml::ALL),
    ("Keys and values", keys::ALL),
    ("Campaign files", campaign::ALL),
    ("Message templates", text::ALL),
    ("Recipient lists", list::ALL),
    ("Gateway profiles", profile::ALL),
    ("Sandbox scenarios", scenario::ALL),
    ("Commands", commands::ALL),
];
