//! Proxy in front of PostgreSQL that cuts all connections once, at a chosen client message.

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

/// The maximum time to wait for an answer that is then dropped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether the connections are cut before or after the server processes the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server does not receive the message.
    Message,
    /// The server processes the message, and its answer is lost.
    Answer,
}

/// A proxy that runs until the tests end.
pub(crate) struct CuttingProxy {
    folder: TempDir,
    shared: Arc<Shared>,
}

struct Shared {
    server: PathBuf,
    /// The number of messages left until the cut; `None` if no cut is planned.
    planned_cut: Mutex<Option<(usize, Cut)>>,
    /// Both ends of all open connections.
    open: Mutex<Vec<UnixStream>>,
}

impl CuttingProxy {
    /// Starts a proxy in front of this server.
    pub(crate) fn in_front_of(cluster: &Cluster) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let server = cluster.folder().join(".s.PGSQL.5432");
        let shared = Arc::new(Shared { server, planned_cut: Mutex::default(), open: Mutex::default() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accepting.connect(client);
            }
        });
        Self { folder, shared }
    }

    /// The address of a database through the proxy.
    pub(crate) fn address(&self, database: &str) -> String {
        let name = database.rsplit('/').next().expect("a name");
        format!("postgres://story@{}/{name}", self.folder.path().display().to_string().replace('/', "%2F"))
    }

    /// Plans a cut at this client message, counted from now on; the next message is 1.
    pub(crate) fn cut_at(&self, message: usize, cut: Cut) {
        *self.shared.planned_cut.lock().expect("the planned cut") = Some((message, cut));
    }

    /// Cancels the cut; returns whether it was still pending.
    pub(crate) fn cancel_cut(&self) -> bool {
        self.shared.planned_cut.lock().expect("the planned cut").take().is_some()
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: UnixStream) {
        let server = UnixStream::connect(&self.server).expect("the server");
        let clone_ends = || (client.try_clone().expect("an end"), server.try_clone().expect("an end"));
        let (from_client, to_server) = clone_ends();
        let (to_client, from_server) = clone_ends();
        self.open.lock().expect("the connections").extend([client, server]);
        let (is_silent, (answered, answers)) = (Arc::new(AtomicBool::new(false)), channel());
        let (shared, silent) = (Arc::clone(self), Arc::clone(&is_silent));
        std::thread::spawn(move || {
            forward(from_client, to_server, |message, server| match shared.count_message() {
                None => server.write_all(message).is_ok(),
                Some(Cut::Message) => {
                    shared.cut();
                    false
                }
                Some(Cut::Answer) => {
                    silent.store(true, Ordering::SeqCst);
                    let _ = server.write_all(message).map(|()| answers.recv_timeout(ANSWER_TIMEOUT));
                    shared.cut();
                    false
                }
            });
        });
        std::thread::spawn(move || forward_answers(from_server, to_client, &is_silent, &answered));
    }

    /// Counts a message; returns the cut if it is due now.
    fn count_message(&self) -> Option<Cut> {
        let mut planned_cut = self.planned_cut.lock().expect("the planned cut");
        let (remaining, cut) = planned_cut.as_mut()?;
        *remaining -= 1;
        if *remaining > 0 {
            return None;
        }
        let cut = *cut;
        *planned_cut = None;
        Some(cut)
    }

    fn cut(&self) {
        for end in self.open.lock().expect("the connections").drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// Forwards the server's answers, or drops them after [`Cut::Answer`].
fn forward_answers(from: UnixStream, to: UnixStream, is_silent: &AtomicBool, answered: &Sender<()>) {
    forward(from, to, |answer, client| match is_silent.load(Ordering::SeqCst) {
        true => answered.send(()).is_ok(),
        false => client.write_all(answer).is_ok(),
    });
}

/// Forwards chunks until `forward_chunk` returns false; then closes both ends.
fn forward(mut from: UnixStream, mut to: UnixStream, mut forward_chunk: impl FnMut(&[u8], &mut UnixStream) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !forward_chunk(&buffer[..count], &mut to) {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
