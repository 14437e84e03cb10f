//! One connection to the test gateway: answers request after request until one side closes it.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::wait::PATIENCE;
use super::GatewayState;
use super::answer::Answer;
use super::request::Request;

/// Answers requests until one side closes the connection.
pub(super) fn serve(stream: &TcpStream, state: &GatewayState) {
    // Errors are ignored: in many stories, the client disconnects early.
    let _ = answer_requests(stream, state);
}

fn answer_requests(mut stream: &TcpStream, state: &GatewayState) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    loop {
        if reader.fill_buf()?.is_empty() {
            return Ok(());
        }
        if state.take_close_unread() {
            return Ok(());
        }
        let Some(request) = Request::read(&mut reader)? else { return Ok(()) };
        let answer = state.answer(&request);
        if matches!(*answer, Answer::Held) {
            state.wait_for_release();
        }
        if let Some(bytes) = answer.bytes(&request) {
            stream.write_all(&bytes)?;
        } else if matches!(*answer, Answer::Silence) {
            // Wait until the client gives up.
            reader.read_to_end(&mut Vec::new())?;
        }
        if answer.closes() {
            return Ok(());
        }
    }
}

impl GatewayState {
    /// Consumes the next answer of the script if it closes the connection without reading.
    fn take_close_unread(&self) -> bool {
        let mut script = self.script.lock().expect("the script");
        if script.front().is_some_and(|answer| matches!(**answer, Answer::CloseUnread)) {
            script.pop_front();
            return true;
        }
        script.is_empty() && matches!(*self.default_answer, Answer::CloseUnread)
    }

    /// Records a request and selects its answer. Status inquiries do not use up the script. Neither do balance checks
    /// if `checks_keys` is set.
    fn answer(&self, request: &Request) -> Arc<Answer> {
        self.requests.lock().expect("the requests").push(request.clone());
        if request.is_status_inquiry() {
            return Arc::clone(&self.statuses.lock().expect("the answer"));
        }
        if request.is_balance_check() && self.checks_keys.load(Ordering::SeqCst) {
            return Arc::new(Answer::Accept);
        }
        let next = self.script.lock().expect("the script").pop_front();
        next.unwrap_or_else(|| Arc::clone(&self.default_answer))
    }
}
