//! Profiles of a gateways.yaml file: usable and invalid ones, the search for the file, and adding a profile.
//!
//! An invalid profile is an error for commands that use it, and a warning for all others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::load::read_profiles;
use super::{EndpointUrl, Profile, SecretSource};
use crate::campaign::SANDBOX;
use crate::campaign_paths::{UnsavedTexts, parent_folder};
use campaign_core::domain::CountrySet;
use campaign_core::finding::{Finding, Severity, SourceText, did_you_mean, join_names, rules};

/// The profiles of a gateways file.
#[derive(Clone, Debug, Default)]
pub struct Gateways {
    pub(super) profiles: Vec<Profile>,
    /// The names of invalid profiles, with their findings.
    pub(super) invalid: Vec<(String, Vec<Finding>)>,
    /// Warnings about usable profiles.
    pub(super) warnings: Vec<Finding>,
    /// The file that was read, if any.
    pub(super) file: Option<PathBuf>,
    /// The paths that were searched.
    pub(super) searched: Vec<PathBuf>,
}

impl Gateways {
    /// The usable profiles, in the file's order.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The names of all profiles, invalid ones last.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        let invalid = self.invalid.iter().map(|(name, _)| name.as_str());
        self.profiles.iter().map(|profile| profile.name.as_str()).chain(invalid)
    }

    /// The file that was read, if any.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// All findings about the profiles, with unchanged severity.
    pub fn findings(&self) -> Vec<Finding> {
        let invalid = self.invalid.iter().flat_map(|(_, findings)| findings);
        self.warnings.iter().chain(invalid).cloned().collect()
    }

    /// All findings about the profiles, with errors turned into warnings.
    pub fn collect_warnings(&self) -> Vec<Finding> {
        let invalid = self.invalid.iter().flat_map(|(_, findings)| findings);
        let findings = self.warnings.iter().chain(invalid).cloned();
        findings.map(|finding| Finding { severity: Severity::Warning, ..finding }).collect()
    }

    /// The profile with this name.
    ///
    /// # Errors
    /// The findings about an invalid profile. For an unknown name, a finding that suggests a name or lists the searched
    /// paths, and all warnings.
    pub fn find_profile(&self, name: &str) -> Result<&Profile, Vec<Finding>> {
        if let Some(profile) = self.profiles.iter().find(|profile| profile.name == name) {
            return Ok(profile);
        }
        if let Some((_, findings)) = self.invalid.iter().find(|(invalid, _)| invalid == name) {
            return Err(findings.clone());
        }
        // If two names are equally similar, the sandbox is the safe suggestion.
        let help = match (&self.file, did_you_mean(name, [SANDBOX].into_iter().chain(self.profile_names()))) {
            (_, Some(meant)) => format!("did you mean `{meant}`?"),
            (Some(file), None) => match join_names(self.profile_names()) {
                names if names.is_empty() => format!("add a profile to `{}`, which has none", file.display()),
                names => format!("use a profile from `{}`: {names}", file.display()),
            },
            (None, None) => {
                let searched: Vec<String> = self.searched.iter().map(|path| path.display().to_string()).collect();
                let searched = join_names(searched.iter().map(String::as_str));
                format!("add a profile with `gateway add NAME`; no gateways file exists at {searched}")
            }
        };
        let unknown = Finding::new(&rules::UNKNOWN_GATEWAY, format!("there is no gateway `{name}`")).help(help);
        Err([vec![unknown], self.collect_warnings()].concat())
    }
}

const FILE_NAME: &str = "gateways.yaml";

/// The possible locations of gateways.yaml; the first existing file is read.
#[derive(Clone, Debug, Default)]
pub struct GatewaySearch {
    /// The file from the command line or `$CAMPAIGN_GATEWAYS`; it must exist.
    pub explicit: Option<PathBuf>,
    /// The campaign file: its folder is searched first, then the folder above.
    pub campaign: Option<PathBuf>,
    /// The user's configuration folder for this program.
    pub configuration: Option<PathBuf>,
    /// The unsaved texts of an editor.
    pub unsaved: UnsavedTexts,
}

impl GatewaySearch {
    /// All paths at which a file with profiles can exist.
    pub fn list_files(&self) -> Vec<PathBuf> {
        self.explicit.iter().cloned().chain(self.candidate_files()).collect()
    }

    /// The paths at which a file with profiles is searched for, in order.
    pub(super) fn candidate_files(&self) -> Vec<PathBuf> {
        let folder = self.campaign.as_deref().map(|file| file.parent().unwrap_or(Path::new("")).to_owned());
        let parent = folder.as_deref().map(parent_folder);
        [folder, parent, self.configuration.clone()]
            .into_iter()
            .flatten()
            .map(|folder| folder.join(FILE_NAME))
            .collect()
    }
}

/// A new profile; omitted values have their defaults.
#[derive(Clone, Debug)]
pub struct NewProfile {
    /// The name of the profile.
    pub name: String,
    /// The URL of the synchronous endpoint.
    pub base_url: EndpointUrl,
    /// The URL of the asynchronous endpoint.
    pub async_url: Option<EndpointUrl>,
    /// The location of the API key; a file in the folder of the profiles, or an absolute path.
    pub api_key: SecretSource,
    /// The rate limit of the account, such as `10/s`; optional only on loopback addresses.
    pub rate: Option<String>,
    /// The countries that campaigns usually reach; the profile then also limits the number of recipients abroad.
    pub home: Option<CountrySet>,
}

/// The limit of recipients abroad in a new profile.
pub const ABROAD_LIMIT: u32 = 100;

/// The keys of a profile as they are written.
#[derive(Serialize)]
struct ProfileYaml<'p> {
    base_url: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    async_url: Option<&'p str>,
    api_key: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<&'p CountrySet>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<&'static str, u32>,
}

impl NewProfile {
    /// The profile as YAML.
    pub(crate) fn to_yaml(&self) -> String {
        let key = match &self.api_key {
            SecretSource::Env(name) => ("env", name.clone()),
            SecretSource::File(path) => ("file", path.display().to_string()),
        };
        let written = ProfileYaml {
            base_url: self.base_url.as_str(),
            async_url: self.async_url.as_ref().map(EndpointUrl::as_str),
            api_key: BTreeMap::from([key]),
            rate: self.rate.as_deref(),
            home: self.home.as_ref(),
            limits: self.home.iter().map(|_| ("abroad", ABROAD_LIMIT)).collect(),
        };
        serde_yaml::to_string(&BTreeMap::from([(&self.name, written)])).expect("maps of texts are always YAML")
    }
}

/// Appends a profile to the text of a file. Returns the new text, and the profile as it will be read from the text.
///
/// # Errors
/// If the profile already exists or is invalid, or the form of the file does not allow adding one.
pub fn append_profile(path: &Path, text: &str, new: &NewProfile) -> Result<(String, Profile), Vec<Finding>> {
    let list_names = |text: &str| {
        let (gateways, _) = read_profiles(&SourceText::new(path, text));
        gateways.profile_names().map(str::to_owned).collect::<Vec<_>>()
    };
    let (old_names, file, name) = (list_names(text), path.display(), &new.name);
    if old_names.contains(name) {
        let finding = Finding::new(&rules::PROFILE_NAME, format!("`{file}` already has a profile `{name}`"));
        return Err(vec![finding.help("edit the existing profile, or choose another name")]);
    }
    let separator = if text.trim().is_empty() {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let added = format!("{text}{separator}{}", new.to_yaml());
    let (gateways, findings) = read_profiles(&SourceText::new(path, added.as_str()));
    let new_names = list_names(&added);
    let profile = gateways.find_profile(name).cloned();
    match profile {
        Ok(profile)
            if !findings.iter().any(Finding::is_error) && old_names.iter().all(|name| new_names.contains(name)) =>
        {
            Ok((added, profile))
        }
        Err(errors) if errors.iter().all(|finding| *finding.rule != rules::UNKNOWN_GATEWAY) => Err(errors),
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
        NewProfile { name: name.into(), base_url, async_url: None, api_key: key, rate: Some("10/s".into()), home: None }
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
            let (text, profile) = append_to(before).unwrap_or_else(|findings| panic!("{before}: {findings:?}"));
            assert!(text.starts_with(before) && text.ends_with("  rate: 10/s\n"), "{text}");
            assert_eq!((profile.name.as_str(), profile.base_url.as_str()), ("production", "https://gateway.example"));
            assert_eq!(profile.api_key, SecretSource::Env("KEY".into()));
        }
    }

    #[test]
    fn profile_with_home_countries_limits_recipients_abroad() {
        let home = Some(CountrySet::new(["UA", "PL"].map(|code| code.parse().unwrap())));
        let new = NewProfile { home: home.clone(), ..new_profile("a", SecretSource::Env("KEY".into())) };
        let (text, profile) = append_profile(Path::new("gateways.yaml"), "", &new).unwrap();
        assert_eq!((profile.home, profile.abroad_limit), (home, Some(ABROAD_LIMIT)), "{text}");
    }

    #[test]
    fn file_that_cannot_be_extended_is_rejected_with_a_reason() {
        for (before, message) in [
            ("production: { base_url: https://a.example }\n", "already has a profile `production`"),
            ("{ local: { base_url: http://127.0.0.1:1, api_key: { env: KEY } } }\n", "cannot add a profile"),
            ("- a\n", "cannot add a profile"),
            ("local: \"open\n", "cannot add a profile"),
        ] {
            let findings = append_to(before).unwrap_err();
            assert!(findings.iter().any(|finding| finding.message.contains(message)), "{before}: {findings:?}");
        }
        let findings =
            append_profile(Path::new("g.yaml"), "", &new_profile("sandbox", SecretSource::Env("KEY".into())))
                .unwrap_err();
        assert_eq!(findings[0].rule, "reserved-name");
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
