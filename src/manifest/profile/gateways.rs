//! The profiles of a gateways.yaml: those that can be used, and those that are wrong.
//!
//! A profile that is wrong refuses what uses it, and is a warning to everything else.

use std::path::{Path, PathBuf};

use super::Profile;
use crate::finding::{Finding, Severity, did_you_mean, join_names, rules};
use crate::manifest::campaign::SANDBOX;

/// The profiles that were found.
#[derive(Clone, Debug, Default)]
pub struct Gateways {
    pub(super) profiles: Vec<Profile>,
    /// The names of profiles that cannot be used, with why.
    pub(super) invalid: Vec<(String, Vec<Finding>)>,
    /// What is worth a look in those that can be used.
    pub(super) warnings: Vec<Finding>,
    /// The file that was read; nothing when there is none.
    pub(super) file: Option<PathBuf>,
    /// Where it was looked for.
    pub(super) searched: Vec<PathBuf>,
}

impl Gateways {
    /// Every profile that can be used, in the file's order.
    #[must_use]
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The names of all profiles, those that cannot be used last.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        let refused = self.invalid.iter().map(|(name, _)| name.as_str());
        self.profiles.iter().map(|profile| profile.name.as_str()).chain(refused)
    }

    /// The file that was read; nothing when there is none.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What is worth a look, and what is wrong with profiles that are not used, as warnings.
    #[must_use]
    pub fn collect_warnings(&self) -> Vec<Finding> {
        let refused = self.invalid.iter().flat_map(|(_, findings)| findings);
        let findings = self.warnings.iter().chain(refused).cloned();
        findings.map(|finding| Finding { severity: Severity::Warning, ..finding }).collect()
    }

    /// The profile of that name.
    ///
    /// # Errors
    /// What is wrong with it; or that there is none, with what was probably meant and where profiles were looked for.
    pub fn find_profile(&self, name: &str) -> Result<&Profile, Vec<Finding>> {
        if let Some(profile) = self.profiles.iter().find(|profile| profile.name == name) {
            return Ok(profile);
        }
        if let Some((_, findings)) = self.invalid.iter().find(|(refused, _)| refused == name) {
            return Err(findings.clone());
        }
        // Of two names that are as near, the rehearsal is the safe one.
        let help = match (&self.file, did_you_mean(name, [SANDBOX].into_iter().chain(self.profile_names()))) {
            (_, Some(meant)) => format!("did you mean `{meant}`?"),
            (Some(file), None) => match join_names(self.profile_names()) {
                names if names.is_empty() => format!("add a profile to `{}`, which has none", file.display()),
                names => format!("use a profile from `{}`: {names}", file.display()),
            },
            (None, None) => {
                let looked: Vec<String> = self.searched.iter().map(|path| path.display().to_string()).collect();
                let looked = join_names(looked.iter().map(String::as_str));
                format!("add a profile with `gateway add NAME`; no gateways file exists at {looked}")
            }
        };
        let unknown = Finding::new(&rules::UNKNOWN_GATEWAY, format!("there is no gateway `{name}`")).help(help);
        Err([vec![unknown], self.collect_warnings()].concat())
    }
}
