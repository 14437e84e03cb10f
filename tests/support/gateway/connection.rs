//! One connection to a scripted gateway: request after request, until somebody closes it.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::wait::PATIENCE;
use super::Desk;
use super::answer::Answer;
use super::request::Request;

/// Answers until one side closes the connection.
pub(super) fn serve(stream: &TcpStream, desk: &Desk) {
    // The client going away in the middle is part of many stories.
    let _ = converse(stream, desk);
}

fn converse(mut stream: &TcpStream, desk: &Desk) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    loop {
        if reader.fill_buf()?.is_empty() {
            return Ok(());
        }
        if desk.drops_the_next_unread() {
            return Ok(());
        }
        let Some(request) = Request::read(&mut reader)? else { return Ok(()) };
        let answer = desk.answer(&request);
        if matches!(*answer, Answer::Held) {
            desk.wait_for_release();
        }
        if let Some(bytes) = answer.bytes(&request) {
            stream.write_all(&bytes)?;
        } else if matches!(*answer, Answer::Silence) {
            // Until the client gives up.
            reader.read_to_end(&mut Vec::new())?;
        }
        if answer.closes() {
            return Ok(());
        }
    }
}

impl Desk {
    /// Takes the next answer out of the script if it is to close the connection without reading.
    fn drops_the_next_unread(&self) -> bool {
        let mut script = self.script.lock().expect("the script");
        if script.front().is_some_and(|answer| matches!(**answer, Answer::CloseUnread)) {
            script.pop_front();
            return true;
        }
        script.is_empty() && matches!(*self.afterwards, Answer::CloseUnread)
    }

    /// Records a request and finds its answer; questions about messages are never part of a script.
    fn answer(&self, request: &Request) -> Arc<Answer> {
        self.requests.lock().expect("the requests").push(request.clone());
        if request.asks() {
            return Arc::clone(&self.statuses.lock().expect("the answer"));
        }
        if request.asks_balance() && self.checks_keys.load(Ordering::SeqCst) {
            return Arc::new(Answer::Accept);
        }
        let next = self.script.lock().expect("the script").pop_front();
        next.unwrap_or_else(|| Arc::clone(&self.afterwards))
    }
}
