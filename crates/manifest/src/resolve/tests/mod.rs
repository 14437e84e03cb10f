//! Tests of whole campaign files.

mod findings;
mod meaning;

use std::fs;
use std::path::PathBuf;

use jiff::civil::date;
use proptest::prelude::*;

use super::*;
use campaign_core::finding::render_findings;

const FULL: &str = r#"name: autumn-sale
edition: "{{ today }}"
gateway: production
endpoint: async
timezone: Europe/Kyiv
recipients:
  file: lists/autumn-sale.csv
  columns: { phone: "Мобільний", first_name: "Ім'я", code: promo }
  region: UA
  duplicates: refuse
  max_invalid: 2.5%
vars: { shop: "Olena & Co", hotline: 0501234567, open: true, pi: 3.10 }
channels:
  - viber:
      signature: OlenaCo
      message: { file: autumn-sale.viber.txt }
      image: https://cdn.example/autumn.png
      button: Shop now
      link: "https://shop.example/?c={{ code }}"
      lifetime: 1h
  - sms:
      signature: OlenaCo
      message: "{{ first_name }}, -20%: https://shop.example/?c={{ code }}"
      fields: { unsubscribe_link: true, note: 007 }
delivery:
  rate: 600/min
  batch: 20
  stop_after: { rejected: 5%, unreachable: 2h }
results: out/sale.csv
"#;

/// A folder with a campaign file and the text files that the test cases use.
struct CampaignFixture(tempfile::TempDir);

impl CampaignFixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("campaigns")).unwrap();
        fs::create_dir_all(root.path().join("templates")).unwrap();
        fs::write(root.path().join("campaigns/a.csv"), "phone\n").unwrap();
        fs::write(root.path().join("templates/autumn-sale.viber.txt"), "Знижки, {{ first_name }}!\n").unwrap();
        fs::write(root.path().join("templates/blank.txt"), " \n").unwrap();
        fs::write(root.path().join("templates/braces.txt"), "Hi,\n{name}\n").unwrap();
        Self(root)
    }

    fn load_text(&self, yaml: impl AsRef<[u8]>) -> LoadedFile<Campaign> {
        self.load_as("autumn-sale.yaml", yaml)
    }

    fn load_as(&self, name: &str, yaml: impl AsRef<[u8]>) -> LoadedFile<Campaign> {
        let path = self.folder().join(name);
        fs::write(&path, yaml).unwrap();
        load_campaign(&path, CampaignDay::Is(date(2026, 12, 1)))
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("campaigns")
    }

    fn load_valid(&self, yaml: &str) -> Campaign {
        let loaded = self.load_text(yaml);
        loaded.value.unwrap_or_else(|| panic!("{}", render_findings(&loaded.findings, false)))
    }
}

/// The rule, line and column of each finding.
fn list_findings(loaded: &LoadedFile<Campaign>) -> Vec<(&'static str, usize, usize)> {
    let place =
        |finding: &Finding| finding.place.as_ref().map_or((0, 0), |place| (place.line_number(), place.column_number()));
    loaded.findings.iter().map(|finding| (finding.rule.id, place(finding).0, place(finding).1)).collect()
}

/// A campaign with these lines under `channels`.
fn with_channels(channels: &str) -> String {
    format!("recipients: {{ file: a.csv }}\nchannels:\n{channels}")
}

/// A campaign whose SMS message is in line 5, from column 14.
fn with_message(message: &str) -> String {
    with_channels(&format!("- sms:\n    signature: Co\n    message: {message}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let fixture = CampaignFixture::new();
        let loaded = fixture.load_text(&bytes);
        prop_assert!(loaded.value.is_some() || !loaded.findings.is_empty());
        prop_assert_eq!(render_findings(&loaded.findings, true).is_empty(), loaded.findings.is_empty());
    }

    #[test]
    fn mistakes_in_a_valid_file_never_panic(at in 0..FULL.len(), remove in 0..40_usize, insert in "[-:#{}\\[\\]\"'|>&*!%@` \n\ta-zї]{0,6}") {
        let chars: Vec<char> = FULL.chars().collect();
        let at = at.min(chars.len());
        let end = (at + remove).min(chars.len());
        let yaml: String = chars[..at].iter().chain(insert.chars().collect::<Vec<_>>().iter()).chain(&chars[end..]).collect();
        let loaded = CampaignFixture::new().load_text(&yaml);
        let has_errors = loaded.findings.iter().any(Finding::is_error);
        prop_assert_eq!(loaded.value.is_none(), has_errors, "{}", render_findings(&loaded.findings, false));
    }
}
