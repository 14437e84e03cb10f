//! Random numbers and YAML files from a seed, in every style of scalars, nesting, comments and indentation.

use std::fmt::Write as _;

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

/// A generator that draws the same numbers for the same seed.
pub(super) struct SeededRandom(ChaCha8Rng);

impl SeededRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub(super) fn number_below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end.max(1) as u64) as usize
    }

    /// Whether an event with a probability of 1 in `times` happens.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.number_below(times) == 0
    }

    /// One of these values, chosen at random.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.number_below(all.len())]
    }
}

/// One-word values, including everything that YAML does not read as text.
const WORDS: [&str; 48] = [
    "sale",
    "Olena & Co",
    "знижки",
    "ціна 100%",
    "a-b_c",
    "https://shop.example/?c=1#top",
    "it's",
    "say \"hi\"",
    "100%",
    "10/s",
    "50 123 45 67",
    "true",
    "True",
    "TRUE",
    "false",
    "False",
    "FALSE",
    "null",
    "Null",
    "~",
    "yes",
    "No",
    "on",
    "y",
    "0",
    "12",
    "-3",
    "-0",
    "007",
    "+380501234567",
    "380501234567",
    "0x1F",
    "0o17",
    "0o8",
    "0b101",
    "1e3",
    "1.50",
    ".5",
    "5.",
    "-1.5e-3",
    ".inf",
    ".nan",
    "1_000",
    "12:30:45",
    "2026-11-01",
    "=",
    "a,b",
    "😀 ok",
];

/// Pieces of a text in quotes or in a block.
const PIECES: [&str; 16] =
    ["a", "ї", "😀", " ", "word", ": ", " #", "'", "{{ name }}", "%", "- ", "[x]", "&a", "*b", "!c", "0"];

/// A writer of random YAML files.
pub(super) struct YamlDraft {
    random: SeededRandom,
    text: String,
    anchors: usize,
}

impl YamlDraft {
    /// Generates the text of a random YAML file from a seed.
    pub(super) fn random(seed: u64) -> String {
        let mut draft = Self { random: SeededRandom::new(seed), text: String::new(), anchors: 0 };
        if draft.random.one_in(10) {
            draft.text += draft.random.pick(&["---\n", "# a file\n---\n", "\n\n", "%YAML 1.1\n---\n"]);
        }
        draft.write_map(0, 0);
        if draft.random.one_in(20) {
            draft.text += "...\n";
        }
        draft.text
    }

    /// Writes a map on separate lines.
    fn write_map(&mut self, indent: usize, depth: usize) {
        for number in 0..=self.random.number_below(4) {
            self.write_gap(indent);
            let key = match self.random.number_below(6) {
                0 => format!("\"ключ {number}\""),
                1 => format!("'it''s {number}'"),
                2 => format!("{number}"),
                _ => format!("{}_{number}", self.random.pick(&["name", "ім'я", "a-b", "c d", "true"])),
            };
            let _ = write!(self.text, "{:indent$}{key}{}:", "", self.random.pick(&["", "", " "]));
            self.write_value(indent, depth);
        }
    }

    fn write_list(&mut self, indent: usize, depth: usize) {
        for _ in 0..=self.random.number_below(3) {
            self.write_gap(indent);
            let _ = write!(self.text, "{:indent$}-", "");
            self.write_value(indent, depth);
        }
    }

    /// Writes empty lines and comments between two entries.
    fn write_gap(&mut self, indent: usize) {
        match self.random.number_below(12) {
            0 => self.text.push('\n'),
            1 => {
                let _ = writeln!(self.text, "{:indent$}# a comment: with \"things\" in it", "");
            }
            2 => self.text += "# at the margin\n",
            _ => {}
        }
    }

    /// Writes the value after a key or a dash, including the final line break.
    fn write_value(&mut self, indent: usize, depth: usize) {
        let inner = indent + 1 + self.random.number_below(4);
        let can_nest = depth < 4;
        match self.random.number_below(12) {
            0 | 1 if can_nest => {
                self.end_line();
                self.write_map(inner, depth + 1);
            }
            2 if can_nest => {
                self.end_line();
                self.write_list(inner, depth + 1);
            }
            3 => {
                self.text.push(' ');
                self.write_flow(depth);
                self.end_line();
            }
            4 => self.write_block(inner),
            5 => self.end_line(),
            6 => {
                self.anchors += 1;
                let _ = write!(self.text, " [ &n{0} ", self.anchors);
                self.write_inline();
                let _ = write!(self.text, ", *n{0} ]", self.anchors);
                self.end_line();
            }
            7 => {
                let _ = write!(self.text, " first line\n{:inner$}and a second", "");
                self.end_line();
            }
            8 => {
                let _ = write!(
                    self.text,
                    " \"first\\\n{:inner$}  {}\n\n{:inner$}last\"",
                    "",
                    self.random.pick(&PIECES[..4]),
                    ""
                );
                self.end_line();
            }
            9 => {
                self.text.push(' ');
                self.text += self.random.pick(&WORDS);
                self.end_line();
            }
            _ => {
                self.text.push(' ');
                self.write_inline();
                self.end_line();
            }
        }
    }

    /// Ends a line, sometimes with a comment.
    fn end_line(&mut self) {
        self.text += self.random.pick(&["\n", "\n", "\n", "\n", "  \n", " # why\n", "\r\n"]);
    }

    /// Writes a scalar that is also valid inside brackets.
    fn write_inline(&mut self) {
        match self.random.number_below(3) {
            0 => {
                let text = self.random_pieces().replace('\'', "''");
                let _ = write!(self.text, "'{text}'");
            }
            1 => {
                let text = self.random_pieces().replace('"', "\\\"");
                let escape = self.random.pick(&[
                    "",
                    "\\n",
                    "\\t",
                    "\\u0456",
                    "\\x41",
                    "\\U0001F600",
                    "\\\\",
                    "\\/",
                    "\\e",
                    "\\_",
                ]);
                let _ = write!(self.text, "\"{text}{escape}\"");
            }
            _ => self.text += self.random.pick(&["sale", "true", "12", "0x1F", "знижки", "~", "-1.5", "007"]),
        }
    }

    fn random_pieces(&mut self) -> String {
        (0..self.random.number_below(6)).map(|_| self.random.pick(&PIECES)).collect()
    }

    fn write_flow(&mut self, depth: usize) {
        let is_list = self.random.one_in(2);
        self.text += if is_list { "[" } else { "{" };
        for number in 0..self.random.number_below(4) {
            if number > 0 {
                self.text += self.random.pick(&[", ", " , "]);
            }
            if !is_list {
                let _ = write!(self.text, "k{number}: ");
            }
            if depth < 4 && self.random.one_in(4) { self.write_flow(depth + 1) } else { self.write_inline() }
        }
        self.text += if is_list { "]" } else { "}" };
    }

    /// Writes a text on separate lines, literal or folded, with any kind of ending.
    fn write_block(&mut self, inner: usize) {
        let kind = self.random.pick(&["|", ">", "|-", ">-", "|+", ">+"]);
        let _ = writeln!(self.text, " {kind}{}", self.random.pick(&["", " # why"]));
        for line in 0..=self.random.number_below(4) {
            if line > 0 && self.random.one_in(4) {
                self.text.push('\n');
            }
            let deeper = if line > 0 && self.random.one_in(4) { 2 } else { 0 };
            let (pieces, indent) = (self.random_pieces(), inner + deeper);
            let _ = writeln!(self.text, "{:indent$}x{pieces}", "");
        }
        if self.random.one_in(4) {
            self.text.push('\n');
        }
    }
}
