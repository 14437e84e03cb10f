//! Sign-in links, sessions and signing out.
//!
//! Links and sessions are in a private file in the state folder, not in the ledger. A restored or copied ledger must
//! not bring back revoked access. Only hashes of the secrets are stored. The file is read for every request, so
//! revoking takes effect at once.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Pages;
use super::page_error::PageError;
use super::request::{
    VerifiedForm, no_session_response, preferred_language, sessionless_response, sign_in_unavailable_response,
};
use campaign_core::private::{self, ExistingFile};
use campaign_runs::run_blocking;

/// Shows the button that uses a sign-in link. Programs that fetch links, such as link previews in chat apps and browser
/// prefetching, do not submit forms. They therefore do not use up the link.
pub(super) async fn show_sign_in(
    State(pages): State<Arc<Pages>>,
    UrlPath(link): UrlPath<String>,
    headers: HeaderMap,
) -> Response {
    let language = preferred_language(&headers);
    let (visitors, now) = (pages.visitors.clone(), pages.now());
    let has_link = run_blocking(move || visitors.has_link(&link, now)).await.map_err(PageError::from);
    match has_link.and_then(|has_link| Ok(has_link?)) {
        Ok(true) => sessionless_response(language, StatusCode::OK, "pages/sign_in.html", &json!({})),
        Ok(false) => no_session_response(language),
        Err(refusal) => sign_in_unavailable_response(language, &refusal.to_string()),
    }
}

/// Signs a visitor in with a link. The response is a page that loads the next page, not a redirect. After a redirect
/// from the site with the link, browsers do not send the `SameSite=Strict` cookie.
pub(super) async fn sign_in(
    State(pages): State<Arc<Pages>>,
    UrlPath(link): UrlPath<String>,
    headers: HeaderMap,
) -> Response {
    let language = preferred_language(&headers);
    // Without this check, another site could sign a visitor in under a different name.
    if !pages.is_same_origin(&headers) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let (visitors, now) = (pages.visitors.clone(), pages.now());
    let signed_in = run_blocking(move || visitors.use_link(&link, now)).await.map_err(PageError::from);
    let (visitor, session) = match signed_in.and_then(|signed_in| Ok(signed_in?)) {
        Ok(Some(signed_in)) => signed_in,
        Ok(None) => return no_session_response(language),
        Err(refusal) => return sign_in_unavailable_response(language, &refusal.to_string()),
    };
    tracing::info!("{} signed in to the dashboard", visitor.name);
    let view = json!({ "name": visitor.name });
    let page = sessionless_response(language, StatusCode::OK, "pages/signed_in.html", &view);
    with_session_cookie(&pages, page, &session, SESSION_LIFETIME.as_secs())
}

/// Ends the session.
pub(super) async fn sign_out(State(pages): State<Arc<Pages>>, form: VerifiedForm) -> Response {
    let (visitors, now, session) = (pages.visitors.clone(), pages.now(), form.request.session.clone());
    match run_blocking(move || visitors.end_session(&session, now)).await {
        Ok(Ok(())) => with_session_cookie(&pages, no_session_response(form.request.language), "", 0),
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Adds the session cookie to a response. The cookie expires after `max_age` seconds; 0 deletes the cookie.
fn with_session_cookie(pages: &Pages, mut response: Response, session: &str, max_age: i64) -> Response {
    let secure = if pages.is_secure() { "; Secure" } else { "" };
    let name = pages.cookie_name();
    let cookie = format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={max_age}{secure}");
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => {
            response.headers_mut().insert(SET_COOKIE, cookie);
            response
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The time for which a sign-in link is valid.
pub const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// The time for which a session is valid.
pub(super) const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The maximum number of links, and of sessions. Beyond this number, the oldest are removed.
const MAX_PASSES: usize = 256;
/// The maximum length of a name, in characters.
const MAX_NAME_LENGTH: usize = 64;

/// A signed-in visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visitor {
    /// The name under which decisions are recorded.
    pub(super) name: String,
    /// Whether the visitor may make decisions.
    pub(super) decides: bool,
}

/// A person with sign-in links or sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInEntry {
    /// The person's name, by which links and sessions are grouped.
    pub name: String,
    /// Whether one of the links or sessions allows decisions.
    pub decides: bool,
    /// The number of unused links.
    pub links: usize,
    /// The number of sessions.
    pub sessions: usize,
    /// The time at which the last of these links and sessions expires.
    pub until: Timestamp,
}

/// The file with sign-in links and sessions.
#[derive(Clone, Debug)]
pub struct Visitors {
    file: PathBuf,
    lock: PathBuf,
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SignInFile {
    /// The address of the server that started last.
    address: Option<String>,
    links: Vec<SignInPass>,
    sessions: Vec<SignInPass>,
}

/// A link or a session.
#[derive(Debug, Serialize, Deserialize)]
struct SignInPass {
    /// The hash of the secret of the link or session.
    secret: String,
    name: String,
    decides: bool,
    until: Timestamp,
}

impl SignInPass {
    fn new(secret: &str, Visitor { name, decides }: Visitor, until: Timestamp) -> Self {
        Self { secret: hash_secret(secret), name, decides, until }
    }

    fn to_visitor(&self) -> Visitor {
        Visitor { name: self.name.clone(), decides: self.decides }
    }
}

/// Whether a name is valid: short, on one line, and without control characters.
pub fn is_visitor_name(name: &str) -> bool {
    let length = name.chars().count();
    name.trim() == name
        && (1..=MAX_NAME_LENGTH).contains(&length)
        && campaign_core::finding::escape_to_one_line(name) == name
}

impl Visitors {
    /// Returns the sign-in file in a state folder.
    pub fn in_state_folder(state: &Path) -> Self {
        Self { file: state.join("visitors.json"), lock: state.join("visitors.lock") }
    }

    /// Records the address of the server.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn record_address(&self, address: &str, now: Timestamp) -> io::Result<()> {
        self.update_file(now, |sign_ins| sign_ins.address = Some(address.to_owned()))
    }

    /// The address of the server that started last, if any.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_address(&self) -> io::Result<Option<String>> {
        Ok(self.read_file()?.address)
    }

    /// Creates a sign-in link that can be used once, and returns its secret.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn create_link(&self, name: &str, decides: bool, now: Timestamp) -> io::Result<String> {
        let secret = new_secret();
        let pass = SignInPass::new(&secret, Visitor { name: name.to_owned(), decides }, add_time(now, LINK_LIFETIME));
        self.update_file(now, |sign_ins| push_bounded(&mut sign_ins.links, pass)).map(|()| secret)
    }

    /// Whether a link is valid and unused.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn has_link(&self, link: &str, now: Timestamp) -> io::Result<bool> {
        Ok(self.read_file()?.links.iter().any(|pass| pass.until > now && has_secret(pass, link)))
    }

    /// Uses up a link and returns the visitor and the secret of the new session; `None` if the link is used, expired
    /// or unknown.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(super) fn use_link(&self, link: &str, now: Timestamp) -> io::Result<Option<(Visitor, String)>> {
        self.update_file(now, |sign_ins| {
            let index = sign_ins.links.iter().position(|pass| has_secret(pass, link))?;
            let (visitor, secret) = (sign_ins.links.remove(index).to_visitor(), new_secret());
            push_bounded(
                &mut sign_ins.sessions,
                SignInPass::new(&secret, visitor.clone(), add_time(now, SESSION_LIFETIME)),
            );
            Some((visitor, secret))
        })
    }

    /// Finds the visitor of a session; returns `None` if the session is expired or unknown.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn find_session(&self, secret: &str, now: Timestamp) -> io::Result<Option<Visitor>> {
        let sessions = self.read_file()?.sessions;
        let mut valid = sessions.iter().filter(|pass| pass.until > now && has_secret(pass, secret));
        Ok(valid.next().map(SignInPass::to_visitor))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(super) fn end_session(&self, secret: &str, now: Timestamp) -> io::Result<()> {
        self.update_file(now, |sign_ins| sign_ins.sessions.retain(|pass| !has_secret(pass, secret)))
    }

    /// Lists everyone with access, grouped by name.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list_visitors(&self, now: Timestamp) -> io::Result<Vec<SignInEntry>> {
        let mut sign_ins = self.read_file()?;
        sign_ins.remove_expired(now);
        let mut entries: Vec<SignInEntry> = Vec::new();
        // Each pass counts as one link or as one session.
        let links = sign_ins.links.into_iter().map(|pass| (pass, (1, 0)));
        let sessions = sign_ins.sessions.into_iter().map(|pass| (pass, (0, 1)));
        for (pass, (link, session)) in links.chain(sessions) {
            let entry = entries.iter_mut().find(|entry| entry.name == pass.name);
            match entry {
                Some(entry) => {
                    entry.decides |= pass.decides;
                    entry.until = entry.until.max(pass.until);
                    (entry.links, entry.sessions) = (entry.links + link, entry.sessions + session);
                }
                None => entries.push(SignInEntry {
                    name: pass.name,
                    decides: pass.decides,
                    links: link,
                    sessions: session,
                    until: pass.until,
                }),
            }
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    /// Removes the links and sessions of a visitor, and returns the number of removed entries.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn revoke_visitor(&self, name: &str, now: Timestamp) -> io::Result<usize> {
        self.update_file(now, |sign_ins| {
            let count = |sign_ins: &SignInFile| sign_ins.links.len() + sign_ins.sessions.len();
            let before = count(sign_ins);
            sign_ins.links.retain(|pass| pass.name != name);
            sign_ins.sessions.retain(|pass| pass.name != name);
            before - count(sign_ins)
        })
    }

    /// Checks that the file can be read. If it cannot, no visitor can sign in.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn check_readable(&self) -> io::Result<()> {
        self.read_file().map(drop)
    }

    /// The path of the sign-in file, so that a user can remove a damaged file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    fn read_file(&self) -> io::Result<SignInFile> {
        match fs::read(&self.file) {
            Ok(bytes) => {
                let damaged = |error| io::Error::new(ErrorKind::InvalidData, format!("it is damaged: {error}"));
                serde_json::from_slice(&bytes).map_err(damaged)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(SignInFile::default()),
            Err(error) => Err(error),
        }
    }

    /// Changes the file under a lock, and returns the result of `change`. Readers see the file either before or after
    /// the change.
    fn update_file<T>(&self, now: Timestamp, change: impl FnOnce(&mut SignInFile) -> T) -> io::Result<T> {
        let lock: File = private::open_file(&self.lock, ExistingFile::Keep)?;
        lock.lock()?;
        let mut sign_ins = self.read_file()?;
        sign_ins.remove_expired(now);
        let result = change(&mut sign_ins);
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut new_file = tempfile::Builder::new().prefix(".visitors-").tempfile_in(folder)?;
        private::adopt_permissions(new_file.as_file(), folder)?;
        new_file.write_all(&serde_json::to_vec_pretty(&sign_ins)?)?;
        new_file.as_file().sync_all()?;
        new_file.persist(&self.file).map_err(|error| error.error)?;
        private::sync_entry(&self.file)?;
        Ok(result)
    }
}

impl SignInFile {
    fn remove_expired(&mut self, now: Timestamp) {
        self.links.retain(|pass| pass.until > now);
        self.sessions.retain(|pass| pass.until > now);
    }
}

/// Adds a pass. If there are too many passes, the oldest are removed.
fn push_bounded(passes: &mut Vec<SignInPass>, new: SignInPass) {
    passes.push(new);
    let surplus = passes.len().saturating_sub(MAX_PASSES);
    passes.drain(..surplus);
}

/// Whether a secret belongs to a pass, compared in constant time.
fn has_secret(pass: &SignInPass, secret: &str) -> bool {
    pass.secret.as_bytes().ct_eq(hash_secret(secret).as_bytes()).into()
}

/// A random secret of 256 bits.
fn new_secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// The stored hash of a secret.
fn hash_secret(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret.as_bytes()))
}

fn add_time(now: Timestamp, duration: SignedDuration) -> Timestamp {
    now.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_hour(hours: i64) -> Timestamp {
        add_time(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(hours))
    }

    fn olha() -> Visitor {
        Visitor { name: "Olha".to_owned(), decides: true }
    }

    #[test]
    fn sign_in_link_works_once_within_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let visitors = Visitors::in_state_folder(folder.path());
        let (link, expiring_link) = (
            visitors.create_link("Olha", true, at_hour(0)).unwrap(),
            visitors.create_link("Ivan", false, at_hour(0)).unwrap(),
        );
        assert_eq!(visitors.use_link("another", at_hour(1)).unwrap(), None);
        assert!(visitors.has_link(&link, at_hour(1)).unwrap() && !visitors.has_link("another", at_hour(1)).unwrap());
        let (visitor, session) = visitors.use_link(&link, at_hour(1)).unwrap().expect("a valid link");
        assert_eq!(visitor, olha());
        assert_eq!(visitors.use_link(&link, at_hour(1)).unwrap(), None, "used");
        assert!(!visitors.has_link(&link, at_hour(1)).unwrap(), "used");
        assert!(!visitors.has_link(&expiring_link, at_hour(24)).unwrap(), "expired");
        assert_eq!(visitors.use_link(&expiring_link, at_hour(24)).unwrap(), None, "expired");
        assert_eq!(visitors.find_session(&session, at_hour(2)).unwrap(), Some(olha()));
        assert_eq!(visitors.find_session(&link, at_hour(2)).unwrap(), None, "a link is no session");
        assert_eq!(visitors.find_session(&session, at_hour(1 + 30 * 24)).unwrap(), None, "expired");
    }

    #[test]
    fn visitors_file_is_private_and_contains_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let visitors = Visitors::in_state_folder(folder.path());
        let link = visitors.create_link("Olha", true, at_hour(0)).unwrap();
        let written = fs::read_to_string(&visitors.file).unwrap();
        assert!(written.contains("Olha") && !written.contains(&link), "{written}");
        let (_, session) = visitors.use_link(&link, at_hour(1)).unwrap().expect("a valid link");
        assert!(!fs::read_to_string(&visitors.file).unwrap().contains(&session));
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&visitors.file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn only_the_revoked_visitor_loses_links_and_sessions() {
        let folder = tempfile::tempdir().unwrap();
        let visitors = Visitors::in_state_folder(folder.path());
        let link = visitors.create_link("Olha", true, at_hour(0)).unwrap();
        let (_, session) = visitors.use_link(&link, at_hour(1)).unwrap().expect("a valid link");
        let second = visitors.create_link("Olha", false, at_hour(1)).unwrap();
        let other = visitors.create_link("Ivan", false, at_hour(1)).unwrap();
        let entries = visitors.list_visitors(at_hour(2)).unwrap();
        let listed: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.links, entry.sessions)).collect();
        assert_eq!(listed, [("Ivan", 1, 0), ("Olha", 1, 1)]);
        assert_eq!(visitors.revoke_visitor("Olha", at_hour(2)).unwrap(), 2);
        assert_eq!(visitors.find_session(&session, at_hour(2)).unwrap(), None);
        assert_eq!(visitors.use_link(&second, at_hour(2)).unwrap(), None);
        assert!(visitors.use_link(&other, at_hour(2)).unwrap().is_some());
    }

    #[test]
    fn damaged_visitors_file_grants_no_access() {
        let folder = tempfile::tempdir().unwrap();
        let visitors = Visitors::in_state_folder(folder.path());
        fs::write(&visitors.file, "{").unwrap();
        assert!(
            visitors.find_session("x", at_hour(0)).is_err() && visitors.create_link("Olha", true, at_hour(0)).is_err()
        );
    }

    #[test]
    fn visitor_name_is_one_short_line() {
        for (name, fits) in
            [("Olha", true), ("Ольга К.", true), ("", false), (" a", false), ("a\nb", false), ("a\u{202e}", false)]
        {
            assert_eq!(is_visitor_name(name), fits, "{name}");
        }
        assert!(!is_visitor_name(&"a".repeat(65)));
    }
}
