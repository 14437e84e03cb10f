//! Programs, addresses and sources in the digest of a plan, and the plans of versions that recorded none.

use std::collections::BTreeMap;

use super::{PlanOptions, PlanRefusal, PlannedCampaign};
use crate::delivery::FrozenInputs;
use crate::manifest::{Destination, InDoubtPolicy, ResourceKind};
use crate::runs::digest::Digest;
use crate::runs::{Error, Inputs};

/// The keys of sources whose content every version has in the digest.
const CONTENT_IN_DIGEST: [&str; 2] = ["recipients.file", "recipients.run"];

/// SHA-256 of each resource that a campaign uses now, by its key.
fn hash_resources(inputs: &Inputs) -> BTreeMap<String, String> {
    let resources = inputs.campaign.list_resources(inputs.destination.profile());
    let hash = |written: &str| Digest::new().with(written).finish();
    resources.into_iter().map(|resource| (resource.key, hash(&resource.written))).collect()
}

impl PlanOptions {
    /// The same options with the hours, resources and policy for rows in doubt that the campaign has now.
    pub(super) fn with_resources_of(self, inputs: &Inputs) -> Self {
        let on_in_doubt = inputs.campaign.delivery.on_in_doubt;
        Self {
            hours: inputs.campaign.describe_hours(inputs.destination.profile()),
            resources: hash_resources(inputs),
            on_in_doubt: Some(on_in_doubt).filter(|policy| *policy != InDoubtPolicy::Hold),
            ..self
        }
    }

    /// Whether an earlier version recorded these options. Since then every plan has at least the source of its list.
    fn is_of_earlier_version(&self) -> bool {
        self.resources.is_empty()
    }

    /// The same options as an earlier version recorded them, if its digest still says everything about the campaign.
    ///
    /// It does not if the campaign has a program, an address or a suppression list. An occurrence is an exception: the
    /// schedule compares the whole campaign file, and nobody could plan the occurrence again.
    fn to_earlier_version(&self) -> Option<Self> {
        let is_known = self.on_in_doubt.is_none() && self.resources.keys().all(|key| is_covered(key));
        let earlier = || Self { resources: BTreeMap::new(), on_in_doubt: None, ..self.clone() };
        (is_known || self.occurrence.is_some()).then(earlier)
    }
}

/// Whether an earlier version has the resource in its digest, or the operator wrote it in the profile.
fn is_covered(key: &str) -> bool {
    CONTENT_IN_DIGEST.contains(&key) || key.starts_with("data.") || is_of_profile(key)
}

fn is_of_profile(key: &str) -> bool {
    key.starts_with("profile.")
}

/// The digests that stand for these inputs: the one of now, and the one of an earlier version if that is still valid.
///
/// A plan of this version never has the digest of an earlier one.
pub(super) fn list_valid_digests(
    inputs: &FrozenInputs,
    destination: &Destination,
    options: &PlanOptions,
) -> Result<Vec<String>, Error> {
    let all = std::iter::once(options.clone()).chain(options.to_earlier_version());
    all.map(|options| super::planned::compute_digest(inputs, destination, &options)).collect()
}

impl PlannedCampaign {
    /// Refuses other programs, addresses and sources than planned, before any of them is started, contacted or read.
    pub(in crate::runs) fn refuse_other_resources(&self, digest: &str, inputs: &Inputs) -> Result<(), Error> {
        let now = self.options.clone().with_resources_of(inputs);
        let is_same_gateway = self.inputs.brief.gateway == inputs.campaign.brief.gateway;
        let what = self.resource_differences(&now, is_same_gateway);
        if what.is_empty() {
            return Ok(());
        }
        let (file, gateway) = (inputs.campaign.file.clone(), inputs.campaign.brief.gateway.clone());
        Err(Error::Plan(PlanRefusal::Changed { digest: digest.to_owned(), file, gateway, what }))
    }

    /// The programs, addresses and sources that differ from the plan, in words. Another gateway has other ones.
    pub(super) fn resource_differences(&self, now: &PlanOptions, is_same_gateway: bool) -> Vec<String> {
        let (then, now_used) = (&self.options.resources, &now.resources);
        let words = |key: &String| format!("the {} `{key}`", ResourceKind::for_key(key).kind_name());
        if self.options.is_of_earlier_version() {
            let unknown = |key: &&String| now.to_earlier_version().is_none() && !is_covered(key);
            let not_recorded =
                |key| format!("{} (which an earlier version of campaign did not record in the plan)", words(key));
            return now_used.keys().filter(unknown).map(not_recorded).collect();
        }
        let mut keys: Vec<&String> = then.keys().chain(now_used.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let differs = |key: &&String| then.get(*key) != now_used.get(*key) && (is_same_gateway || !is_of_profile(key));
        keys.into_iter().filter(differs).map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(keys: &[&str]) -> PlanOptions {
        let resources = keys.iter().map(|key| ((*key).to_owned(), "00".to_owned())).collect();
        PlanOptions { resources, ..PlanOptions::default() }
    }

    #[test]
    fn options_without_resources_have_the_form_of_earlier_versions() {
        let first = r#"{"rows":null,"limit":null,"again":false,"occurrence":null}"#;
        assert_eq!(serde_json::to_string(&PlanOptions::default()).unwrap(), first);
        let read: PlanOptions = serde_json::from_str(first).unwrap();
        assert!(read.is_of_earlier_version());
        assert_eq!(options(&["recipients.file"]).to_earlier_version(), Some(read));
    }

    #[test]
    fn earlier_digest_is_valid_only_for_resources_that_it_covers() {
        let known = ["recipients.file", "data.stores", "profile.hook.public_url"];
        assert!(options(&known).to_earlier_version().is_some());
        for key in ["notify.command", "notify.url", "recipients.suppress", "recipients.url", "recipients.command"] {
            assert_eq!(options(&[key]).to_earlier_version(), None, "{key}");
            let occurrence = Some(("2026-11-26 10:00".to_owned(), "UTC".to_owned()));
            assert!(PlanOptions { occurrence, ..options(&[key]) }.to_earlier_version().is_some(), "{key}");
        }
        let resends = PlanOptions { on_in_doubt: Some(InDoubtPolicy::ResendIfNotFound), ..options(&[]) };
        assert_eq!(resends.to_earlier_version(), None);
    }
}
