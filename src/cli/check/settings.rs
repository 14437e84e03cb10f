//! `campaign check --show-settings`: every value in force, and where it comes from.

use std::path::PathBuf;

use serde_json::{Value, json};
use serde_yaml::Mapping;

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::manifest::{Setting, SettingOrigin, list_settings};

/// Prints the values as YAML, or as one object for programs; of several campaigns each under its file.
pub(super) fn show_settings(context: &Context, files: &[PathBuf], gateway: Option<&str>) -> Result<u8, CommandFailure> {
    let mut all = Vec::new();
    for file in files {
        let inputs = context.load_campaign(file, gateway)?;
        context.output.print_findings(&inputs.warnings);
        let found = list_settings(&inputs.campaign, inputs.destination.profile(), gateway.is_some());
        all.push((file.display().to_string(), found));
    }
    if context.output.json {
        let files: Vec<Value> = all
            .iter()
            .map(
                |(file, found)| json!({ "file": file, "settings": found.iter().map(setting_json).collect::<Vec<_>>() }),
            )
            .collect();
        context.output.print_object(&json!({ "files": files, "exit": exit::SUCCESS }));
        return Ok(exit::SUCCESS);
    }
    let whole: Mapping = match all.as_slice() {
        [(_, found)] => settings_mapping(found),
        several => several.iter().map(|(file, found)| (file.as_str().into(), settings_mapping(found).into())).collect(),
    };
    // Maps of texts and of what was read from YAML are always YAML again.
    context.output.print_unwrapped(&serde_yaml::to_string(&whole).unwrap_or_default());
    Ok(exit::SUCCESS)
}

fn settings_mapping(found: &[Setting]) -> Mapping {
    let value = |setting: &Setting| {
        let value = serde_yaml::to_value(&setting.value).unwrap_or_default();
        Mapping::from_iter([("value".into(), value), ("from".into(), describe_origin(&setting.origin).into())])
    };
    found.iter().map(|setting| (setting.key.as_str().into(), value(setting).into())).collect()
}

fn setting_json(setting: &Setting) -> Value {
    json!({ "key": setting.key, "value": setting.value, "from": describe_origin(&setting.origin) })
}

/// Where a value comes from, in words.
fn describe_origin(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Written(place) => {
            format!("{}:{}:{}", place.source.path().display(), place.line_number(), place.column_number())
        }
        SettingOrigin::Default => "default".to_owned(),
        SettingOrigin::Follows(what) => format!("default, derived from {what}"),
        SettingOrigin::Profile(name) => format!("profile {name}"),
        SettingOrigin::CommandLine => "command line".to_owned(),
    }
}
