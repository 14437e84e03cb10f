//! Test gateway with scripted answers, written from the contract alone.
//!
//! The gateway shares no code with the crate. Otherwise, the same mistake on both sides would go unnoticed.

mod answer;
mod connection;
mod request;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

pub(crate) use answer::{Answer, accepted, accepted_envelope, denied, rejected};
pub(crate) use request::Request;

use super::draft::Reachable;
use super::wait::PATIENCE;

/// A scripted gateway on loopback; it stops listening when it is dropped.
pub(crate) struct Gateway {
    address: SocketAddr,
    state: Arc<GatewayState>,
    listening: Option<JoinHandle<()>>,
}

/// The state that all connections of a gateway share.
struct GatewayState {
    script: Mutex<VecDeque<Arc<Answer>>>,
    /// The answer after the end of the script.
    default_answer: Arc<Answer>,
    /// Whether key checks are answered without using up the script.
    checks_keys: AtomicBool,
    /// The answer to status inquiries.
    statuses: Mutex<Arc<Answer>>,
    requests: Mutex<Vec<Request>>,
    closed: AtomicBool,
    /// Whether held answers can be sent.
    released: (Mutex<bool>, Condvar),
}

impl Gateway {
    /// Accepts every message.
    pub(crate) fn accepting() -> Self {
        Self::answering([])
    }

    /// Answers the first requests from the script and accepts every later message.
    pub(crate) fn answering(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::answering_then(script, Answer::Accept)
    }

    /// Answers every request in the same way.
    pub(crate) fn always(answer: Answer) -> Self {
        Self::answering_then([], answer)
    }

    /// Answers the first requests from the script and all later ones with `default_answer`.
    pub(crate) fn answering_then(script: impl IntoIterator<Item = Answer>, default_answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(GatewayState {
            script: Mutex::new(script.into_iter().map(Arc::new).collect()),
            default_answer: Arc::new(default_answer),
            checks_keys: AtomicBool::new(false),
            statuses: Mutex::new(Arc::new(Answer::items(accepted))),
            requests: Mutex::default(),
            closed: AtomicBool::new(false),
            released: <_>::default(),
        });
        let shared = Arc::clone(&state);
        let listening = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.closed.load(Ordering::SeqCst) {
                    return;
                }
                let state = Arc::clone(&shared);
                std::thread::spawn(move || connection::serve(&stream.expect("a connection"), &state));
            }
        });
        Self { address, state, listening: Some(listening) }
    }

    /// Sets the item that answers a status inquiry about a message.
    pub(crate) fn with_statuses(self, item: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        self.with_status_answer(Answer::items(item))
    }

    /// Sets the complete answer to every status inquiry.
    pub(crate) fn with_status_answer(self, answer: Answer) -> Self {
        *self.state.statuses.lock().expect("the answer") = Arc::new(answer);
        self
    }

    /// Accepts every key check without using up the script.
    pub(crate) fn with_key_checks(self) -> Self {
        self.state.checks_keys.store(true, Ordering::SeqCst);
        self
    }

    /// Every request that was read completely, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().expect("the requests").clone()
    }

    /// Releases all held answers.
    pub(crate) fn release(&self) {
        self.state.release();
    }

    /// The requests with messages: all except status inquiries and balance checks.
    pub(crate) fn sends(&self) -> Vec<Request> {
        let is_send = |request: &Request| !request.is_status_inquiry() && !request.is_balance_check();
        self.requests().into_iter().filter(is_send).collect()
    }

    /// The phone numbers of all messages, in order of arrival.
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

impl GatewayState {
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
        self.state.release();
        self.state.closed.store(true, Ordering::SeqCst);
        // Wake the listener so that it sees `closed`.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}
