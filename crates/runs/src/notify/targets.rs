//! Targets of notifications: programs and HTTP posts.
//!
//! A program runs without a shell, with a minimal environment and a timeout. The URL of a post is a secret. Redirects
//! are not followed, no proxy is used, and only the status of the response is used. Private addresses are refused
//! unless the campaign allows them.

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use campaign_content::message::{Notice, render_notice};
use campaign_manifest::NotificationFormat;
use campaign_net::{http_client, is_public};

const USER_AGENT: &str = concat!("campaign/", env!("CARGO_PKG_VERSION"));

/// The reason for refusing a URL with a private address.
const PRIVATE_ADDRESS: &str = "the URL points to this machine or its local network; set `local: true` to allow this";

/// Parses a secret URL. Plain HTTP and private IP addresses are refused unless `local` is set. Errors do not contain
/// the URL.
pub(super) fn parse_address(secret: &str, local: bool) -> Result<Url, String> {
    let url = Url::parse(secret).map_err(|_| "the configured URL is not valid".to_owned())?;
    match url.scheme() {
        "https" => {}
        "http" if local => {}
        _ => return Err("the URL does not start with `https://`".to_owned()),
    }
    let host = url.host_str().ok_or("the URL has no host name")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        // An IP address is not resolved, so the resolver cannot check it.
        Ok(ip) if !local && !is_public(ip) => Err(PRIVATE_ADDRESS.to_owned()),
        _ => Ok(url),
    }
}

/// Posts the body and waits for the response until the timeout.
pub(super) async fn send_post(post: NotificationPost, local: bool, timeout: Duration) -> Result<(), String> {
    let mut builder = http_client::builder().user_agent(USER_AGENT).connect_timeout(timeout / 2).timeout(timeout);
    if !local {
        builder = builder.dns_resolver(Arc::new(PublicResolver));
    }
    let client = builder.build().map_err(|_| "cannot create an HTTP client".to_owned())?;
    let response = client.post(post.url).header(CONTENT_TYPE, post.media_type).body(post.body).send().await;
    match response.map_err(|error| describe_error(&error))?.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("the receiver responded with status {}", status.as_u16())),
    }
}

/// Describes an error without the URL.
fn describe_error(error: &reqwest::Error) -> String {
    let description = match RequestFailure::from_error(error) {
        RequestFailure::PrivateAddress => PRIVATE_ADDRESS,
        RequestFailure::Timeout => "the receiver did not respond in time",
        RequestFailure::NoConnection => "cannot connect to the receiver",
        RequestFailure::ConnectionLost => "the connection to the receiver was interrupted",
    };
    description.to_owned()
}

/// The reason a request to a user's URL failed. The original error contains the URL, which might be a secret.
pub(crate) enum RequestFailure {
    /// The host has a private address.
    PrivateAddress,
    /// The target did not respond in time.
    Timeout,
    /// No connection was made.
    NoConnection,
    /// The connection was lost.
    ConnectionLost,
}

impl RequestFailure {
    pub(crate) fn from_error(error: &reqwest::Error) -> Self {
        let mut sources = std::iter::successors(std::error::Error::source(error), |error| error.source());
        if sources.any(|source| source.is::<PrivateAddressError>()) {
            Self::PrivateAddress
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_connect() {
            Self::NoConnection
        } else {
            Self::ConnectionLost
        }
    }
}

/// A resolver that accepts public addresses only.
pub(crate) struct PublicResolver;

/// The host name resolves to a private address, possibly in addition to public addresses.
#[derive(Debug, thiserror::Error)]
#[error("the host name resolves to an address on this machine or its local network")]
struct PrivateAddressError;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address is enough to refuse: the owner of the name chooses which address is tried.
            if addresses.iter().any(|address| !is_public(address.ip())) {
                return Err(PrivateAddressError.into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// A request body with its URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotificationPost {
    pub(super) url: Url,
    pub(super) media_type: &'static str,
    pub(super) body: String,
}

/// Builds the POST request for a notice, which might have been merged from `all` notices.
pub(super) fn build_post(
    format: &NotificationFormat,
    mut url: Url,
    notice: &Notice,
    all: &[Notice],
) -> Result<NotificationPost, String> {
    let body = match format {
        NotificationFormat::Slack => json!({ "text": escape_slack(&notice.text) }),
        NotificationFormat::Teams => teams_card(&notice.text),
        NotificationFormat::TelegramBot => {
            let chat = take_parameter(&mut url, "chat_id")
                .ok_or("the URL of a Telegram bot must end with `/sendMessage?chat_id=…`")?;
            json!({ "chat_id": chat, "text": notice.text })
        }
        NotificationFormat::Json => json!({
            "occasion": notice.occasion, "text": notice.text, "count": all.len(), "notices": all,
        }),
        NotificationFormat::Own(text) => {
            let body = render_notice(text, notice, all.len())?;
            let is_json = serde_json::from_str::<Value>(&body).is_ok_and(|value| value.is_object() || value.is_array());
            let media_type = if is_json { JSON_MEDIA_TYPE } else { "text/plain; charset=utf-8" };
            return Ok(NotificationPost { url, media_type, body });
        }
    };
    Ok(NotificationPost { url, media_type: JSON_MEDIA_TYPE, body: body.to_string() })
}

const JSON_MEDIA_TYPE: &str = "application/json";

/// Escapes Slack's markup, because `<!channel>` would notify everyone.
fn escape_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A card with one text, in the form that a Teams workflow accepts.
fn teams_card(text: &str) -> Value {
    let block = json!({ "type": "TextBlock", "wrap": true, "text": text });
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard", "version": "1.4", "body": [block],
    });
    let attachment = json!({ "contentType": "application/vnd.microsoft.card.adaptive", "content": card });
    json!({ "type": "message", "attachments": [attachment] })
}

/// Removes a parameter from a URL and returns its first value. `None` if the URL lacks the parameter.
fn take_parameter(url: &mut Url, name: &str) -> Option<String> {
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let value = pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())?;
    url.set_query(None);
    let rest: Vec<_> = pairs.into_iter().filter(|(key, _)| key != name).collect();
    if !rest.is_empty() {
        url.query_pairs_mut().extend_pairs(rest);
    }
    Some(value)
}

/// The environment variables that a program gets. Others might contain keys and addresses.
const PASSED_VARIABLES: [&str; 9] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Runs the program with the notice in its arguments and all notices as JSON on standard input. The program is stopped
/// if it does not end before the timeout.
pub(super) async fn run_program(
    words: &[String],
    notice: &Notice,
    all: &[Notice],
    timeout: Duration,
) -> Result<(), String> {
    let words = words.iter().map(|word| render_notice(word, notice, all.len())).collect::<Result<Vec<_>, _>>()?;
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true);
    command.envs(PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot start `{program}`: {error}"))?;
    let json = serde_json::to_vec(all).unwrap_or_default();
    let ended = async {
        if let Some(mut stdin) = child.stdin.take() {
            // The program does not have to read its input.
            let _ = stdin.write_all(&json).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(timeout, ended).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("`{program}` failed: {status}")),
        Ok(Err(error)) => Err(format!("cannot wait for `{program}`: {error}")),
        Err(_) => Err(format!("`{program}` did not finish within {} s, so it was stopped", timeout.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_address_is_refused_unless_it_is_allowed() {
        for address in [
            "https://127.0.0.1/s3cret",
            "https://[::1]/s3cret",
            "https://10.0.0.7/s3cret",
            "https://169.254.169.254/s3cret",
            "https://[::ffff:192.168.0.1]:8443/s3cret",
        ] {
            let error = parse_address(address, false).unwrap_err();
            assert!(error.contains("local: true") && !error.contains("s3cret"), "{error}");
            assert!(parse_address(address, true).is_ok());
        }
        assert!(parse_address("https://8.8.8.8/s3cret", false).is_ok());
        for (text, local) in [("http://a.example/s3cret", false), ("ftp://a.example/s3cret", true), ("s3cret", true)] {
            assert!(!parse_address(text, local).unwrap_err().contains("s3cret"));
        }
        assert!(parse_address("http://127.0.0.1:9/s3cret", true).is_ok());
    }

    #[tokio::test]
    async fn host_name_that_resolves_to_loopback_is_refused() {
        let body = String::new();
        let url = "https://localhost:1/s3cret".parse().unwrap();
        let error = send_post(NotificationPost { url, media_type: "text/plain", body }, false, Duration::from_secs(5))
            .await
            .unwrap_err();
        assert_eq!(error, PRIVATE_ADDRESS);
    }
}

#[cfg(test)]
mod payload_tests {
    use super::*;

    fn build_json_post(form: &NotificationFormat, url: &str, text: &str) -> Result<(String, Value), String> {
        let notice = Notice { text: text.to_owned(), ..Notice::sample() };
        let post = build_post(form, url.parse().unwrap(), &notice, std::slice::from_ref(&notice))?;
        assert_eq!(post.media_type, JSON_MEDIA_TYPE);
        Ok((post.url.to_string(), serde_json::from_str(&post.body).unwrap()))
    }

    #[test]
    fn each_receiver_gets_its_own_payload_format() {
        let url = "https://hooks.example/services/T0/B0/secret?a=1";
        let (to, slack) = build_json_post(&NotificationFormat::Slack, url, "<!channel> & so").unwrap();
        assert_eq!((to.as_str(), slack), (url, json!({ "text": "&lt;!channel&gt; &amp; so" })));
        let (_, teams) = build_json_post(&NotificationFormat::Teams, url, "done").unwrap();
        assert_eq!(teams["attachments"][0]["content"]["body"][0]["text"], "done");
        assert_eq!(teams["attachments"][0]["contentType"], "application/vnd.microsoft.card.adaptive");
        let (_, all) = build_json_post(&NotificationFormat::Json, url, "done").unwrap();
        assert_eq!((&all["occasion"], &all["count"]), (&json!("finished"), &json!(1)));
        assert_eq!(all["notices"][0]["counts"]["accepted"], 98);
    }

    #[test]
    fn telegram_chat_id_moves_from_the_url_to_the_body() {
        let (to, body) = build_json_post(
            &NotificationFormat::TelegramBot,
            "https://api.telegram.org/bot1:X/sendMessage?chat_id=-100&a=b",
            "x",
        )
        .unwrap();
        assert_eq!(to, "https://api.telegram.org/bot1:X/sendMessage?a=b");
        assert_eq!(body, json!({ "chat_id": "-100", "text": "x" }));
        let error =
            build_json_post(&NotificationFormat::TelegramBot, "https://api.telegram.org/bot1:SECRET/sendMessage", "x")
                .unwrap_err();
        assert!(error.contains("chat_id") && !error.contains("SECRET"), "{error}");
    }

    #[test]
    fn custom_text_has_json_type_only_if_it_is_structured_json() {
        let notice = Notice::sample();
        for (text, media_type, body) in [
            ("{ \"content\": {{ text | json }} }", JSON_MEDIA_TYPE, "{ \"content\": \"autumn-sale@3 finished\" }"),
            ("{{ run }} is through", "text/plain; charset=utf-8", "autumn-sale@3 is through"),
            ("17", "text/plain; charset=utf-8", "17"),
        ] {
            let form = NotificationFormat::Own(text.to_owned());
            let post = build_post(&form, "https://a.example/".parse().unwrap(), &notice, &[]).unwrap();
            assert_eq!((post.media_type, post.body.as_str()), (media_type, body));
        }
    }
}

#[cfg(all(test, unix))]
mod program_tests {
    use super::*;

    async fn run_command(words: &[&str], timeout: Duration) -> Result<(), String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let notice = Notice { text: "a; touch /nowhere $(x) `y`".to_owned(), ..Notice::sample() };
        run_program(&words, &notice, std::slice::from_ref(&notice), timeout).await
    }

    #[tokio::test]
    async fn program_gets_exact_arguments_and_json_on_stdin() {
        let folder = tempfile::tempdir().unwrap();
        let (out, input) = (folder.path().join("out"), folder.path().join("in"));
        let script =
            format!("printf %s \"$1\" > {}; cat > {}; env >> {}.env", out.display(), input.display(), out.display());
        run_command(&["sh", "-c", &script, "sh", "{{ text }}"], Duration::from_secs(30)).await.unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "a; touch /nowhere $(x) `y`");
        let notices: Vec<Notice> = serde_json::from_str(&std::fs::read_to_string(&input).unwrap()).unwrap();
        assert_eq!(notices.len(), 1);
        let env = std::fs::read_to_string(folder.path().join("out.env")).unwrap();
        assert!(!env.contains("CARGO"), "{env}");
    }

    #[tokio::test]
    async fn program_that_fails_or_hangs_or_is_missing_is_reported() {
        assert!(run_command(&["false"], Duration::from_secs(30)).await.is_err());
        assert!(run_command(&["/nowhere/at/all"], Duration::from_secs(30)).await.unwrap_err().contains("cannot start"));
        assert!(run_command(&["sleep", "600"], Duration::from_millis(50)).await.unwrap_err().contains("was stopped"));
    }
}
