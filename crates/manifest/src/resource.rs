//! Programs, addresses and sources that a campaign uses, apart from its texts.
//!
//! A resource is compared as it is written in the file. The date that replaces `{{ today }}` in a file name, and
//! machine-specific folders, therefore make no difference.

use reqwest::Url;
use serde_json::{Value, json};

use super::campaign::Campaign;
use super::profile::Profile;
use super::yaml::{Node, node_to_json};
use campaign_core::finding::{escape_to_one_line, quote_for_shell};

/// The key of the notification command of a campaign.
pub const NOTIFY_COMMAND: &str = "notify.command";

/// The key of the public webhook address of a profile.
const WEBHOOKS: &str = "profile.hook.public_url";

/// The keys that name the list of recipients.
const LISTS: [&str; 5] = ["file", "run", "url", "command", "sql"];

/// The use of a resource in a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// The campaign starts a program.
    Program,
    /// The campaign contacts an address.
    Address,
    /// The campaign reads a source.
    Source,
}

/// A program, an address or a source of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The key that names the resource, such as `notify.command`; keys of the profile begin with `profile.`.
    pub key: String,
    /// A human-readable description, on one line. It shows where secrets are stored, but no parameter values.
    pub shown: String,
    /// Everything written under the key, as JSON. It is compared and never shown.
    pub written: String,
}

impl ResourceKind {
    /// The kind of the resource under a key.
    pub fn for_key(key: &str) -> Self {
        match key.rsplit('.').next() {
            // A table can have any name, even `command` or `url`.
            _ if key.starts_with("data.") => Self::Source,
            Some("command") => Self::Program,
            Some("url" | "public_url") => Self::Address,
            _ => Self::Source,
        }
    }

    /// The name in JSON and on the terminal.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Address => "address",
            Self::Source => "source",
        }
    }
}

impl Resource {
    fn new(key: impl Into<String>, display: &str, written: &Value) -> Self {
        Self { key: key.into(), shown: escape_to_one_line(display), written: written.to_string() }
    }

    /// The kind of the resource, which follows from the key.
    pub fn resource_kind(&self) -> ResourceKind {
        ResourceKind::for_key(&self.key)
    }

    /// The resource as JSON, for other programs.
    pub fn to_json(&self) -> Value {
        json!({ "key": self.key, "kind": self.resource_kind().kind_name(), "value": self.shown })
    }
}

impl Campaign {
    /// The programs, addresses and sources of the campaign and its profile.
    pub fn list_resources(&self, profile: Option<&Profile>) -> Vec<Resource> {
        let root = self.places.root_node();
        let mut resources = Vec::new();
        if let Some(recipients) = find_value(root, "recipients") {
            resources.extend(recipient_list_resource(recipients));
            resources.extend(suppression_resource(recipients, "recipients.suppress"));
        }
        resources.extend(consent_resource(root, self.needs_consent(profile)));
        let tables = find_value(root, "data").and_then(Node::as_entries).unwrap_or_default();
        resources.extend(tables.iter().map(|table| {
            Resource::new(format!("data.{}", table.key), &text_under(&table.value, "file"), &node_to_json(&table.value))
        }));
        resources.extend(find_value(root, "notify").and_then(|notify| notification_resource(notify, "notify")));
        let profile_resources = profile.map(|profile| profile.resources.as_slice()).unwrap_or_default();
        let takes_webhooks = self.receipts.uses_webhooks();
        let is_used = |resource: &&Resource| resource.key != WEBHOOKS || takes_webhooks;
        resources.extend(profile_resources.iter().filter(is_used).cloned());
        resources
    }
}

/// The programs, addresses and sources of a profile, except the endpoints of the gateway.
pub(super) fn list_profile_resources(profile: &Node) -> Vec<Resource> {
    let policy = find_value(profile, "policy");
    let notify = policy.and_then(|policy| find_value(policy, "notify"));
    let webhooks = find_value(profile, "hook").and_then(|hook| find_value(hook, "public_url"));
    [
        policy.and_then(|policy| suppression_resource(policy, "profile.policy.suppress")),
        notify.and_then(|notify| notification_resource(notify, "profile.policy.notify")),
        webhooks.map(|url| Resource::new(WEBHOOKS, &redact_address(&scalar_text(url)), &node_to_json(url))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The resource from which the list of recipients comes.
fn recipient_list_resource(recipients: &Node) -> Option<Resource> {
    let key = LISTS.into_iter().find(|key| find_value(recipients, key).is_some())?;
    let source = find_value(recipients, key)?;
    let key_to_json = |other: &str| find_value(recipients, other).map(node_to_json);
    let (display, written) = match key {
        "run" => {
            let states = key_to_json("state");
            let display = states.as_ref().map(|states| format!("{} ({states})", scalar_text(source)));
            (display.unwrap_or_else(|| scalar_text(source)), json!([node_to_json(source), states]))
        }
        "url" => {
            let headers = find_value(recipients, "headers").and_then(Node::as_entries).unwrap_or_default();
            let names: Vec<&str> = headers.iter().map(|header| header.key.as_str()).collect();
            let headers_suffix =
                if names.is_empty() { String::new() } else { format!(" with the headers {}", names.join(", ")) };
            (
                redact_address(&scalar_text(source)) + &headers_suffix,
                json!([node_to_json(source), key_to_json("headers")]),
            )
        }
        "command" => (quote_command(source), node_to_json(source)),
        "sql" => {
            let database = find_value(recipients, "from").map(describe_secret).unwrap_or_default();
            (format!("{} in {database}", scalar_text(source)), json!([node_to_json(source), key_to_json("from")]))
        }
        _ if scalar_text(source) == "-" => ("standard input".to_owned(), node_to_json(source)),
        _ => (scalar_text(source), node_to_json(source)),
    };
    Some(Resource::new(format!("recipients.{key}"), &display, &written))
}

/// The resource for the files of opted-out numbers under `suppress`.
fn suppression_resource(parent: &Node, key: &str) -> Option<Resource> {
    let suppress = find_value(parent, "suppress")?;
    let files = suppress.as_items().unwrap_or_default();
    let names: Vec<String> = files
        .iter()
        .map(|file| if file.as_scalar().is_some() { scalar_text(file) } else { text_under(file, "file") })
        .collect();
    (!names.is_empty()).then(|| Resource::new(key, &names.join(", "), &node_to_json(suppress)))
}

/// The source of consent, and whether consent is required. Both decide who gets messages.
fn consent_resource(root: &Node, is_required: bool) -> Option<Resource> {
    let consent = find_value(root, "recipients").and_then(|recipients| find_value(recipients, "consent"))?;
    let place = match text_under(consent, "file") {
        file if file.is_empty() => format!("the column {}", text_under(consent, "column")),
        file => file,
    };
    let source = if is_required { format!("{place} (required)") } else { place };
    Some(Resource::new("recipients.consent", &source, &json!([node_to_json(consent), is_required])))
}

/// The resource for the program or address that receives notifications.
fn notification_resource(notify: &Node, key: &str) -> Option<Resource> {
    if let Some(words) = find_value(notify, "command") {
        return Some(Resource::new(format!("{key}.command"), &quote_command(words), &node_to_json(notify)));
    }
    let url = find_value(notify, "url")?;
    Some(Resource::new(
        format!("{key}.url"),
        &format!("the address in {}", describe_secret(url)),
        &node_to_json(notify),
    ))
}

/// The words of a command, quoted for a shell.
fn quote_command(words: &Node) -> String {
    let words = words.as_items().unwrap_or_default().iter().map(|word| quote_for_shell(scalar_text(word)));
    words.collect::<Vec<_>>().join(" ")
}

/// An address without credentials and without the values of query parameters, which can be secrets.
fn redact_address(written: &str) -> String {
    let Some((before, query)) = written.split_once('?') else { return strip_credentials(written) };
    let query = query.split('#').next().unwrap_or_default();
    let names = query.split('&').map(|pair| format!("{}=…", pair.split('=').next().unwrap_or_default()));
    format!("{}?{}", strip_credentials(before), names.collect::<Vec<_>>().join("&"))
}

/// An address without the user name and password.
fn strip_credentials(written: &str) -> String {
    match Url::parse(written) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            // An address with a user has a host, so both can be removed.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.to_string()
        }
        _ => written.to_owned(),
    }
}

/// The location of a secret.
fn describe_secret(secret: &Node) -> String {
    match secret.as_entries() {
        Some([place]) if place.key == "env" => format!("the environment variable `{}`", scalar_text(&place.value)),
        Some([place]) => format!("the file `{}`", scalar_text(&place.value)),
        _ => String::new(),
    }
}

/// The value under a key, if there is one.
fn find_value<'n>(map: &'n Node, key: &str) -> Option<&'n Node> {
    map.find_entry(key).map(|entry| &entry.value).filter(|value| !value.is_null())
}

fn text_under(map: &Node, key: &str) -> String {
    find_value(map, key).map(scalar_text).unwrap_or_default()
}

fn scalar_text(node: &Node) -> String {
    node.as_scalar().map(|scalar| scalar.text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

    const PROFILE: &str = "main:
  base_url: http://127.0.0.1:9
  api_key: { env: KEY }
  hook: { public_url: \"https://hooks.example\", secret: { env: HOOK } }
  policy: { suppress: [all.csv], notify: { command: [tell, all] } }
";

    /// The resources of a campaign with these YAML keys, as (key, description) pairs.
    fn shown_resources(keys: &str) -> Vec<(String, String)> {
        resources(keys).into_iter().map(|resource| (resource.key, resource.shown)).collect()
    }

    fn resources(keys: &str) -> Vec<Resource> {
        let folder = tempfile::tempdir().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, PROFILE).unwrap();
        fs::write(&file, format!("{keys}\nchannels: [hlr]\n")).unwrap();
        let gateways = load_gateways(&GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() });
        let campaign = load_campaign(&file, CampaignDay::Of(jiff::Timestamp::UNIX_EPOCH));
        let campaign = campaign.value.unwrap_or_else(|| panic!("{keys}: {:?}", campaign.findings));
        campaign.list_resources(gateways.value.unwrap().find_profile("main").ok())
    }

    #[test]
    fn resources_are_shown_without_secrets() {
        let from_profile = [
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
                expected.iter().chain(&from_profile).map(|(key, shown)| ((*key).into(), (*shown).into())).collect();
            assert_eq!(shown_resources(keys), expected, "{keys}");
        }
    }

    #[test]
    fn resource_kind_is_inferred_from_its_key() {
        let cases = [
            ("recipients.command", "program"),
            ("profile.policy.notify.command", "program"),
            ("notify.url", "address"),
            ("profile.hook.public_url", "address"),
            ("recipients.file", "source"),
            ("data.command", "source"),
        ];
        for (key, word) in cases {
            assert_eq!(ResourceKind::for_key(key).kind_name(), word, "{key}");
        }
    }

    #[test]
    fn webhook_address_is_omitted_if_the_campaign_polls() {
        let polls = shown_resources("receipts: poll\nrecipients: { file: a.csv }");
        assert!(!polls.iter().any(|(key, _)| key == WEBHOOKS), "{polls:?}");
    }

    #[test]
    fn changes_to_concealed_parts_are_detected() {
        let written = |keys: &str| resources(keys).first().map(|resource| resource.written.clone());
        let url = |query: &str| written(&format!("recipients: {{ url: \"https://crm.example/a?token={query}\" }}"));
        assert_ne!(url("1"), url("2"));
        let header = |text: &str| {
            written(&format!("recipients: {{ url: \"https://crm.example/a\", headers: {{ X-Key: {text} }} }}"))
        };
        assert_ne!(header("a"), header("b"));
    }
}
