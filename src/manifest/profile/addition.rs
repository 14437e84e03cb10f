//! A profile that is put behind those of a file, whose own text stays to the byte.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::load::read_profiles;
use super::{EndpointUrl, Profile, SecretSource};
use crate::finding::{Finding, SourceText, rules};

/// A profile that is to be written; what it does not say has its default.
#[derive(Clone, Debug)]
pub struct NewProfile {
    /// Its name.
    pub name: String,
    /// The address of the synchronous endpoint.
    pub base_url: EndpointUrl,
    /// The address of the asynchronous endpoint.
    pub async_url: Option<EndpointUrl>,
    /// Where its key is kept; a file from the folder of the profiles, or by its whole path.
    pub api_key: SecretSource,
    /// The account's allowance, such as `10/s`; it may be left out on loopback alone.
    pub rate: Option<String>,
}

/// The keys of a profile as they are written.
#[derive(Serialize)]
struct ProfileYaml<'p> {
    base_url: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    async_url: Option<&'p str>,
    api_key: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<&'p str>,
}

impl NewProfile {
    /// The profile as it stands in a file.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let key = match &self.api_key {
            SecretSource::Env(name) => ("env", name.clone()),
            SecretSource::File(path) => ("file", path.display().to_string()),
        };
        let written = ProfileYaml {
            base_url: self.base_url.as_str(),
            async_url: self.async_url.as_ref().map(EndpointUrl::as_str),
            api_key: BTreeMap::from([key]),
            rate: self.rate.as_deref(),
        };
        serde_yaml::to_string(&BTreeMap::from([(&self.name, written)])).expect("maps of texts are always YAML")
    }
}

/// The text of a file with a profile behind those that it has, and the profile as it will be read from there.
///
/// # Errors
/// When the profile is there already or cannot be used, or the file has a form that cannot add a profile.
pub fn append_profile(path: &Path, text: &str, new: &NewProfile) -> Result<(String, Profile), Vec<Finding>> {
    let names = |text: &str| {
        let (gateways, _) = read_profiles(&SourceText::new(path, text));
        gateways.profile_names().map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, file, name) = (names(text), path.display(), &new.name);
    if before.contains(name) {
        let finding = Finding::new(&rules::PROFILE_NAME, format!("`{file}` already has a profile `{name}`"));
        return Err(vec![finding.help("edit the existing profile, or choose another name")]);
    }
    let apart = if text.trim().is_empty() {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let added = format!("{text}{apart}{}", new.to_yaml());
    let (gateways, findings) = read_profiles(&SourceText::new(path, added.as_str()));
    let kept = names(&added);
    let profile = gateways.find_profile(name).cloned();
    match profile {
        Ok(profile) if !findings.iter().any(Finding::is_error) && before.iter().all(|name| kept.contains(name)) => {
            Ok((added, profile))
        }
        Err(refused) if refused.iter().all(|finding| *finding.rule != rules::UNKNOWN_GATEWAY) => Err(refused),
        _ => {
            let message = format!("cannot add a profile to `{file}`");
            let finding = Finding::new(&rules::GATEWAYS_FORM, message);
            let help = format!("fix the file, or add the profile by hand:\n{}", new.to_yaml().trim_end());
            Err([findings, vec![finding.help(help)]].concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn new_profile(name: &str, key: SecretSource) -> NewProfile {
        let base_url = EndpointUrl::parse("https://gateway.example").unwrap();
        NewProfile { name: name.into(), base_url, async_url: None, api_key: key, rate: Some("10/s".into()) }
    }

    fn append_to(text: &str) -> Result<(String, Profile), Vec<Finding>> {
        append_profile(Path::new("gateways.yaml"), text, &new_profile("production", SecretSource::Env("KEY".into())))
    }

    #[test]
    fn profile_is_appended_after_existing_content() {
        const LOCAL: &str = "local:\n  base_url: http://127.0.0.1:1\n  api_key: { env: KEY }";
        for before in [
            "",
            "\n",
            "# nothing yet",
            "# a note\n\n",
            LOCAL,
            "local:\n  base_url: http://127.0.0.1:1\n  api_key: { env: KEY }   # why\n# production:\n#   base_url: x\n",
            "broken:\n  base_url: 5\n",
        ] {
            let (text, profile) = append_to(before).unwrap_or_else(|found| panic!("{before}: {found:?}"));
            assert!(text.starts_with(before) && text.ends_with("  rate: 10/s\n"), "{text}");
            assert_eq!((profile.name.as_str(), profile.base_url.as_str()), ("production", "https://gateway.example"));
            assert_eq!(profile.api_key, SecretSource::Env("KEY".into()));
        }
    }

    #[test]
    fn file_that_cannot_be_extended_stays_unchanged() {
        for (before, said) in [
            ("production: { base_url: https://a.example }\n", "already has a profile `production`"),
            ("{ local: { base_url: http://127.0.0.1:1, api_key: { env: KEY } } }\n", "cannot add a profile"),
            ("- a\n", "cannot add a profile"),
            ("local: \"open\n", "cannot add a profile"),
        ] {
            let found = append_to(before).unwrap_err();
            assert!(found.iter().any(|finding| finding.message.contains(said)), "{before}: {found:?}");
        }
        let found = append_profile(Path::new("g.yaml"), "", &new_profile("sandbox", SecretSource::Env("KEY".into())))
            .unwrap_err();
        assert_eq!(found[0].rule, "reserved-name");
    }

    proptest! {
        #[test]
        fn key_file_with_any_name_is_referenced(name in "[^\\p{C}\\s][^\\p{C}\\p{Zl}\\p{Zp}]{0,20}[^\\p{C}\\s]") {
            let key = SecretSource::File(name.clone().into());
            let (_, profile) = append_profile(Path::new("gateways.yaml"), "# a\n", &new_profile("a", key.clone())).unwrap();
            prop_assert_eq!(profile.api_key, key);
        }

        #[test]
        fn appending_never_panics_or_loses_bytes(text in "[a-c:{}\\[\\]#|>&*! \"'\n\\-]{0,40}") {
            if let Ok((added, _)) = append_to(&text) {
                prop_assert!(added.starts_with(&text));
            }
        }
    }
}
