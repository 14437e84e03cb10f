#!/usr/bin/env python3
"""Records `campaign demo` as demo.cast (asciinema) and demo.svg (the README's picture), beside this file.

Usage: docs/pictures/demo.py PROGRAM, a built `campaign`. Needs `pyte` from PyPI, an emulated terminal.
"""

from __future__ import annotations

import fcntl
import html
import json
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from pathlib import Path

import pyte

COLUMNS, ROWS = 80, 30
# All lines of a recording at once: the picture scrolls them.
TALL = 400
PROMPT = b"Press Enter to continue"
# The reading time before Enter: seconds for each new line, and its limits.
PER_LINE, SHORTEST, LONGEST = 0.28, 1.6, 5.0
# The longest silence in which the program still works.
TIMEOUT = 60

CHARACTER_WIDTH, LINE_HEIGHT, MARGIN, BAR = 8.4, 19, 16, 30
BACKGROUND, FOREGROUND = "#11161d", "#d6dde6"
COLOURS = {
    "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "yellow": "#e3b341", "blue": "#79c0ff",
    "magenta": "#d2a8ff", "cyan": "#76e3ea", "white": "#ffffff", "black": "#6e7681",
}


@dataclass
class Chunk:
    """Output of the program, with its time in seconds since the start."""

    at: float
    data: bytes


def record(program: str) -> list[Chunk]:
    """Runs the demo on a terminal, and presses Enter like a reader. Returns its output."""
    folder = tempfile.TemporaryDirectory(prefix="campaign-demo-")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder.name)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        os.execve(program, ["campaign", "demo"], {**kept, "HOME": folder.name, "TERM": "xterm-256color"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    chunks: list[Chunk] = []
    # The time of the recording, in which a pause has its reading time and computing takes as long as it took.
    shown_lines, clock, last = 0, 0.0, time.monotonic()
    with folder:
        while True:
            if not select.select([terminal], [], [], TIMEOUT)[0]:
                raise SystemExit(f"the demo printed nothing for {TIMEOUT} s")
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            now = time.monotonic()
            clock, last = clock + (now - last), now
            chunks.append(Chunk(clock, data))
            shown_lines += data.count(b"\n")
            if PROMPT in data:
                clock += min(LONGEST, max(SHORTEST, shown_lines * PER_LINE))
                shown_lines, last = 0, time.monotonic()
                os.write(terminal, b"\n")
        _, status = os.waitpid(process, 0)
    if status != 0:
        raise SystemExit(f"the demo failed with status {status}")
    return [Chunk(chunk.at, chunk.data.replace(folder.name.encode(), b"/home/olena")) for chunk in chunks]


def cast_text(chunks: list[Chunk]) -> str:
    """The recording in the format of asciinema, version 2."""
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "campaign demo", "env": {"TERM": "xterm-256color"}}
    events = [[round(chunk.at, 3), "o", chunk.data.decode("utf-8", "replace")] for chunk in chunks]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [header, *events])


@dataclass
class Line:
    """A line of the transcript: its cells, and when it had its final text."""

    spans: list[tuple[str, str, bool]]
    at: float


def transcript(chunks: list[Chunk]) -> list[Line]:
    """The lines of the recording in their final form, without the prompts for Enter."""
    screen = pyte.Screen(COLUMNS, TALL)
    stream = pyte.ByteStream(screen)
    texts, times = [""] * TALL, [0.0] * TALL
    for chunk in chunks:
        stream.feed(chunk.data)
        for number, text in enumerate(screen.display):
            # A line without text keeps the time of the line above it.
            if text != texts[number]:
                texts[number], times[number] = text, chunk.at
    end = max((number for number, text in enumerate(texts) if text.strip()), default=0) + 1
    lines: list[Line] = []
    for number in range(end):
        if PROMPT.decode() in texts[number]:
            continue
        if not texts[number].strip() and lines and not any(text.strip() for text, _, _ in lines[-1].spans):
            continue
        before = lines[-1].at if lines else 0.0
        lines.append(Line(row_spans(screen, number), max(before, times[number])))
    return lines


def row_spans(screen: pyte.Screen, number: int) -> list[tuple[str, str, bool]]:
    """The parts of a row with the same colour and weight: text, colour, bold."""
    spans: list[tuple[str, str, bool]] = []
    width = len(screen.display[number].rstrip())
    for column in range(width):
        cell = screen.buffer[number][column]
        colour = COLOURS.get(cell.fg, FOREGROUND)
        if spans and spans[-1][1:] == (colour, cell.bold):
            spans[-1] = (spans[-1][0] + cell.data, colour, cell.bold)
        else:
            spans.append((cell.data, colour, cell.bold))
    return spans


def svg_text(lines: list[Line]) -> str:
    """The recording as a picture that plays once. Without animation, it shows the end."""
    width = round(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN)
    height = ROWS * LINE_HEIGHT + 2 * MARGIN + BAR
    total = lines[-1].at + 1
    top = max(0, len(lines) - ROWS)
    # The first visible line at each time.
    scrolls = {0.0: 0}
    for number, line in enumerate(lines):
        scrolls[line.at] = max(0, number + 1 - ROWS)
    steps, shown = [], -1
    for at, first in sorted(scrolls.items()):
        if first != shown:
            steps.append((at, first))
            shown = first
    frames = "".join(f"{at / total * 100:.2f}%{{transform:translateY(-{first * LINE_HEIGHT}px)}}" for at, first in steps)
    style = (
        f"text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{FOREGROUND};"
        f"white-space:pre}}"
        f"@media (prefers-reduced-motion:no-preference){{"
        f".l{{opacity:0;animation:show 0s linear forwards}}"
        f".s{{animation:scroll {total:.2f}s step-end forwards}}}}"
        f".s{{transform:translateY(-{top * LINE_HEIGHT}px)}}"
        f"@keyframes show{{to{{opacity:1}}}}"
        f"@keyframes scroll{{{frames}100%{{transform:translateY(-{top * LINE_HEIGHT}px)}}}}"
    )
    rows = []
    for number, line in enumerate(lines):
        if not line.spans:
            continue
        parts = []
        for text, colour, bold in line.spans:
            attributes = (f' fill="{colour}"' if colour != FOREGROUND else "") + (' font-weight="bold"' if bold else "")
            escaped = html.escape(text, quote=False)
            parts.append(f"<tspan{attributes}>{escaped}</tspan>" if attributes else escaped)
        y = (number + 1) * LINE_HEIGHT - 5
        # The length keeps columns aligned in fonts with another width.
        length = sum(len(text) for text, _, _ in line.spans) * CHARACTER_WIDTH
        rows.append(f'<text class="l" style="animation-delay:{line.at:.2f}s" y="{y}" textLength="{length:.1f}" '
                    f'xml:space="preserve">{"".join(parts)}</text>')
    dots = "".join(f'<circle cx="{18 + 18 * number}" cy="15" r="5" fill="{colour}"/>'
                   for number, colour in enumerate(["#ff5f56", "#ffbd2e", "#27c93f"]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="A recording of campaign demo"><style>{style}</style>'
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>{dots}'
        f'<svg x="{MARGIN}" y="{BAR + MARGIN // 2}" width="{width - 2 * MARGIN}" height="{ROWS * LINE_HEIGHT}">'
        f'<g class="s">\n' + "\n".join(rows) + "\n</g></svg></svg>\n"
    )


def main() -> None:
    """Records, and writes both files."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    chunks = record(os.path.abspath(sys.argv[1]))
    here = Path(__file__).resolve().parent
    (here / "demo.cast").write_text(cast_text(chunks), encoding="utf-8")
    picture = svg_text(transcript(chunks))
    if len(picture.encode()) > 200 << 10:
        raise SystemExit("demo.svg is larger than 200 KiB: a reader of the README waits for it")
    (here / "demo.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
