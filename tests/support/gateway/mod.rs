//! A gateway written from the contract alone, which answers as a story tells it to.
//!
//! It shares nothing with the crate: what both sides misunderstood in the same way would otherwise pass.

mod answer;
mod connection;
mod request;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

pub(crate) use answer::{Answer, accepted, denied, rejected, taken};
pub(crate) use request::Request;

use super::draft::Reachable;
use super::wait::PATIENCE;

/// A scripted gateway on loopback; dropped, it listens no more.
pub(crate) struct Gateway {
    address: SocketAddr,
    desk: Arc<Desk>,
    listening: Option<JoinHandle<()>>,
}

/// What the connections of a gateway share.
struct Desk {
    script: Mutex<VecDeque<Arc<Answer>>>,
    /// The answer once the script is through.
    afterwards: Arc<Answer>,
    /// Whether checks of a key are answered apart from the script.
    checks_keys: AtomicBool,
    /// The answer to questions about the status of messages.
    statuses: Mutex<Arc<Answer>>,
    requests: Mutex<Vec<Request>>,
    closed: AtomicBool,
    /// Whether answers that are held may go.
    released: (Mutex<bool>, Condvar),
}

impl Gateway {
    /// One that takes every message.
    pub(crate) fn accepting() -> Self {
        Self::answering([])
    }

    /// One that answers the first requests like this, and takes every message afterwards.
    pub(crate) fn answering(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::answering_then(script, Answer::Accept)
    }

    /// One that answers every request like this.
    pub(crate) fn always(answer: Answer) -> Self {
        Self::answering_then([], answer)
    }

    /// One that answers the first requests like this, and every other one like that.
    pub(crate) fn answering_then(script: impl IntoIterator<Item = Answer>, afterwards: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let desk = Arc::new(Desk {
            script: Mutex::new(script.into_iter().map(Arc::new).collect()),
            afterwards: Arc::new(afterwards),
            checks_keys: AtomicBool::new(false),
            statuses: Mutex::new(Arc::new(Answer::items(accepted))),
            requests: Mutex::default(),
            closed: AtomicBool::new(false),
            released: <_>::default(),
        });
        let shared = Arc::clone(&desk);
        let listening = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.closed.load(Ordering::SeqCst) {
                    return;
                }
                let desk = Arc::clone(&shared);
                std::thread::spawn(move || connection::serve(&stream.expect("a connection"), &desk));
            }
        });
        Self { address, desk, listening: Some(listening) }
    }

    /// The same one, which tells this of each message that it is asked about.
    pub(crate) fn with_statuses(self, item: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        self.with_status_answer(Answer::items(item))
    }

    /// The same, with this whole answer to every request about statuses.
    pub(crate) fn with_status_answer(self, answer: Answer) -> Self {
        *self.desk.statuses.lock().expect("the answer") = Arc::new(answer);
        self
    }

    /// The same, which accepts every key that is checked by a question, and uses up no answer of its script by that.
    pub(crate) fn with_key_checks(self) -> Self {
        self.desk.checks_keys.store(true, Ordering::SeqCst);
        self
    }

    /// Every request that was read, whole, in the order in which they came.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.desk.requests.lock().expect("the requests").clone()
    }

    /// Lets go of every answer that is held.
    pub(crate) fn release(&self) {
        self.desk.release();
    }

    /// The requests that carry messages: all but questions about their status and about the balance.
    pub(crate) fn sends(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| !request.asks() && !request.asks_balance()).collect()
    }

    /// The numbers that were sent to, in the order in which they came.
    pub(crate) fn phones(&self) -> Vec<u64> {
        self.sends().iter().flat_map(Request::phones).collect()
    }
}

impl Reachable for Gateway {
    fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn async_url(&self) -> String {
        self.base_url()
    }
}

impl Desk {
    fn release(&self) {
        *self.released.0.lock().expect("the lock") = true;
        self.released.1.notify_all();
    }

    fn wait_for_release(&self) {
        let released = self.released.0.lock().expect("the lock");
        let _ = self.released.1.wait_timeout_while(released, PATIENCE, |released| !*released);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.desk.release();
        self.desk.closed.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}
