//! The connector over its standard input and output: a message on each line, answered as soon as it can be.

use std::io;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::answer::handle_request;
use super::rpc::{ProtocolEra, RpcError, RpcMessage, error_reply, read_message};
use super::{Connector, MAX_CALLS, MAX_MESSAGE_BYTES};

/// A line of a client, without its end.
enum StdioLine {
    Whole(Vec<u8>),
    /// One that is longer than [`LARGEST`].
    TooLong,
}

/// Answers a client that started the program, with the operator's own key: until its last line or the shutdown, then what is
/// under way.
///
/// # Errors
/// When the answers cannot be written.
pub async fn serve_stdio(
    connector: Connector,
    key: SecretString,
    (input, mut output): (impl AsyncBufRead + Unpin + Send + 'static, impl AsyncWrite + Unpin),
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let connector = Arc::new(connector);
    let (sender, mut lines) = mpsc::channel(1);
    // On its own: a line that was read in part is not lost when an answer is ready.
    tokio::spawn(read_lines(input, sender));
    let (mut answers, mut open) = (JoinSet::new(), true);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            line = lines.recv(), if open && answers.len() < MAX_CALLS => match line {
                Some(line) => {
                    answers.spawn(answer_line(Arc::clone(&connector), key.clone(), line));
                }
                None => open = false,
            },
            Some(answer) = answers.join_next() => match answer {
                Ok(Some(answer)) => {
                    output.write_all(format!("{answer}\n").as_bytes()).await?;
                    output.flush().await?;
                }
                Ok(None) => {}
                Err(panic) => tracing::error!("a call failed without a response: {panic}"),
            },
            () = &mut shutdown, if open => open = false,
            else => return Ok(()),
        }
    }
}

/// The answer to a line; nothing to one that waits for none.
async fn answer_line(connector: Arc<Connector>, key: SecretString, line: StdioLine) -> Option<Value> {
    let read = match &line {
        StdioLine::Whole(line) => read_message(None, line),
        StdioLine::TooLong => Err(error_reply(
            None,
            ProtocolEra::Legacy,
            &RpcError::invalid_request("the message is longer than 256 KiB"),
        )),
    };
    match read {
        Ok(RpcMessage::Request(request)) => Some(handle_request(&connector, Some(key), request).await.body),
        Ok(RpcMessage::NoReply) => None,
        Err(refused) => Some(refused.body),
    }
}

/// Reads lines that are not blank, until the last one or until nobody takes them any more.
async fn read_lines(mut input: impl AsyncBufRead + Unpin, lines: mpsc::Sender<StdioLine>) {
    loop {
        let line = match next_line(&mut input).await {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => return tracing::error!("cannot read standard input: {error}"),
        };
        let blank = matches!(&line, StdioLine::Whole(line) if line.trim_ascii().is_empty());
        if !blank && lines.send(line).await.is_err() {
            return;
        }
    }
}

async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<StdioLine>> {
    let (mut line, limit) = (Vec::new(), MAX_MESSAGE_BYTES as u64 + 1);
    if (&mut *input).take(limit).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || line.len() <= MAX_MESSAGE_BYTES {
        return Ok(Some(StdioLine::Whole(line)));
    }
    // The rest of it is passed over, a piece at a time.
    while !line.is_empty() && !line.ends_with(b"\n") {
        line.clear();
        (&mut *input).take(limit).read_until(b'\n', &mut line).await?;
    }
    Ok(Some(StdioLine::TooLong))
}
