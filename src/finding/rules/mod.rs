//! The rules of what is read: files, keys, texts, lists. Those that judge what was read together stand in `check::rules`.

/// Makes the rules of a list, and the list.
macro_rules! rules {
    ($($severity:ident $rule:ident = $id:literal: $why:literal, $mend:literal;)*) => {
        $(
            #[doc = $why]
            pub static $rule: Rule = Rule::$severity($id, $why, $mend);
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

use super::Rule;

pub use campaign::*;
pub use commands::*;
pub use files::*;
pub use keys::*;
pub use list::*;
pub use profile::*;
pub use scenario::*;
pub use text::*;
pub use yaml::*;

/// Every rule of what is read, by what it judges.
pub static GROUPS: &[(&str, &[&Rule])] = &[
    ("files", files::ALL),
    ("YAML", yaml::ALL),
    ("keys and their values", keys::ALL),
    ("a campaign file", campaign::ALL),
    ("texts", text::ALL),
    ("a list of recipients", list::ALL),
    ("profiles of gateways", profile::ALL),
    ("scenarios of the sandbox", scenario::ALL),
    ("commands", commands::ALL),
];
