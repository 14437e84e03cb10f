//! The templates, compiled once for each language, and how a page is made of one.
//!
//! A template is HTML with the tags of tera. It extends `frame.html` and fills the blocks `title`, `nav` and `main`; what
//! several of them show is a component. It says words by `say(key=…)`, `count(key=…, n=…)` and `kind(of=…, word=…)`, and
//! writes figures by `number(n=…)`. Every value that it prints is escaped.

use std::fmt;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tera::{Context, Kwargs, State, Tera, TeraResult, Value};

use super::assets::ASSETS;
use super::escape::write_escaped;
use crate::web::words::{PageLanguage, PageWords};

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
    ("run/charts.html", include_str!("templates/run/charts.html")),
    ("run/parts.html", include_str!("templates/run/parts.html")),
    ("run/part.html", include_str!("templates/run/part.html")),
    ("run/report.html", include_str!("templates/run/report.html")),
    ("pages/shell.html", include_str!("templates/pages/shell.html")),
    ("pages/pieces.html", include_str!("templates/pages/pieces.html")),
    ("pages/closed.html", include_str!("templates/pages/closed.html")),
    ("pages/stranger.html", include_str!("templates/pages/stranger.html")),
    ("pages/entered.html", include_str!("templates/pages/entered.html")),
    ("pages/refused.html", include_str!("templates/pages/refused.html")),
    ("pages/front.html", include_str!("templates/pages/front.html")),
    ("pages/run.html", include_str!("templates/pages/run.html")),
    ("pages/part_standing.html", include_str!("templates/pages/part_standing.html")),
    ("pages/part_counts.html", include_str!("templates/pages/part_counts.html")),
    ("pages/part_doubt.html", include_str!("templates/pages/part_doubt.html")),
    ("pages/rows.html", include_str!("templates/pages/rows.html")),
    ("pages/message.html", include_str!("templates/pages/message.html")),
    ("pages/campaign.html", include_str!("templates/pages/campaign.html")),
    ("pages/messages.html", include_str!("templates/pages/messages.html")),
    ("pages/preview.html", include_str!("templates/pages/preview.html")),
];

/// How a page reaches who looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// By a server, which has the stylesheet and the script too.
    Served,
    /// As a file that stands alone and carries its stylesheet.
    File,
}

/// A template could not be filled, which is a bug.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot render the page `{template}`: {reason}")]
pub struct TemplateError {
    template: String,
    reason: String,
}

/// The templates of each language, in the order of [`Language::ALL`].
static COMPILED: LazyLock<[Result<Tera, String>; 2]> = LazyLock::new(|| PageLanguage::ALL.map(compile_templates));

/// What a file that stands alone lets a browser do: show its own stylesheet, and nothing else.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    // What stands between the tags of the element, to the letter.
    let digest = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
});

/// Makes a page of a template and what it shows.
///
/// # Errors
/// When the template asks for what `view` does not have.
pub fn render(
    language: PageLanguage,
    form: PageFormat,
    template: &str,
    view: &impl Serialize,
) -> Result<String, TemplateError> {
    render_with(language, template, view, |context| {
        context.insert("lang", language.code());
        context.insert("alone", &(form == PageFormat::File));
        context.insert("style", STYLE);
        context.insert("policy", POLICY.as_str());
        let [icon, stylesheet, script] = &ASSETS;
        context.insert("icon", &icon.url_path());
        context.insert("stylesheet", &stylesheet.url_path());
        context.insert("script", &script.url_path());
    })
}

/// Makes a part of a page, without the frame around it.
///
/// # Errors
/// When the template asks for what `view` does not have.
pub fn render_part(language: PageLanguage, template: &str, view: &impl Serialize) -> Result<String, TemplateError> {
    render_with(language, template, view, |_| {})
}

fn render_with(
    language: PageLanguage,
    template: &str,
    view: &impl Serialize,
    add: impl FnOnce(&mut Context),
) -> Result<String, TemplateError> {
    let failed = |reason: String| TemplateError { template: template.to_owned(), reason };
    let tera = COMPILED[language as usize].as_ref().map_err(|reason| failed(reason.clone()))?;
    let mut context = Context::from_serialize(view).map_err(|error| failed(describe_error(&error)))?;
    add(&mut context);
    tera.render(template, &context).map_err(|error| failed(describe_error(&error)))
}

/// A value as a page carries it for programs: JSON in which nothing ends the element around it.
#[must_use]
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
        let (of, word): (&str, &str) = (values.must_get("of")?, values.must_get("word")?);
        Ok(words.kind(of, word).unwrap_or_default().to_owned())
    });
    tera.register_function("number", move |values: Kwargs, _: &State| -> TeraResult<String> {
        Ok(words.format_number(values.must_get("n")?))
    });
    tera.add_raw_templates(TEMPLATES.iter().copied()).map_err(|error| describe_error(&error))?;
    Ok(tera)
}

/// The places of a message that templates fill.
const PLACES: [&str; 15] =
    ["name", "n", "of", "channel", "rows", "days", "code", "what", "who", "when", "zone", "time", "from", "to", "all"];

/// What a template put into the places of a message.
fn read_places(values: &Kwargs) -> TeraResult<Vec<(&'static str, String)>> {
    let mut places = Vec::new();
    for place in PLACES {
        if let Some(value) = values.get::<&Value>(place)? {
            places.push((place, value.to_string()));
        }
    }
    Ok(places)
}

fn render_words(words: &PageWords, values: &Kwargs) -> TeraResult<String> {
    let places = read_places(values)?;
    let places: Vec<(&str, &str)> = places.iter().map(|(place, value)| (*place, value.as_str())).collect();
    Ok(words.say_with(values.must_get("key")?, &places))
}

fn render_count(words: &PageWords, values: &Kwargs) -> TeraResult<String> {
    let places = read_places(values)?;
    let places: Vec<(&str, &str)> = places.iter().map(|(place, value)| (*place, value.as_str())).collect();
    Ok(words.count(values.must_get("key")?, values.must_get("n")?, &places))
}

/// An error of tera with its causes, in one line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_json_ends_no_element_and_keeps_its_value() {
        let value = serde_json::json!({ "</script><!--": "<script>&\u{2028}\"" });
        let told = embed_json(&value);
        assert!(!told.contains(['<', '>', '&', '\u{2028}']), "{told}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), value);
    }

    #[test]
    fn templates_compile_in_every_language() {
        for compiled in COMPILED.iter() {
            assert_eq!(compiled.as_ref().err(), None);
        }
    }

    /// The files of a folder and of those in it, with the way to them.
    fn files_below(folder: &std::path::Path, way: &str) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let named = |entry: std::fs::DirEntry| {
            let name = format!("{way}{}", entry.file_name().to_string_lossy());
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
            // But for the one of the server; and what is data is never run.
            let source = source.replace("<script src=\"{{ script }}\" defer></script>", "");
            let source = source.replace("<script type=\"application/json\"", "");
            for refused in
                ["style=", "<script", "onclick", "onload", "javascript:", "src=\"http", "href=\"http", "url("]
            {
                assert!(!source.contains(refused), "{name}: {refused}");
            }
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains("</"));
    }
}
