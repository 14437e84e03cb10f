//! A proxy before a PostgreSQL server that cuts all connections once, at a chosen message of its clients.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use super::cluster::Cluster;

/// How long the server has for an answer that is dropped.
const ANSWERING: Duration = Duration::from_secs(5);

/// On which side of the server's work the connections are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server never gets the message.
    Message,
    /// The server does what it is told, and its answer is lost.
    Answer,
}

/// A proxy that ends with the tests.
pub(crate) struct Cutter {
    folder: TempDir,
    shared: Arc<Shared>,
}

struct Shared {
    server: PathBuf,
    /// How many messages are left before the cut; nothing if none is wanted, or after it.
    plan: Mutex<Option<(usize, Cut)>>,
    /// Both ends of all connections.
    open: Mutex<Vec<UnixStream>>,
}

impl Cutter {
    /// One before this server.
    pub(crate) fn before(cluster: &Cluster) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let server = cluster.folder().join(".s.PGSQL.5432");
        let shared = Arc::new(Shared { server, plan: Mutex::default(), open: Mutex::default() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accepting.connect(client);
            }
        });
        Self { folder, shared }
    }

    /// The address of a database of the server, through it.
    pub(crate) fn address(&self, database: &str) -> String {
        let name = database.rsplit('/').next().expect("a name");
        format!("postgres://story@{}/{name}", self.folder.path().display().to_string().replace('/', "%2F"))
    }

    /// Cuts all connections at this message from now on; the first one is 1.
    pub(crate) fn cut_at(&self, message: usize, cut: Cut) {
        *self.shared.plan.lock().expect("the plan") = Some((message, cut));
    }

    /// Whether the cut is still to come; forgets it.
    pub(crate) fn forget(&self) -> bool {
        self.shared.plan.lock().expect("the plan").take().is_some()
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: UnixStream) {
        let server = UnixStream::connect(&self.server).expect("the server");
        let ends = || (client.try_clone().expect("an end"), server.try_clone().expect("an end"));
        let (from_client, to_server) = ends();
        let (to_client, from_server) = ends();
        self.open.lock().expect("the connections").extend([client, server]);
        let (is_silent, (answered, answers)) = (Arc::new(AtomicBool::new(false)), channel());
        let (shared, silent) = (Arc::clone(self), Arc::clone(&is_silent));
        std::thread::spawn(move || {
            pass_on(from_client, to_server, |message, server| match shared.next() {
                None => server.write_all(message).is_ok(),
                Some(Cut::Message) => {
                    shared.cut();
                    false
                }
                Some(Cut::Answer) => {
                    silent.store(true, Ordering::SeqCst);
                    let _ = server.write_all(message).map(|()| answers.recv_timeout(ANSWERING));
                    shared.cut();
                    false
                }
            });
        });
        std::thread::spawn(move || answer(from_server, to_client, &is_silent, &answered));
    }

    /// Whether the connections are to be cut at the message that came now.
    fn next(&self) -> Option<Cut> {
        let mut plan = self.plan.lock().expect("the plan");
        let (left, cut) = plan.as_mut()?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        let cut = *cut;
        *plan = None;
        Some(cut)
    }

    fn cut(&self) {
        for end in self.open.lock().expect("the connections").drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// Passes on the answers of the server, unless they are to be lost.
fn answer(from: UnixStream, to: UnixStream, is_silent: &AtomicBool, answered: &Sender<()>) {
    pass_on(from, to, |answer, client| match is_silent.load(Ordering::SeqCst) {
        true => answered.send(()).is_ok(),
        false => client.write_all(answer).is_ok(),
    });
}

/// Has each piece that comes handed on until one is not; then both ends are closed.
fn pass_on(mut from: UnixStream, mut to: UnixStream, mut hand_on: impl FnMut(&[u8], &mut UnixStream) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !hand_on(&buffer[..count], &mut to) {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
