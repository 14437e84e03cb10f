//! `campaign check --show-settings`: every value in force, and where it comes from.

use std::path::PathBuf;

use serde_json::{Value, json};
use serde_yaml::Mapping;

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::manifest::{Origin, Setting, settings};

/// Prints the values as YAML, or as one object for programs; of several campaigns each under its file.
pub(super) fn show(context: &Context, files: &[PathBuf], gateway: Option<&str>) -> Result<u8, Failure> {
    let mut all = Vec::new();
    for file in files {
        let inputs = context.load(file, gateway)?;
        context.output.findings(&inputs.warnings);
        let found = settings(&inputs.campaign, inputs.destination.profile(), gateway.is_some());
        all.push((file.display().to_string(), found));
    }
    if context.output.json {
        let files: Vec<Value> = all
            .iter()
            .map(|(file, found)| json!({ "file": file, "settings": found.iter().map(object).collect::<Vec<_>>() }))
            .collect();
        context.output.object(&json!({ "files": files, "exit": exit::FINE }));
        return Ok(exit::FINE);
    }
    let whole: Mapping = match all.as_slice() {
        [(_, found)] => mapping(found),
        several => several.iter().map(|(file, found)| (file.as_str().into(), mapping(found).into())).collect(),
    };
    // Maps of texts and of what was read from YAML are always YAML again.
    context.output.unwrapped(&serde_yaml::to_string(&whole).unwrap_or_default());
    Ok(exit::FINE)
}

fn mapping(found: &[Setting]) -> Mapping {
    let value = |setting: &Setting| {
        let value = serde_yaml::to_value(&setting.value).unwrap_or_default();
        Mapping::from_iter([("value".into(), value), ("from".into(), from(&setting.origin).into())])
    };
    found.iter().map(|setting| (setting.key.as_str().into(), value(setting).into())).collect()
}

fn object(setting: &Setting) -> Value {
    json!({ "key": setting.key, "value": setting.value, "from": from(&setting.origin) })
}

/// Where a value comes from, in words.
fn from(origin: &Origin) -> String {
    match origin {
        Origin::Written(place) => {
            format!("{}:{}:{}", place.source.path().display(), place.line(), place.column())
        }
        Origin::Default => "default".to_owned(),
        Origin::Follows(what) => format!("default, derived from {what}"),
        Origin::Profile(name) => format!("profile {name}"),
        Origin::CommandLine => "command line".to_owned(),
    }
}
