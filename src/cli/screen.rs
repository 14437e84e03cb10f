//! Standard output for rows: byte for byte to a pipe or a file, and to a terminal so that no cell commands it.

use std::io::{self, IsTerminal as _, Stdout, Write};

use crate::finding::{escape_json_controls, escape_to_one_line};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowSyntax {
    Csv,
    Json,
}

/// Where rows are written to.
pub(super) struct RowOutput<W> {
    out: W,
    terminal: bool,
    syntax: RowSyntax,
    /// Whether a quoted cell of the CSV is open.
    quoted: bool,
    /// The beginning of a character whose end is still to come.
    begun: Vec<u8>,
}

impl RowOutput<Stdout> {
    /// Standard output.
    pub(super) fn stdout(syntax: RowSyntax) -> Self {
        let out = io::stdout();
        let terminal = out.is_terminal();
        Self::new(out, terminal, syntax)
    }
}

impl<W: Write> RowOutput<W> {
    fn new(out: W, terminal: bool, syntax: RowSyntax) -> Self {
        Self { out, terminal, syntax, quoted: false, begun: Vec::new() }
    }

    fn escape(&mut self, text: &str) -> String {
        if self.syntax == RowSyntax::Json {
            return escape_json_controls(text).into_owned();
        }
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            self.quoted ^= c == '"';
            match c {
                // Between two rows, and not within a cell.
                '\n' if !self.quoted => shown.push(c),
                ' '..='~' => shown.push(c),
                c => shown.push_str(&escape_to_one_line(c.encode_utf8(&mut [0; 4]))),
            }
        }
        shown
    }
}

impl<W: Write> Write for RowOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.out.write(bytes);
        }
        self.begun.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let rest = self.begun.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.begun, rest)).into_owned();
        let shown = self.escape(&text);
        self.out.write_all(shown.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "row,error\n2,\"x\nINFO \"\"fake\"\", Київ\"\n3,\u{1b}[2J\u{202e}\n";

    fn write_in_chunks(terminal: bool, syntax: RowSyntax, text: &str, chunk: usize) -> String {
        let mut screen = RowOutput::new(Vec::new(), terminal, syntax);
        text.as_bytes().chunks(chunk).for_each(|bytes| screen.write_all(bytes).unwrap());
        String::from_utf8(screen.out).unwrap()
    }

    #[test]
    fn terminal_gets_escaped_rows_and_pipe_gets_every_byte() {
        for chunk in [1, 3, 1_000] {
            let shown = write_in_chunks(true, RowSyntax::Csv, CSV, chunk);
            assert_eq!(shown, "row,error\n2,\"x⏎INFO \"\"fake\"\", Київ\"\n3,\\u{1b}[2J\\u{202e}\n");
            assert_eq!(write_in_chunks(false, RowSyntax::Csv, CSV, chunk), CSV);
            assert_eq!(
                write_in_chunks(true, RowSyntax::Json, "{\"e\":\"\u{202e}Ї\"}\n", chunk),
                "{\"e\":\"\\u202eЇ\"}\n"
            );
        }
    }
}
