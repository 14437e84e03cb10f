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

/// Every rule of what is read.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let lists = [
        files::ALL,
        yaml::ALL,
        keys::ALL,
        campaign::ALL,
        text::ALL,
        list::ALL,
        profile::ALL,
        scenario::ALL,
        commands::ALL,
    ];
    lists.into_iter().flatten().copied()
}
