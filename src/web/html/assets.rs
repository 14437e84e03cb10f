//! What a served page loads from its server: the icon, the stylesheet and the script. A name has the hash of what it names.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// The stylesheet of served pages: that of every page, and what only they show.
const STYLE: &str = concat!(include_str!("style.css"), include_str!("run.css"), include_str!("pages.css"));
/// What stands for the pages beside their titles.
const ICON: &str = include_str!("icon.svg");
/// The script, without which every page works too.
const SCRIPT: &str = include_str!("pages.js");

/// A file that pages load.
pub struct Asset {
    stem: &'static str,
    ending: &'static str,
    hash: LazyLock<String>,
    /// What it is.
    pub kind: &'static str,
    /// What stands in it.
    pub text: &'static str,
}

/// The files that pages load: icon, stylesheet, script.
pub static ASSETS: [Asset; 3] = [
    Asset { stem: "pages", ending: "svg", hash: LazyLock::new(|| hash_text(ICON)), kind: "image/svg+xml", text: ICON },
    Asset {
        stem: "pages",
        ending: "css",
        hash: LazyLock::new(|| hash_text(STYLE)),
        kind: "text/css; charset=utf-8",
        text: STYLE,
    },
    Asset {
        stem: "pages",
        ending: "js",
        hash: LazyLock::new(|| hash_text(SCRIPT)),
        kind: "text/javascript; charset=utf-8",
        text: SCRIPT,
    },
];

impl Asset {
    /// Its name below `/static/`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.{}", self.stem, *self.hash, self.ending)
    }

    /// Its address.
    #[must_use]
    pub fn url_path(&self) -> String {
        format!("/static/{}", self.file_name())
    }
}

fn hash_text(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(6).fold(String::new(), |mut hash, byte| {
        // What is written to a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_is_short_and_loads_nothing() {
        assert!(SCRIPT.lines().count() <= 120);
        for refused in ["http:", "https:", "eval(", "import ", "Function("] {
            assert!(!SCRIPT.contains(refused), "{refused}");
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
