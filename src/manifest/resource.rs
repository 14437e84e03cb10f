//! Programs, addresses and sources of a campaign: what it starts, contacts and reads besides its texts.
//!
//! A resource is compared as it is written in the file. Dates in names and folders of machines therefore make no difference.

use reqwest::Url;
use serde_json::{Value, json};

use super::campaign::Campaign;
use super::profile::Profile;
use super::yaml::{Node, core_json};
use crate::finding::{one_line, quoted};

/// The key of the program that a campaign starts to notify someone.
pub const NOTIFY_COMMAND: &str = "notify.command";

/// The key of the address at which the webhooks of a profile arrive.
const WEBHOOKS: &str = "profile.hook.public_url";

/// The keys that name the list of recipients.
const LISTS: [&str; 5] = ["file", "run", "url", "command", "sql"];

/// What a campaign does with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// It starts a program.
    Program,
    /// It contacts an address.
    Address,
    /// It reads a source.
    Source,
}

/// A program, an address or a source of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The key that names it, such as `notify.command`; keys of the profile begin with `profile.`.
    pub key: String,
    /// The resource as a person reads it, on one line. It shows where secrets are stored, and no values of parameters.
    pub shown: String,
    /// Everything that is written under the key, as JSON. It is compared and never shown.
    pub written: String,
}

impl ResourceKind {
    /// The kind of the resource under a key.
    #[must_use]
    pub fn of(key: &str) -> Self {
        match key.rsplit('.').next() {
            // A table can have any name.
            _ if key.starts_with("data.") => Self::Source,
            Some("command") => Self::Program,
            Some("url" | "public_url") => Self::Address,
            _ => Self::Source,
        }
    }

    /// Its word in JSON and on the terminal.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Address => "address",
            Self::Source => "source",
        }
    }
}

impl Resource {
    fn new(key: impl Into<String>, shown: &str, written: &Value) -> Self {
        Self { key: key.into(), shown: one_line(shown), written: written.to_string() }
    }

    /// What the campaign does with it.
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        ResourceKind::of(&self.key)
    }

    /// The resource for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "key": self.key, "kind": self.kind().word(), "value": self.shown })
    }
}

impl Campaign {
    /// Its programs, addresses and sources, and those of the profile that it is sent through.
    #[must_use]
    pub fn resources(&self, profile: Option<&Profile>) -> Vec<Resource> {
        let root = self.places.root();
        let mut resources = Vec::new();
        if let Some(recipients) = value(root, "recipients") {
            resources.extend(list(recipients));
            resources.extend(suppression_list(recipients, "recipients.suppress"));
        }
        let tables = value(root, "data").and_then(Node::entries).unwrap_or_default();
        resources.extend(tables.iter().map(|table| {
            Resource::new(format!("data.{}", table.key), &text(&table.value, "file"), &core_json(&table.value))
        }));
        resources.extend(value(root, "notify").and_then(|notify| notification(notify, "notify")));
        let of_profile = profile.map(|profile| profile.resources.as_slice()).unwrap_or_default();
        let takes_webhooks = self.receipts.takes_webhooks();
        resources.extend(of_profile.iter().filter(|resource| resource.key != WEBHOOKS || takes_webhooks).cloned());
        resources
    }
}

/// The programs, addresses and sources of a profile besides the endpoints of its gateway.
pub(super) fn profile_resources(profile: &Node) -> Vec<Resource> {
    let policy = value(profile, "policy");
    let notify = policy.and_then(|policy| value(policy, "notify"));
    let webhooks = value(profile, "hook").and_then(|hook| value(hook, "public_url"));
    [
        policy.and_then(|policy| suppression_list(policy, "profile.policy.suppress")),
        notify.and_then(|notify| notification(notify, "profile.policy.notify")),
        webhooks.map(|url| Resource::new(WEBHOOKS, &address(&scalar(url)), &core_json(url))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The list of recipients.
fn list(recipients: &Node) -> Option<Resource> {
    let key = LISTS.into_iter().find(|key| value(recipients, key).is_some())?;
    let named = value(recipients, key)?;
    let more = |other: &str| value(recipients, other).map(core_json);
    let (shown, written) = match key {
        "run" => {
            let states = more("state");
            let shown = states.as_ref().map(|states| format!("{} ({states})", scalar(named)));
            (shown.unwrap_or_else(|| scalar(named)), json!([core_json(named), states]))
        }
        "url" => {
            let headers = value(recipients, "headers").and_then(Node::entries).unwrap_or_default();
            let names: Vec<&str> = headers.iter().map(|header| header.key.as_str()).collect();
            let with = if names.is_empty() { String::new() } else { format!(" with the headers {}", names.join(", ")) };
            (address(&scalar(named)) + &with, json!([core_json(named), more("headers")]))
        }
        "command" => (command(named), core_json(named)),
        "sql" => {
            let database = value(recipients, "from").map(stored).unwrap_or_default();
            (format!("{} in {database}", scalar(named)), json!([core_json(named), more("from")]))
        }
        _ if scalar(named) == "-" => ("standard input".to_owned(), core_json(named)),
        _ => (scalar(named), core_json(named)),
    };
    Some(Resource::new(format!("recipients.{key}"), &shown, &written))
}

/// The files of opt-outs below `suppress`.
fn suppression_list(above: &Node, key: &str) -> Option<Resource> {
    let suppress = value(above, "suppress")?;
    let files = suppress.items().unwrap_or_default();
    let names: Vec<String> =
        files.iter().map(|file| if file.scalar().is_some() { scalar(file) } else { text(file, "file") }).collect();
    (!names.is_empty()).then(|| Resource::new(key, &names.join(", "), &core_json(suppress)))
}

/// What notifies someone.
fn notification(notify: &Node, key: &str) -> Option<Resource> {
    if let Some(words) = value(notify, "command") {
        return Some(Resource::new(format!("{key}.command"), &command(words), &core_json(notify)));
    }
    let url = value(notify, "url")?;
    Some(Resource::new(format!("{key}.url"), &format!("the address in {}", stored(url)), &core_json(notify)))
}

/// The words of a program, quoted as for a shell.
fn command(words: &Node) -> String {
    let words = words.items().unwrap_or_default().iter().map(|word| quoted(scalar(word)));
    words.collect::<Vec<_>>().join(" ")
}

/// An address without the values of its parameters, which can be secrets.
fn address(written: &str) -> String {
    let Some((before, query)) = written.split_once('?') else { return without_user(written) };
    let query = query.split('#').next().unwrap_or_default();
    let names = query.split('&').map(|pair| format!("{}=…", pair.split('=').next().unwrap_or_default()));
    format!("{}?{}", without_user(before), names.collect::<Vec<_>>().join("&"))
}

/// An address without a user and a password.
fn without_user(written: &str) -> String {
    match Url::parse(written) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            // An address that has a user has a host, so both can be removed.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.to_string()
        }
        _ => written.to_owned(),
    }
}

/// Where a secret is stored.
fn stored(secret: &Node) -> String {
    match secret.entries() {
        Some([place]) if place.key == "env" => format!("the environment variable `{}`", scalar(&place.value)),
        Some([place]) => format!("the file `{}`", scalar(&place.value)),
        _ => String::new(),
    }
}

/// The value under a key, if there is one.
fn value<'n>(map: &'n Node, key: &str) -> Option<&'n Node> {
    map.get(key).map(|entry| &entry.value).filter(|value| !value.is_null())
}

fn text(map: &Node, key: &str) -> String {
    value(map, key).map(scalar).unwrap_or_default()
}

fn scalar(node: &Node) -> String {
    node.scalar().map(|scalar| scalar.text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::manifest::{Day, GatewaySearch, load_campaign, load_gateways};

    const PROFILE: &str = "main:
  base_url: http://127.0.0.1:9
  api_key: { env: KEY }
  hook: { public_url: \"https://hooks.example\", secret: { env: HOOK } }
  policy: { suppress: [all.csv], notify: { command: [tell, all] } }
";

    /// The resources of a campaign with these keys, as keys and words.
    fn shown(keys: &str) -> Vec<(String, String)> {
        resources(keys).into_iter().map(|resource| (resource.key, resource.shown)).collect()
    }

    fn resources(keys: &str) -> Vec<Resource> {
        let folder = tempfile::tempdir().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, PROFILE).unwrap();
        fs::write(&file, format!("{keys}\nchannels: [hlr]\n")).unwrap();
        let gateways = load_gateways(&GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() });
        let campaign = load_campaign(&file, Day::Of(jiff::Timestamp::UNIX_EPOCH));
        let campaign = campaign.value.unwrap_or_else(|| panic!("{keys}: {:?}", campaign.findings));
        campaign.resources(gateways.value.unwrap().profile("main").ok())
    }

    #[test]
    fn resources_of_a_campaign_and_its_profile_are_shown_without_secrets() {
        let of_profile = [
            ("profile.policy.suppress", "all.csv"),
            ("profile.policy.notify.command", "tell all"),
            ("profile.hook.public_url", "https://hooks.example"),
        ];
        let cases: [(&str, &[(&str, &str)]); 8] = [
            ("recipients: { file: \"{{ today }}.csv\" }", &[("recipients.file", "{{ today }}.csv")]),
            ("recipients: { file: \"-\" }", &[("recipients.file", "standard input")]),
            ("recipients: { run: a@1, state: failed }", &[("recipients.run", "a@1 (\"failed\")")]),
            (
                "recipients: { url: \"https://crm.example/a?token=s3cret&b=s3cret#s3cret\", headers: { X-Key: s3cret } }",
                &[("recipients.url", "https://crm.example/a?token=…&b=… with the headers X-Key")],
            ),
            ("recipients: { command: [sh, -c, \"echo 'a'\"] }", &[("recipients.command", "sh -c 'echo '\\''a'\\'''")]),
            (
                "recipients: { sql: \"select 1\\nfrom a\", from: { env: CRM } }",
                &[("recipients.sql", "select 1⏎from a in the environment variable `CRM`")],
            ),
            (
                "recipients: { file: a.csv, suppress: [b.csv, { file: c.csv, phone: P }] }\nnotify: { url: { file: u } }",
                &[
                    ("recipients.file", "a.csv"),
                    ("recipients.suppress", "b.csv, c.csv"),
                    ("notify.url", "the address in the file `u`"),
                ],
            ),
            (
                "recipients: { file: a.csv }\ndata: { command: { file: s.csv, key: k } }\nnotify: { command: [x, \"a b\"] }",
                &[("recipients.file", "a.csv"), ("data.command", "s.csv"), ("notify.command", "x 'a b'")],
            ),
        ];
        for (keys, expected) in cases {
            let expected: Vec<(String, String)> =
                expected.iter().chain(&of_profile).map(|(key, shown)| ((*key).into(), (*shown).into())).collect();
            assert_eq!(shown(keys), expected, "{keys}");
        }
    }

    #[test]
    fn kind_of_a_resource_follows_from_its_key() {
        let cases = [
            ("recipients.command", "program"),
            ("profile.policy.notify.command", "program"),
            ("notify.url", "address"),
            ("profile.hook.public_url", "address"),
            ("recipients.file", "source"),
            ("data.command", "source"),
        ];
        for (key, word) in cases {
            assert_eq!(ResourceKind::of(key).word(), word, "{key}");
        }
    }

    #[test]
    fn webhook_address_is_no_resource_of_a_campaign_that_polls() {
        let polls = shown("receipts: poll\nrecipients: { file: a.csv }");
        assert!(!polls.iter().any(|(key, _)| key == WEBHOOKS), "{polls:?}");
    }

    #[test]
    fn whatever_is_hidden_is_compared() {
        let written = |keys: &str| resources(keys).first().map(|resource| resource.written.clone());
        let url = |query: &str| written(&format!("recipients: {{ url: \"https://crm.example/a?token={query}\" }}"));
        assert_ne!(url("1"), url("2"));
        let header = |text: &str| {
            written(&format!("recipients: {{ url: \"https://crm.example/a\", headers: {{ X-Key: {text} }} }}"))
        };
        assert_ne!(header("a"), header("b"));
    }
}
