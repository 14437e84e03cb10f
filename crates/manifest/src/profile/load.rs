//! Reading gateways.yaml: profiles, their policies, and opt-out and opt-in words in replies.

use std::ops::Range;

use super::secret::conceal_keys;
use super::{
    EndpointUrl, GatewaySearch, Gateways, Profile, SecretSource, WebhookSettings, is_loopback_host, read_approval,
    read_prices,
};
use crate::campaign::SANDBOX;
use crate::document::{ConfigSection, FindingCollector, LoadedFile, read_source};
use crate::keys::{PROFILE, check_complete_map};
use crate::recipients::{SuppressionFile, read_countries, read_suppression_files};
use crate::resolve::{is_slug, read_notify};
use crate::resource::list_profile_resources;
use crate::window::{self, ColumnSupport};
use crate::yaml::{self, MapEntry, Node};
use crate::{CampaignPath, CampaignPaths, PathScope, Rate, SendingWindow};
use campaign_core::domain::{MAX_OPT_OUT_WORDS, OptOutWords, ParseRegionError, Purpose};
use campaign_core::finding::{Finding, Rule, SourceText, rules};

/// The remedy for a file without profiles.
const ADD_PROFILE: &str =
    "add a profile with `gateway add NAME`, or write `production:` and indent `base_url: …` under it";

/// Reads the profiles; empty if the search finds no file.
pub fn load_gateways(search: &GatewaySearch) -> LoadedFile<Gateways> {
    let candidates = search.candidate_files();
    let file = search.explicit.clone().or_else(|| candidates.iter().find(|path| path.exists()).cloned());
    let Some(file) = file else {
        return LoadedFile::new(Some(Gateways { searched: candidates, ..Gateways::default() }), Vec::new());
    };
    let source = match read_source(&CampaignPath::in_editor(&file, &search.unsaved), "the gateways file") {
        Ok(source) => source,
        Err(finding) => return LoadedFile::new(None, vec![*finding]),
    };
    let (mut gateways, findings) = read_profiles(&source);
    gateways.file = Some(file);
    gateways.searched = candidates;
    LoadedFile::new(Some(gateways), findings)
}

/// Reads the profiles of a gateways file. The second value contains the findings about the file as a whole; findings
/// about a profile are kept with the profiles.
pub(super) fn read_profiles(source: &SourceText) -> (Gateways, Vec<Finding>) {
    let mut gateways = Gateways::default();
    // The tree is built from the original text; findings show the text without keys.
    let mut report = FindingCollector::new(source);
    let tree = yaml::read_tree(&mut report);
    let concealed = SourceText::new(source.path(), conceal_keys(source.text()));
    for place in report.findings.iter_mut().filter_map(|finding| finding.place.as_mut()) {
        place.source = concealed.clone();
    }
    report.source = concealed;
    for finding in report.findings.iter_mut().filter(|finding| *finding.rule == rules::FILE_EMPTY) {
        finding.help = Some(ADD_PROFILE.to_owned());
    }
    let Some(tree) = tree else { return (gateways, report.into_findings()) };
    let Some(entries) = tree.as_entries() else {
        let finding = Finding::new(&rules::WRONG_TYPE, "the file must be a map of profiles");
        report.add(&tree.span, finding.help(ADD_PROFILE));
        return (gateways, report.into_findings());
    };
    for entry in entries {
        let mut profile_report = FindingCollector::new(&report.source);
        let profile = read_profile(entry, &CampaignPaths::new(source.path(), PathScope::Anywhere), &mut profile_report);
        let findings = profile_report.into_findings();
        match profile.filter(|_| !findings.iter().any(Finding::is_error)) {
            Some(profile) => {
                gateways.profiles.push(profile);
                gateways.warnings.extend(findings);
            }
            None => gateways.invalid.push((entry.key.clone(), findings)),
        }
    }
    (gateways, report.into_findings())
}

fn read_profile(entry: &MapEntry, paths: &CampaignPaths, report: &mut FindingCollector) -> Option<Profile> {
    check_name(entry, report);
    if entry.value.as_entries().is_none() {
        let finding = Finding::new(&rules::WRONG_TYPE, format!("the profile `{}` must be a map of keys", entry.key));
        report.add(&entry.key_span, finding.help("add `base_url: …`, `api_key: …` and `rate: …` under the name"));
        return None;
    }
    check_complete_map(entry, PROFILE, report);
    let section = ConfigSection::new(Some(&entry.value), PROFILE);
    let base_url = read_address(section, "base_url", report);
    let async_url = read_address(section, "async_url", report);
    let proxy = read_proxy(section, report);
    let api_key = section.find_value("api_key").and_then(|value| read_secret_source(value, "api_key", paths, report));
    let base_url = base_url?;
    report_remote_proxy(section, &base_url, async_url.as_ref(), report);
    let is_loopback = base_url.is_loopback() && async_url.as_ref().is_none_or(EndpointUrl::is_loopback);
    let account = section.text("account").map_or_else(|| base_url.host_and_port(), str::to_owned);
    let read_texts = |key| section.list_items(key).into_iter().map(str::to_owned).collect();
    Some(Profile {
        name: entry.key.clone(),
        rate: read_rate(section, is_loopback, &entry.key_span, report)?,
        api_key: api_key?,
        async_url,
        batch_limit: section.parse_value("batch_limit")?,
        recipients_limit: section.subsection("limits").parse_value("recipients"),
        home: read_countries(section, "home", report),
        abroad_limit: read_abroad_limit(section, report),
        cap: section.subsection("policy").parse_cap("cap"),
        suppress: read_suppress_files(section.subsection("policy"), paths, report),
        requires_consent: section.subsection("policy").has_value("consent"),
        forbids_mandatory: section.subsection("policy").has_value("mandatory"),
        window: read_window(section.subsection("policy"), report)?,
        countries: read_countries(section.subsection("policy"), "countries", report),
        notify: read_notify(section.subsection("policy"), paths, report),
        trust_status: section.parse_items("trust_status"),
        fatal_errors: read_texts("fatal_errors"),
        opt_out_errors: read_texts("opt_out_errors"),
        prices: read_prices(section.subsection("prices")),
        currency: section.text("currency").map(str::to_owned),
        approval: if section.has_value("approval") {
            Some(read_approval(section.subsection("approval"), report)?)
        } else {
            None
        },
        hook: if section.has_value("hook") {
            Some(read_webhook_settings(section.subsection("hook"), paths, report)?)
        } else {
            None
        },
        opt_out_words: read_words(section, WordFile::OptOut, paths, report)?,
        opt_in_words: read_words(section, WordFile::OptIn, paths, report)?,
        sender_verified: read_texts("sender_verified"),
        resources: list_profile_resources(&entry.value),
        proxy,
        account,
        base_url,
    })
}

fn check_name(entry: &MapEntry, report: &mut FindingCollector) {
    let finding = if entry.key == SANDBOX {
        Finding::new(&rules::RESERVED_NAME, "`sandbox` is the name of the built-in gateway")
            .help("choose another name for the profile, such as `local`")
    } else if is_slug(&entry.key) {
        return;
    } else {
        Finding::new(&rules::PROFILE_NAME, format!("`{}` is not a valid profile name", entry.key))
            .help("use 1 to 64 characters from a-z, 0-9 and `-`")
    };
    report.add(&entry.key_span, finding);
}

fn read_address(section: ConfigSection<'_>, key: &str, report: &mut FindingCollector) -> Option<EndpointUrl> {
    let (text, span) = section.typed_text(key)?;
    EndpointUrl::parse(text)
        .map_err(|(message, help)| report.add(span, Finding::new(&rules::GATEWAY_ADDRESS, message).help(help)))
        .ok()
}

fn read_proxy(section: ConfigSection<'_>, report: &mut FindingCollector) -> Option<String> {
    let (text, span) = section.typed_text("proxy")?;
    let is_usable =
        reqwest::Url::parse(text).is_ok_and(|url| url.has_host() && matches!(url.scheme(), "http" | "https"));
    if !is_usable {
        let finding = Finding::new(&rules::PROXY_ADDRESS, format!("`{text}` is not a proxy URL"));
        report.add(span, finding.help("write a URL such as `http://proxy.example:3128`"));
    }
    Some(text.to_owned())
}

/// Reports a proxy on another machine for a loopback address. Messages would leave this machine although they count as
/// local.
fn report_remote_proxy(
    section: ConfigSection<'_>,
    base_url: &EndpointUrl,
    async_url: Option<&EndpointUrl>,
    report: &mut FindingCollector,
) {
    let Some((text, span)) = section.typed_text("proxy") else { return };
    let is_elsewhere = |url: reqwest::Url| !url.host_str().is_some_and(is_loopback_host);
    let has_loopback_url = base_url.is_loopback() || async_url.is_some_and(EndpointUrl::is_loopback);
    if has_loopback_url && reqwest::Url::parse(text).is_ok_and(is_elsewhere) {
        let finding = Finding::new(&rules::PROXY_ADDRESS, "a proxy on another machine cannot reach a loopback address");
        report.add(span, finding.help("remove `proxy`, or use the address of the live gateway"));
    }
}

/// Reads the webhook settings. The address belongs to our own webhook endpoint, which the gateway calls without an API
/// key.
fn read_webhook_settings(
    section: ConfigSection<'_>,
    paths: &CampaignPaths,
    report: &mut FindingCollector,
) -> Option<WebhookSettings> {
    let (text, span) = section.typed_text("public_url")?;
    let address = EndpointUrl::parse(text).map_err(|(message, _)| {
        let finding = Finding::new(&rules::GATEWAY_ADDRESS, message);
        report.add(
            span,
            finding.help("write a URL such as `https://hooks.example.com`; `http://` is allowed only on this machine"),
        );
    });
    let value = section.find_value("secret")?;
    let single = std::slice::from_ref(value);
    let secrets =
        value.as_items().unwrap_or(single).iter().map(|item| read_secret_source(item, "secret", paths, report));
    let secrets: Option<Vec<SecretSource>> = secrets.collect();
    Some(WebhookSettings { public_url: address.ok()?, secrets: secrets? })
}

/// Reads where the secret of a key is stored.
pub(crate) fn read_secret_source(
    value: &Node,
    key: &str,
    paths: &CampaignPaths,
    report: &mut FindingCollector,
) -> Option<SecretSource> {
    let [entry] = value.as_entries()? else { return None };
    let text = entry.value.as_scalar()?.text.trim();
    match entry.key.as_str() {
        "env" if is_environment_name(text) => Some(SecretSource::Env(text.to_owned())),
        "env" => {
            // The text might be the secret itself, so it is not repeated.
            let finding = Finding::new(&rules::SECRET, "`env` must be the name of an environment variable");
            report.add(&entry.key_span, finding.help(format!("write `{key}: {{ env: NAME }}`")));
            None
        }
        "file" => match paths.resolve_path(text) {
            Ok(path) => Some(SecretSource::File(path.path().to_owned())),
            Err(finding) => {
                report
                    .add(&entry.value.span, finding.help("write `{ env: NAME }`, or move the secret into that folder"));
                None
            }
        },
        _ => None,
    }
}

/// Whether the name is valid for an environment variable.
pub(crate) fn is_environment_name(name: &str) -> bool {
    let has_valid_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    has_valid_start && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn read_rate(
    section: ConfigSection<'_>,
    is_loopback: bool,
    span: &Range<usize>,
    report: &mut FindingCollector,
) -> Option<Rate> {
    match section.typed_text("rate") {
        None if is_loopback => Some(Rate::Unlimited),
        None => {
            let finding = Finding::new(&rules::MISSING_KEY, "a profile needs `rate`, the account's rate limit");
            report.add(
                span,
                finding.help("add a line such as `rate: 10/s`; ask the gateway's support team for your limit"),
            );
            None
        }
        Some((text, span)) => {
            let rate = text.parse().ok()?;
            if rate == Rate::Unlimited && !is_loopback {
                let finding =
                    Finding::new(&rules::UNLIMITED_RATE, "`unlimited` is allowed only for a gateway on this machine");
                report.add(span, finding.help("write your account's rate limit, for example `rate: 100/s`"));
            }
            Some(rate)
        }
    }
}

/// The maximum number of recipients outside `home`. The profile must define `home`.
fn read_abroad_limit(section: ConfigSection<'_>, report: &mut FindingCollector) -> Option<u32> {
    let limits = section.subsection("limits");
    let entry = limits.entry("abroad")?;
    if !section.has_value("home") && !section.has_misspelling("home") {
        let finding = Finding::new(&rules::MISSING_KEY, "`limits.abroad` needs `home`, the list of home countries");
        report.add(&entry.key_span, finding.help("add a line such as `home: [UA]` to the profile"));
    }
    limits.parse_value("abroad")
}

/// The sending window. `Some(None)` if the policy has none; `None` if it is invalid, which was reported.
pub(super) fn read_window(policy: ConfigSection<'_>, report: &mut FindingCollector) -> Option<Option<SendingWindow>> {
    window::read_window(policy, ColumnSupport::Forbidden, report)
}

/// The files of opted-out numbers, relative to gateways.yaml.
pub(super) fn read_suppress_files(
    policy: ConfigSection<'_>,
    paths: &CampaignPaths,
    report: &mut FindingCollector,
) -> Vec<SuppressionFile> {
    let read_region = |section: ConfigSection<'_>| {
        let (code, span) = section.typed_text("region")?;
        let report_unknown = |error: ParseRegionError| {
            let finding = Finding::new(&rules::UNKNOWN_REGION, format!("unknown region `{code}`"));
            report.add(span, finding.help(error.suggest_fix()));
        };
        code.parse().map_err(report_unknown).ok()
    };
    read_suppression_files(policy, "policy", |name, _| paths.resolve_path(name).ok(), read_region)
}

/// A file of words in replies.
#[derive(Clone, Copy)]
enum WordFile {
    /// Words that opt out.
    OptOut,
    /// Words that opt in again.
    OptIn,
}

impl WordFile {
    /// The key of the profile that names the file.
    fn key(self) -> &'static str {
        match self {
            WordFile::OptOut => "opt_out_words",
            WordFile::OptIn => "opt_in_words",
        }
    }

    /// The adjective that describes the words of the file in findings.
    fn adjective(self) -> &'static str {
        match self {
            WordFile::OptOut => "opt-out",
            WordFile::OptIn => "opt-in",
        }
    }

    /// The rule of findings about lines of the file.
    fn rule(self) -> &'static Rule {
        match self {
            WordFile::OptOut => &rules::OPT_OUT_WORDS,
            WordFile::OptIn => &rules::OPT_IN_WORDS,
        }
    }

    /// The known word that makes another word redundant.
    fn find_covering_word(self, known: &OptOutWords, word: &str) -> Option<String> {
        let covering = match self {
            WordFile::OptOut => known.find_covering_word(word),
            WordFile::OptIn => known.find_opt_in_word(word),
        };
        covering.map(str::to_owned)
    }

    /// Adds a word to the known words.
    fn add_word(self, known: OptOutWords, word: &str) -> OptOutWords {
        match self {
            WordFile::OptOut => known.with_words([word.to_owned()]),
            WordFile::OptIn => known.with_opt_in_words([word.to_owned()]),
        }
    }
}

/// The words in a word file; empty if the profile names no such file. `None` if the file is invalid, which was
/// reported.
fn read_words(
    section: ConfigSection<'_>,
    file: WordFile,
    paths: &CampaignPaths,
    report: &mut FindingCollector,
) -> Option<Vec<String>> {
    let Some((name, span)) = section.typed_text(file.key()) else { return Some(Vec::new()) };
    let LoadedFile { value, findings, .. } = load_words(&paths.resolve_path(name).ok()?, file);
    for finding in findings {
        match finding.place {
            Some(_) => report.findings.push(finding),
            None => report.add(span, finding),
        }
    }
    value
}

/// Whether this word might be an opt-out in a reply to marketing.
fn might_opt_out(word: &str) -> bool {
    OptOutWords::default().classify_reply(word, Purpose::Marketing).may_opt_out()
}

/// The words in a file: each line has one word, or two or three that belong together, or is a comment that starts with
/// `#`.
fn load_words(path: &CampaignPath, file: WordFile) -> LoadedFile<Vec<String>> {
    let (rule, adjective) = (file.rule(), file.adjective());
    let source = match read_source(path, &format!("the {adjective} words file")) {
        Ok(source) => source,
        Err(finding) => return LoadedFile::new(None, vec![*finding]),
    };
    let mut report = FindingCollector::new(&source);
    let (mut known, mut words) = (OptOutWords::default(), Vec::new());
    for (word, span) in word_lines(source.text()) {
        match OptOutWords::count_words(word) {
            0 => {
                let finding = Finding::new(rule, format!("`{word}` contains neither a letter nor a digit"));
                report.add(&span, finding.help("write a word, or start the line with `#` to make it a comment"));
            }
            count if count > MAX_OPT_OUT_WORDS => {
                let problem = format!(
                    "`{word}` has {count} words, but an {adjective} phrase can have at most {MAX_OPT_OUT_WORDS}"
                );
                let help = match file {
                    WordFile::OptOut => {
                        "write only the first few words; in a short reply, any words after them are ignored"
                    }
                    WordFile::OptIn => "write a shorter phrase; it must be the entire reply",
                };
                report.add(&span, Finding::new(rule, problem).help(help));
            }
            _ if matches!(file, WordFile::OptIn) && might_opt_out(word) => {
                let problem = format!("`{word}` is an opt-out, so it cannot be an opt-in");
                report.add(&span, Finding::new(rule, problem).help("remove this line"));
            }
            _ => match file.find_covering_word(&known, word) {
                Some(same) => {
                    let problem = if same == word {
                        "is already a built-in word".to_owned()
                    } else {
                        format!("is the same as `{same}`")
                    };
                    let finding = Finding::new(rule, format!("`{word}` {problem}")).into_warning();
                    report.add(&span, finding.help("remove this line; case and look-alike letters make no difference"));
                }
                None => {
                    known = file.add_word(known, word);
                    words.push(word.to_owned());
                }
            },
        }
    }
    if words.is_empty() && report.findings.is_empty() {
        let help = format!("write one word per line, or remove `{}` to use only the built-in words", file.key());
        report.add(&(0..0), Finding::new(rule, "the file contains no words").help(help));
    }
    LoadedFile::new(Some(words), report.into_findings())
}

/// The non-empty lines of a word file, without comments and surrounding white space, and their locations.
fn word_lines(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut next = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        let word = line.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
        let at = start + line.find(word).unwrap_or(0);
        (word, at..at + word.len())
    });
    lines.filter(|(word, _)| !word.is_empty() && !word.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use campaign_core::domain::Channel;
    use campaign_core::finding::render_findings;

    const FULL: &str = "production:
  base_url: https://gateway.example/
  async_url: https://async.gateway.example
  api_key: { env: CAMPAIGN_API_KEY }
  rate: 100/s
  limits: { recipients: 50000 }
  trust_status: [429, 0x1F7]
  proxy: http://proxy.example:3128
local:
  base_url: http://127.0.0.1:8025
  api_key: { file: secrets/local.key }
  account: shared
  batch_limit: 20
  fatal_errors: [No route]
  sender_verified: [Approved, Перевірено]
  prices: { sms: 0.80, call/otp: 1 }
";

    fn load_profiles(yaml: &str) -> (tempfile::TempDir, LoadedFile<Gateways>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateways.yaml");
        fs::write(&file, yaml).unwrap();
        let loaded = load_gateways(&GatewaySearch { explicit: Some(file), ..GatewaySearch::default() });
        (folder, loaded)
    }

    fn findings_for_line(line: &str) -> Vec<(&'static str, usize, usize)> {
        let yaml = format!("a:\n  base_url: https://g.example\n  api_key: {{ env: KEY }}\n  rate: 10/s\n{line}\n");
        let (_folder, loaded) = load_profiles(&yaml);
        list_findings(&collect_profile_findings(loaded))
    }

    /// The findings about invalid profiles, or about the file if it cannot be read.
    fn collect_profile_findings(loaded: LoadedFile<Gateways>) -> Vec<Finding> {
        let Some(gateways) = loaded.value else { return loaded.findings };
        gateways.invalid.into_iter().flat_map(|(_, findings)| findings).collect()
    }

    fn list_findings(findings: &[Finding]) -> Vec<(&'static str, usize, usize)> {
        findings
            .iter()
            .map(|finding| (finding.rule.id, finding.place.as_ref().unwrap()))
            .map(|(rule, at)| (rule, at.line_number(), at.column_number()))
            .collect()
    }

    #[test]
    fn profiles_have_documented_defaults() {
        let (folder, loaded) = load_profiles(FULL);
        let gateways = loaded.value.unwrap();
        let production = gateways.find_profile("production").unwrap();
        assert_eq!(production.base_url.as_str(), "https://gateway.example");
        assert_eq!((production.rate, production.batch_limit.get()), (Rate::PerSecond(100.0), 100));
        assert_eq!(production.recipients_limit, Some(50_000));
        assert_eq!(production.trust_status, [429, 503]);
        assert_eq!(production.fatal_errors, ["Not enough money"]);
        assert_eq!(production.account, "gateway.example");
        assert!(!production.is_loopback());
        let local = gateways.find_profile("local").unwrap();
        assert_eq!((local.rate, local.account.as_str(), local.is_loopback()), (Rate::Unlimited, "shared", true));
        assert_eq!(local.api_key, SecretSource::File(folder.path().join("secrets/local.key")));
        assert_eq!(local.fatal_errors, ["No route"]);
        assert_eq!(local.sender_verified, ["Approved", "Перевірено"]);
        assert_eq!(production.sender_verified, ["Checked"]);
        let priced = |channel| local.price_per_message(channel).map(|price| price.others.to_json_digits());
        assert_eq!(priced(Channel::Sms).as_deref(), Some("0.80"));
        assert_eq!((priced(Channel::CallOtp).as_deref(), priced(Channel::Viber)), (Some("1"), None));
        assert!(production.prices.is_empty());
    }

    #[test]
    fn invalid_profile_values_are_reported_at_their_position() {
        let cases = [
            ("  policy: { window: 9-20 }", ("window", 5, 21)),
            ("  policy: { window: { hours: 09:00-20:00, zone: city } }", ("window", 5, 49)),
            ("  policy: { notify: { when: [finished] } }", ("notify", 5, 13)),
            ("  async_url: http://g.example", ("gateway-address", 5, 14)),
            ("  trust_status: [200]", ("out-of-range", 5, 18)),
            ("  approval: { above: 10 }", ("missing-key", 5, 3)),
            ("  approval: { above: 10, by: { Olha: ed25519:AAAA } }", ("approver-key", 5, 38)),
            ("  approval: { above: 10, by: {} }", ("approver-key", 5, 26)),
            (
                "  approval: { above: -1, by: { Olha: 'ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' } }",
                ("wrong-type", 5, 22),
            ),
            ("  batch_limit: 0", ("out-of-range", 5, 16)),
            ("  proxy: nonsense", ("proxy-address", 5, 10)),
            (
                "b:\n  base_url: http://localhost\n  api_key: { env: KEY }\n  proxy: http://proxy.example:3128",
                ("proxy-address", 8, 10),
            ),
            ("  home: [UK]", ("unknown-region", 5, 10)),
            ("  limits: { abroad: 5 }", ("missing-key", 5, 13)),
            ("  policy: { countries: [] }", ("out-of-range", 5, 13)),
            ("  prices: { sms: free }", ("wrong-type", 5, 18)),
            ("  prices: { sms: -1 }", ("out-of-range", 5, 18)),
            ("  prices: { smss: 1 }", ("unknown-key", 5, 13)),
            ("  prices: { sms: { UA: 0.80 } }", ("missing-key", 5, 13)),
            ("  prices: { sms: { UK: 0.80, else: 1 } }", ("unknown-region", 5, 20)),
            ("  prices: { sms: { UA: free, else: 1 } }", ("wrong-type", 5, 24)),
            ("  prices: { sms: { UA: 0.80, else: -1 } }", ("out-of-range", 5, 36)),
            ("  prices: { sms: [1] }", ("wrong-type", 5, 19)),
            ("  bas_url: x", ("unknown-key", 5, 3)),
            ("sandbox:\n  base_url: http://localhost\n  api_key: { env: KEY }", ("reserved-name", 5, 1)),
            ("Pro:\n  base_url: http://localhost\n  api_key: { env: KEY }", ("profile-name", 5, 1)),
            ("b:\n  base_url: https://b.example\n  api_key: { env: KEY }", ("missing-key", 5, 1)),
            ("b:\n  base_url: https://b.example\n  api_key: { env: KEY }\n  rate: unlimited", ("unlimited-rate", 8, 9)),
            ("b: x", ("wrong-type", 5, 1)),
        ];
        for (line, expected) in cases {
            assert_eq!(findings_for_line(line), [expected], "{line}");
        }
    }

    #[test]
    fn country_price_overrides_the_default_price() {
        let yaml =
            "a: { base_url: http://localhost, api_key: { env: K }, prices: { sms: { UA: 0.80, PL: 2.1, else: 4 } } }";
        let (_folder, loaded) = load_profiles(yaml);
        let gateways = loaded.value.unwrap();
        let price = gateways.find_profile("a").unwrap().price_per_message(Channel::Sms).unwrap();
        let for_country = |code: &str| price.for_country(code.parse().ok()).to_json_digits();
        assert_eq!(["UA", "PL", "DE", ""].map(for_country), ["0.80", "2.1", "4", "4"]);
        assert_eq!(price.format_price(), "UA: 0.80, PL: 2.10, else: 4.00");
    }

    #[test]
    fn empty_file_suggests_adding_a_profile() {
        let (_folder, loaded) = load_profiles("\n");
        let findings = collect_profile_findings(loaded);
        assert_eq!(findings[0].rule, "file-empty");
        assert!(findings[0].help.as_ref().unwrap().contains("base_url"), "{findings:?}");
    }

    #[test]
    fn literal_api_key_is_rejected_and_concealed() {
        let keys = [
            "api_key: s3cret",
            "api_key: \"s3cret\"",
            "api_key: {s3cret}",
            "api_key: { value: s3cret }",
            "api_key:\n    s3cret",
            "api_key:\n    value: s3cret",
            "api_key: [s3cret]",
            "api_key: s3cret: x",
            "api_key: 's3cret",
            "api_key: { env: s3cret-with-dashes }",
            "api_key: !s3cret",
            "api_key: &s3cret",
            "api_key: !s3cret x",
            "api_key: &s3cret x",
            "api_key: { env: !s3cret }",
            "api_key: *s3cret",
            "api_key: |\n    s3cret",
        ];
        for key in keys {
            let (_folder, loaded) =
                load_profiles(&format!("a:\n  base_url: https://g.example\n  rate: 1/s\n  {key}\n"));
            let findings = collect_profile_findings(loaded);
            let text = render_findings(&findings, false);
            assert!(findings.iter().any(Finding::is_error), "{key}");
            assert!(!text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn unknown_gateway_lists_similar_names_or_searched_files() {
        let (_folder, loaded) = load_profiles(FULL);
        let gateways = loaded.value.unwrap();
        let help = |name: &str| gateways.find_profile(name).unwrap_err()[0].help.clone().unwrap();
        assert_eq!(help("prodution"), "did you mean `production`?");
        assert!(help("zzzzzz").contains(": `production` and `local`"));
        let folder = tempfile::tempdir().unwrap();
        let search = GatewaySearch { campaign: Some(folder.path().join("c/a.yaml")), ..GatewaySearch::default() };
        let none = load_gateways(&search).value.unwrap();
        let help = none.find_profile("production").unwrap_err()[0].help.clone().unwrap();
        assert!(help.contains("c/gateways.yaml") && help.contains("no gateways file exists"), "{help}");
    }

    #[test]
    fn gateways_file_is_searched_for_in_documented_order() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::create_dir_all(place("campaigns")).unwrap();
        fs::create_dir_all(place("config")).unwrap();
        let search = GatewaySearch {
            campaign: Some(place("campaigns/a.yaml")),
            configuration: Some(place("config")),
            ..GatewaySearch::default()
        };
        let find_file = || load_gateways(&search).value.unwrap().file().map(Path::to_owned);
        assert_eq!(find_file(), None);
        for name in ["config/gateways.yaml", "gateways.yaml", "campaigns/gateways.yaml"] {
            fs::write(place(name), FULL).unwrap();
            assert_eq!(find_file(), Some(place(name)));
        }
        let named = GatewaySearch { explicit: Some(place("none.yaml")), ..search.clone() };
        assert_eq!(load_gateways(&named).findings[0].rule, "file-missing");
    }
}

#[cfg(test)]
mod opt_out_words_tests {
    use super::*;

    /// Line and column of a finding, and whether it is an error.
    type ReportedFinding = (usize, usize, bool);

    /// The words of a file and its findings.
    fn read_text(text: &str) -> (Option<Vec<String>>, Vec<ReportedFinding>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.txt");
        std::fs::write(&file, text).unwrap();
        let LoadedFile { value, findings, .. } = load_words(&CampaignPath::anywhere(file), WordFile::OptOut);
        let place = |finding: &Finding| {
            let place = finding.place.clone().unwrap();
            assert!(place.source.path().ends_with("words.txt") && *finding.rule == rules::OPT_OUT_WORDS, "{finding:?}");
            (place.line_number(), place.column_number(), finding.is_error())
        };
        (value, findings.iter().map(place).collect())
    }

    #[test]
    fn opt_out_words_are_read_by_line_with_error_positions() {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(read_text("\u{feff}Godi\n\n# Ukrainian\n  не пишіть \r\n"), (words(&["Godi", "не пишіть"]), vec![]));
        assert_eq!(read_text("Godi\n  …\n"), (None, vec![(2, 3, true)]));
        assert_eq!(read_text("please do not write\n"), (None, vec![(1, 1, true)]));
        assert_eq!(
            read_text("Godi\nстоп\nGODI!\nGodi now\n"),
            (words(&["Godi"]), vec![(2, 1, false), (3, 1, false), (4, 1, false)])
        );
        assert_eq!(read_text("# nothing\n\n"), (None, vec![(1, 1, true)]));
        assert_eq!(read_text("Stop\n"), (words(&[]), vec![(1, 1, false)]));
    }

    #[test]
    fn missing_file_is_reported() {
        let loaded = load_words(&CampaignPath::anywhere("no/words.txt"), WordFile::OptOut);
        assert_eq!(loaded.findings[0].message, "the opt-out words file `no/words.txt` does not exist");
    }
}
