//! Who may look at the pages of this machine: links that let somebody in once, and the sessions of those who came in.
//!
//! They are kept in a private file of the state folder and not in the ledger: a link is of a door of this machine, and a
//! ledger that is put back or copied must let nobody in again who was shown out. Of a link and of a session only the hash
//! of its secret is kept. The file is read anew whenever somebody comes, so that who is shown out is out at once.
//!
//! It must not know HTTP.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::private::{self, ExistingFile};

/// How long a link is good.
pub const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// How long a session is good.
pub(super) const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The most links and sessions that are kept, each: the latest.
const MAX_PASSES: usize = 256;
/// The longest name.
const MAX_NAME_LENGTH: usize = 64;

/// Who looks at pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visitor {
    /// The name under which what they decide is recorded.
    pub(super) name: String,
    /// Whether they may decide.
    pub(super) decides: bool,
}

/// What is known of somebody who may look at pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInEntry {
    /// The name.
    pub name: String,
    /// Whether a link or a session of theirs lets them decide.
    pub decides: bool,
    /// Links that were not used yet.
    pub links: usize,
    /// Sessions.
    pub sessions: usize,
    /// When the last of these is over.
    pub until: Timestamp,
}

/// The file in which it stands who may look.
#[derive(Clone, Debug)]
pub struct Visitors {
    file: PathBuf,
    lock: PathBuf,
}

/// What stands in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SignInFile {
    /// Where the server that began last is reached.
    address: Option<String>,
    links: Vec<SignInPass>,
    sessions: Vec<SignInPass>,
}

/// A link or a session.
#[derive(Debug, Serialize, Deserialize)]
struct SignInPass {
    /// The hash of its secret.
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

/// Whether somebody can be known by this name: some signs on one line.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let signs = name.chars().count();
    name.trim() == name && (1..=MAX_NAME_LENGTH).contains(&signs) && crate::finding::escape_to_one_line(name) == name
}

impl Visitors {
    /// Those of a state folder.
    #[must_use]
    pub fn in_state_folder(state: &Path) -> Self {
        Self { file: state.join("visitors.json"), lock: state.join("visitors.lock") }
    }

    /// Remembers where the server is reached.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn record_address(&self, address: &str, now: Timestamp) -> io::Result<()> {
        self.update_file(now, |book| book.address = Some(address.to_owned()))
    }

    /// Where the server that began last is reached; nothing where none ever began.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_address(&self) -> io::Result<Option<String>> {
        Ok(self.read_file()?.address)
    }

    /// The secret of a new link, which lets somebody in once.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn create_link(&self, name: &str, decides: bool, now: Timestamp) -> io::Result<String> {
        let secret = new_secret();
        let pass = SignInPass::new(&secret, Visitor { name: name.to_owned(), decides }, add_time(now, LINK_LIFETIME));
        self.update_file(now, |book| push_bounded(&mut book.links, pass)).map(|()| secret)
    }

    /// Uses a link up: who comes by it, and the secret of their session; nothing where it was used, is over or never was.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(super) fn use_link(&self, link: &str, now: Timestamp) -> io::Result<Option<(Visitor, String)>> {
        self.update_file(now, |book| {
            let place = book.links.iter().position(|pass| has_secret(pass, link))?;
            let (visitor, secret) = (book.links.remove(place).to_visitor(), new_secret());
            push_bounded(
                &mut book.sessions,
                SignInPass::new(&secret, visitor.clone(), add_time(now, SESSION_LIFETIME)),
            );
            Some((visitor, secret))
        })
    }

    /// Whose session it is; nothing where it is over or never was.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn find_session(&self, secret: &str, now: Timestamp) -> io::Result<Option<Visitor>> {
        let sessions = self.read_file()?.sessions;
        let mut mine = sessions.iter().filter(|pass| pass.until > now && has_secret(pass, secret));
        Ok(mine.next().map(SignInPass::to_visitor))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(super) fn end_session(&self, secret: &str, now: Timestamp) -> io::Result<()> {
        self.update_file(now, |book| book.sessions.retain(|pass| !has_secret(pass, secret)))
    }

    /// Everybody who may look, by name.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list_visitors(&self, now: Timestamp) -> io::Result<Vec<SignInEntry>> {
        let mut book = self.read_file()?;
        book.remove_expired(now);
        let mut all: Vec<SignInEntry> = Vec::new();
        let links = book.links.into_iter().map(|pass| (pass, (1, 0)));
        for (pass, (link, session)) in links.chain(book.sessions.into_iter().map(|pass| (pass, (0, 1)))) {
            let known = all.iter_mut().find(|known| known.name == pass.name);
            match known {
                Some(known) => {
                    known.decides |= pass.decides;
                    known.until = known.until.max(pass.until);
                    (known.links, known.sessions) = (known.links + link, known.sessions + session);
                }
                None => all.push(SignInEntry {
                    name: pass.name,
                    decides: pass.decides,
                    links: link,
                    sessions: session,
                    until: pass.until,
                }),
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Shows somebody out: links and sessions of that name are over. Tells how many there were.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn revoke_visitor(&self, name: &str, now: Timestamp) -> io::Result<usize> {
        self.update_file(now, |book| {
            let all = |book: &SignInFile| book.links.len() + book.sessions.len();
            let before = all(book);
            book.links.retain(|pass| pass.name != name);
            book.sessions.retain(|pass| pass.name != name);
            before - all(book)
        })
    }

    /// Whether the file can be read; without it nobody is let in.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn prove_readable(&self) -> io::Result<()> {
        self.read_file().map(drop)
    }

    /// The file, for whoever has to remove a damaged one.
    #[must_use]
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

    /// Changes what stands there, while no other process does; a reader sees it before or after.
    fn update_file<T>(&self, now: Timestamp, change: impl FnOnce(&mut SignInFile) -> T) -> io::Result<T> {
        let lock: File = private::open_file(&self.lock, ExistingFile::Keep)?;
        lock.lock()?;
        let mut book = self.read_file()?;
        book.remove_expired(now);
        let changed = change(&mut book);
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::Builder::new().prefix(".visitors-").tempfile_in(folder)?;
        new.write_all(&serde_json::to_vec_pretty(&book)?)?;
        new.as_file().sync_all()?;
        new.persist(&self.file).map_err(|error| error.error)?;
        private::sync_entry(&self.file)?;
        Ok(changed)
    }
}

impl SignInFile {
    fn remove_expired(&mut self, now: Timestamp) {
        self.links.retain(|pass| pass.until > now);
        self.sessions.retain(|pass| pass.until > now);
    }
}

/// Keeps one more; where there are too many the first ones go.
fn push_bounded(passes: &mut Vec<SignInPass>, new: SignInPass) {
    passes.push(new);
    let surplus = passes.len().saturating_sub(MAX_PASSES);
    passes.drain(..surplus);
}

/// Whether this is the secret of a pass; how long that takes tells nothing of either.
fn has_secret(pass: &SignInPass, secret: &str) -> bool {
    pass.secret.as_bytes().ct_eq(hash_secret(secret).as_bytes()).into()
}

/// A secret that nobody guesses: 256 bits.
fn new_secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// What is kept of a secret.
fn hash_secret(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret.as_bytes()))
}

fn add_time(now: Timestamp, time: SignedDuration) -> Timestamp {
    now.checked_add(time).unwrap_or(Timestamp::MAX)
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
        let (link, late) = (
            visitors.create_link("Olha", true, at_hour(0)).unwrap(),
            visitors.create_link("Ivan", false, at_hour(0)).unwrap(),
        );
        assert_eq!(visitors.use_link("another", at_hour(1)).unwrap(), None);
        let (visitor, session) = visitors.use_link(&link, at_hour(1)).unwrap().expect("let in");
        assert_eq!(visitor, olha());
        assert_eq!(visitors.use_link(&link, at_hour(1)).unwrap(), None, "used");
        assert_eq!(visitors.use_link(&late, at_hour(24)).unwrap(), None, "over");
        assert_eq!(visitors.find_session(&session, at_hour(2)).unwrap(), Some(olha()));
        assert_eq!(visitors.find_session(&link, at_hour(2)).unwrap(), None, "a link is no session");
        assert_eq!(visitors.find_session(&session, at_hour(1 + 30 * 24)).unwrap(), None, "over");
    }

    #[test]
    fn file_has_no_secrets_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let visitors = Visitors::in_state_folder(folder.path());
        let link = visitors.create_link("Olha", true, at_hour(0)).unwrap();
        let written = fs::read_to_string(&visitors.file).unwrap();
        assert!(written.contains("Olha") && !written.contains(&link), "{written}");
        let (_, session) = visitors.use_link(&link, at_hour(1)).unwrap().expect("let in");
        assert!(!fs::read_to_string(&visitors.file).unwrap().contains(&session));
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&visitors.file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn revoked_visitor_loses_links_and_sessions_alone() {
        let folder = tempfile::tempdir().unwrap();
        let visitors = Visitors::in_state_folder(folder.path());
        let link = visitors.create_link("Olha", true, at_hour(0)).unwrap();
        let (_, session) = visitors.use_link(&link, at_hour(1)).unwrap().expect("let in");
        let second = visitors.create_link("Olha", false, at_hour(1)).unwrap();
        let other = visitors.create_link("Ivan", false, at_hour(1)).unwrap();
        let all = visitors.list_visitors(at_hour(2)).unwrap();
        let told: Vec<_> = all.iter().map(|known| (known.name.as_str(), known.links, known.sessions)).collect();
        assert_eq!(told, [("Ivan", 1, 0), ("Olha", 1, 1)]);
        assert_eq!(visitors.revoke_visitor("Olha", at_hour(2)).unwrap(), 2);
        assert_eq!(visitors.find_session(&session, at_hour(2)).unwrap(), None);
        assert_eq!(visitors.use_link(&second, at_hour(2)).unwrap(), None);
        assert!(visitors.use_link(&other, at_hour(2)).unwrap().is_some());
    }

    #[test]
    fn damaged_file_lets_nobody_in() {
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
            assert_eq!(is_name(name), fits, "{name}");
        }
        assert!(!is_name(&"a".repeat(65)));
    }
}
