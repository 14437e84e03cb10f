//! Templates of pages and files, compiled once for each language, with their assets.
//!
//! A template is HTML with Tera tags. It extends `frame.html` and fills the blocks `title`, `nav` and `main`; shared
//! parts are components. Texts come from `say(key=…)`, `count(key=…, n=…)` and `kind(of=…, word=…)`, and numbers from
//! `number(n=…)`. Every printed value is escaped, including control and bidirectional characters.
//!
//! A page loads nothing from other hosts and has no inline script and no `style` attribute. A self-contained file
//! embeds its stylesheet and has no script. This module neither reads the ledger nor makes decisions.

#[cfg(test)]
mod file_page_tests;
#[cfg(test)]
#[path = "../../../../../tests/support/html.rs"]
pub(in crate::web) mod read_html;
#[cfg(test)]
mod served_page_tests;

use std::fmt;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tera::{Context, Kwargs, State, Tera, TeraResult, Value};

use crate::web::words::{PageLanguage, PageWords};
use campaign_core::finding::escape_controls;

/// The stylesheet of every page.
pub const STYLE: &str = concat!(include_str!("style.css"), include_str!("run.css"));

/// Every template with its name.
const TEMPLATES: &[(&str, &str)] = &[
    ("frame.html", include_str!("templates/frame.html")),
    ("text.html", include_str!("templates/text.html")),
    ("phone.html", include_str!("templates/phone.html")),
    ("findings.html", include_str!("templates/findings.html")),
    ("messages.html", include_str!("templates/messages.html")),
    ("preview.html", include_str!("templates/preview.html")),
    ("plan.html", include_str!("templates/plan.html")),
    ("evidence.html", include_str!("templates/evidence.html")),
    ("run/charts.html", include_str!("templates/run/charts.html")),
    ("run/parts.html", include_str!("templates/run/parts.html")),
    ("run/part.html", include_str!("templates/run/part.html")),
    ("run/report.html", include_str!("templates/run/report.html")),
    ("pages/shell.html", include_str!("templates/pages/shell.html")),
    ("pages/components.html", include_str!("templates/pages/components.html")),
    ("pages/sign_in_unavailable.html", include_str!("templates/pages/sign_in_unavailable.html")),
    ("pages/sign_in_required.html", include_str!("templates/pages/sign_in_required.html")),
    ("pages/sign_in.html", include_str!("templates/pages/sign_in.html")),
    ("pages/signed_in.html", include_str!("templates/pages/signed_in.html")),
    ("pages/error.html", include_str!("templates/pages/error.html")),
    ("pages/overview.html", include_str!("templates/pages/overview.html")),
    ("pages/runs.html", include_str!("templates/pages/runs.html")),
    ("pages/schedules.html", include_str!("templates/pages/schedules.html")),
    ("pages/opt_outs.html", include_str!("templates/pages/opt_outs.html")),
    ("pages/replies.html", include_str!("templates/pages/replies.html")),
    ("pages/campaigns.html", include_str!("templates/pages/campaigns.html")),
    ("pages/variants.html", include_str!("templates/pages/variants.html")),
    ("pages/search.html", include_str!("templates/pages/search.html")),
    ("pages/confirm.html", include_str!("templates/pages/confirm.html")),
    ("pages/test.html", include_str!("templates/pages/test.html")),
    ("pages/retry.html", include_str!("templates/pages/retry.html")),
    ("pages/run.html", include_str!("templates/pages/run.html")),
    ("pages/part_status.html", include_str!("templates/pages/part_status.html")),
    ("pages/part_counts.html", include_str!("templates/pages/part_counts.html")),
    ("pages/part_retry.html", include_str!("templates/pages/part_retry.html")),
    ("pages/part_doubt.html", include_str!("templates/pages/part_doubt.html")),
    ("pages/rows.html", include_str!("templates/pages/rows.html")),
    ("pages/message.html", include_str!("templates/pages/message.html")),
    ("pages/campaign.html", include_str!("templates/pages/campaign.html")),
    ("pages/run_preview.html", include_str!("templates/pages/run_preview.html")),
    ("pages/schedule_preview.html", include_str!("templates/pages/schedule_preview.html")),
];

/// The way in which a page is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// Served together with its stylesheet and script.
    Served,
    /// The page is a standalone file that contains its stylesheet.
    File,
}

/// A template could not be filled, which is a bug.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot render the page `{template}`: {reason}")]
pub struct TemplateError {
    template: String,
    reason: String,
}

/// The templates of each language, in the order of [`PageLanguage::ALL`].
static COMPILED: LazyLock<[Result<Tera, String>; 2]> = LazyLock::new(|| PageLanguage::ALL.map(compile_templates));

/// The content security policy of a file: only its own stylesheet.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    // The digest must cover the exact content of the `style` element.
    let digest = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
});

/// Renders a page from a template.
///
/// # Errors
/// If the template uses a value that `view` does not have.
pub fn render(
    language: PageLanguage,
    format: PageFormat,
    template: &str,
    view: &impl Serialize,
) -> Result<String, TemplateError> {
    render_with(language, template, view, |context| {
        context.insert("lang", language.code());
        context.insert("alone", &(format == PageFormat::File));
        context.insert("style", STYLE);
        context.insert("policy", POLICY.as_str());
        let [icon, stylesheet, script] = &ASSETS;
        context.insert("icon", &icon.url_path());
        context.insert("stylesheet", &stylesheet.url_path());
        context.insert("script", &script.url_path());
    })
}

/// Renders a part of a page, without the frame around it.
///
/// # Errors
/// If the template uses a value that `view` does not have.
pub fn render_part(language: PageLanguage, template: &str, view: &impl Serialize) -> Result<String, TemplateError> {
    render_with(language, template, view, |_| {})
}

fn render_with(
    language: PageLanguage,
    template: &str,
    view: &impl Serialize,
    add_values: impl FnOnce(&mut Context),
) -> Result<String, TemplateError> {
    let failed = |reason: String| TemplateError { template: template.to_owned(), reason };
    let tera = COMPILED[language as usize].as_ref().map_err(|reason| failed(reason.clone()))?;
    let mut context = Context::from_serialize(view).map_err(|error| failed(describe_error(&error)))?;
    add_values(&mut context);
    tera.render(template, &context).map_err(|error| failed(describe_error(&error)))
}

/// Escapes a value as JSON for embedding in a page. The output cannot close the HTML element that contains it.
pub fn embed_json(value: &serde_json::Value) -> String {
    let escaped = |c: char| match c {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    value.to_string().chars().map(escaped).collect()
}

fn compile_templates(language: PageLanguage) -> Result<Tera, String> {
    let mut tera = Tera::new();
    tera.set_escape_fn(write_escaped);
    let words = PageWords::in_language(language);
    tera.register_function("say", move |values: Kwargs, _: &State| render_words(words, &values));
    tera.register_function("count", move |values: Kwargs, _: &State| render_count(words, &values));
    tera.register_function("kind", move |values: Kwargs, _: &State| -> TeraResult<String> {
        let (kind, word): (&str, &str) = (values.must_get("of")?, values.must_get("word")?);
        Ok(words.item_name(kind, word).unwrap_or_default().to_owned())
    });
    tera.register_function("number", move |values: Kwargs, _: &State| -> TeraResult<String> {
        Ok(words.format_number(values.must_get("n")?))
    });
    tera.add_raw_templates(TEMPLATES.iter().copied()).map_err(|error| describe_error(&error))?;
    Ok(tera)
}

/// The placeholders of messages that templates can fill.
const PLACEHOLDERS: [&str; 15] =
    ["name", "n", "of", "channel", "rows", "days", "code", "what", "who", "when", "zone", "time", "from", "to", "all"];

/// Reads the placeholder values of a translated text from the arguments of a template function.
fn read_placeholders(values: &Kwargs) -> TeraResult<Vec<(&'static str, String)>> {
    let mut filled = Vec::new();
    for name in PLACEHOLDERS {
        if let Some(value) = values.get::<&Value>(name)? {
            filled.push((name, value.to_string()));
        }
    }
    Ok(filled)
}

fn render_words(words: &PageWords, values: &Kwargs) -> TeraResult<String> {
    let placeholders = read_placeholders(values)?;
    let placeholders: Vec<(&str, &str)> = placeholders.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Ok(words.say_with(values.must_get("key")?, &placeholders))
}

fn render_count(words: &PageWords, values: &Kwargs) -> TeraResult<String> {
    let placeholders = read_placeholders(values)?;
    let placeholders: Vec<(&str, &str)> = placeholders.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Ok(words.count(values.must_get("key")?, values.must_get("n")?, &placeholders))
}

/// Describes a Tera error with its causes, on one line.
fn describe_error(error: &(dyn std::error::Error + 'static)) -> String {
    struct Causes<'e>(&'e (dyn std::error::Error + 'static));
    impl fmt::Display for Causes<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", self.0)?;
            self.0.source().map_or(Ok(()), |source| write!(f, ": {}", Causes(source)))
        }
    }
    Causes(error).to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes a value into a page, escaped for use between tags or inside a quoted attribute.
fn write_escaped(value: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::with_capacity(value.len());
    for c in escape_controls(value).chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\'' => text.push_str("&#39;"),
            c if is_noncharacter(c) => text.push(char::REPLACEMENT_CHARACTER),
            c => text.push(c),
        }
    }
    out.write_all(text.as_bytes())
}

/// Whether a character is a Unicode noncharacter, which must not occur in a page.
fn is_noncharacter(c: char) -> bool {
    // The last two code points of each plane are noncharacters.
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// The stylesheet of served pages: the rules for every page, and rules that only served pages need.
const SERVED_STYLE: &str = concat!(include_str!("style.css"), include_str!("run.css"), include_str!("pages.css"));
/// The icon of the pages.
const ICON: &str = include_str!("icon.svg");
/// The script; every page also works without it.
const SCRIPT: &str = include_str!("pages.js");

/// A file that pages load.
pub struct Asset {
    stem: &'static str,
    extension: &'static str,
    hash: LazyLock<String>,
    /// The media type.
    pub kind: &'static str,
    /// The content of the file.
    pub text: &'static str,
}

/// The files that pages load: icon, stylesheet, script.
pub static ASSETS: [Asset; 3] = [
    Asset {
        stem: "pages",
        extension: "svg",
        hash: LazyLock::new(|| hash_text(ICON)),
        kind: "image/svg+xml",
        text: ICON,
    },
    Asset {
        stem: "pages",
        extension: "css",
        hash: LazyLock::new(|| hash_text(SERVED_STYLE)),
        kind: "text/css; charset=utf-8",
        text: SERVED_STYLE,
    },
    Asset {
        stem: "pages",
        extension: "js",
        hash: LazyLock::new(|| hash_text(SCRIPT)),
        kind: "text/javascript; charset=utf-8",
        text: SCRIPT,
    },
];

impl Asset {
    /// The asset's file name below `/static/`, which contains a hash of the asset's content.
    pub fn file_name(&self) -> String {
        format!("{}-{}.{}", self.stem, *self.hash, self.extension)
    }

    /// The asset's path in URLs.
    pub fn url_path(&self) -> String {
        format!("/static/{}", self.file_name())
    }
}

/// The number of bytes of the hash in the name of an asset.
const ASSET_HASH_BYTES: usize = 6;

/// Returns the first bytes of a text's SHA-256 hash, in hexadecimal.
fn hash_text(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(ASSET_HASH_BYTES).fold(String::new(), |mut hash, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

#[cfg(test)]
mod template_tests {
    use super::*;

    #[test]
    fn embedded_json_cannot_close_an_element_and_keeps_its_value() {
        let value = serde_json::json!({ "</script><!--": "<script>&\u{2028}\"" });
        let embedded = embed_json(&value);
        assert!(!embedded.contains(['<', '>', '&', '\u{2028}']), "{embedded}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&embedded).unwrap(), value);
    }

    #[test]
    fn templates_compile_in_every_language() {
        for compiled in COMPILED.iter() {
            assert_eq!(compiled.as_ref().err(), None);
        }
    }

    /// Lists the relative paths of the files in a folder and its subfolders.
    fn files_below(folder: &std::path::Path, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let named = |entry: std::fs::DirEntry| {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() { files_below(&entry.path(), &format!("{name}/")) } else { vec![name] }
        };
        entries.flat_map(named).collect()
    }

    #[test]
    fn every_template_file_is_registered() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web/html/templates");
        let mut files = files_below(&folder, "");
        let mut known: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
        files.sort();
        known.sort_unstable();
        assert_eq!(files, known);
    }

    #[test]
    fn templates_have_no_inline_style_or_script() {
        for (name, source) in TEMPLATES {
            // The server's own script is allowed, and data elements are never executed.
            let source = source.replace("<script src=\"{{ script }}\" defer></script>", "");
            let source = source.replace("<script type=\"application/json\"", "");
            for forbidden in
                ["style=", "<script", "onclick", "onload", "javascript:", "src=\"http", "href=\"http", "url("]
            {
                assert!(!source.contains(forbidden), "{name}: {forbidden}");
            }
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains("</"));
    }
}

#[cfg(test)]
mod escape_tests {
    use super::*;

    #[test]
    fn html_characters_and_control_codes_are_escaped() {
        let table = [
            ("<b a='x'>&amp;\"", "&lt;b a=&#39;x&#39;&gt;&amp;amp;&quot;"),
            ("Привіт,\n\t👋", "Привіт,\n\t👋"),
            ("a\0b\r\u{7f}", "a\\u{0}b\\u{d}\\u{7f}"),
            ("\u{202e}abc\u{200b}", "\\u{202e}abc\\u{200b}"),
            ("\u{fdd0}\u{ffff}\u{1fffe}", "\u{fffd}\u{fffd}\u{fffd}"),
        ];
        for (value, written) in table {
            let mut out = Vec::new();
            write_escaped(value, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}

#[cfg(test)]
mod asset_tests {
    use super::*;

    #[test]
    fn script_is_short_and_loads_no_resources() {
        assert!(SCRIPT.lines().count() <= 120);
        for forbidden in ["http:", "https:", "eval(", "import ", "Function("] {
            assert!(!SCRIPT.contains(forbidden), "{forbidden}");
        }
        assert!(!SERVED_STYLE.contains("url(") && !SERVED_STYLE.contains("@import"));
    }
}
