//! Fuzz target for gateways files, compared with libyaml, and for appending a profile.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use campaign_core::finding::Finding;
use campaign_manifest::{
    EndpointUrl, GatewaySearch, Gateways, LoadedFile, NewProfile, SecretSource, UnsavedTexts, append_profile,
    load_gateways,
};

/// Checks how these bytes are read as a gateways file.
pub(super) fn check(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gateways.yaml");
    fs::write(&path, data).expect("a file");
    let loaded = load(&path);
    super::check_findings(&loaded.findings);
    let is_refused = loaded.findings.iter().any(Finding::is_error);
    assert_eq!(loaded.value.is_none(), is_refused, "no value without an error: {:?}", loaded.findings);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(gateways) = &loaded.value
        && let Some(theirs) = super::read_with_libyaml(text)
    {
        super::check_findings(&gateways.collect_warnings());
        let keys = theirs.as_mapping().into_iter().flatten().map(|(key, _)| key.as_str().map(str::to_owned));
        let names: BTreeSet<String> = gateways.profile_names().map(str::to_owned).collect();
        if let Some(keys) = keys.collect::<Option<BTreeSet<String>>>() {
            assert_eq!(names, keys, "the profiles differ");
        }
    }
    check_appended_profile(&path, text, loaded.value.as_ref());
}

fn load(path: &Path) -> LoadedFile<Gateways> {
    load_gateways(&GatewaySearch {
        explicit: Some(path.to_owned()),
        campaign: None,
        configuration: None,
        unsaved: UnsavedTexts::default(),
    })
}

/// Checks that a profile can be appended without a change to the others.
fn check_appended_profile(path: &Path, text: &str, before: Option<&Gateways>) {
    let new = NewProfile {
        name: "appended-one".to_owned(),
        base_url: EndpointUrl::parse("https://gateway.example").expect("a URL"),
        async_url: None,
        api_key: SecretSource::Env("CAMPAIGN_API_KEY".to_owned()),
        rate: Some("10/s".to_owned()),
        home: None,
    };
    let Ok((added, profile)) = append_profile(path, text, &new) else { return };
    assert!(added.starts_with(text), "the file was changed");
    assert_eq!((profile.name.as_str(), profile.base_url.as_str()), ("appended-one", "https://gateway.example"));
    fs::write(path, &added).expect("a file");
    let after = load(path).value.expect("the extended file is accepted");
    after.find_profile("appended-one").expect("the appended profile");
    for earlier in before.into_iter().flat_map(Gateways::profiles) {
        let later = after.find_profile(&earlier.name).expect("an earlier profile");
        assert_eq!(format!("{later:?}"), format!("{earlier:?}"), "an earlier profile was changed");
    }
}
