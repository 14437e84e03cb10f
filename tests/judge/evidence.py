"""What the gateway received: the journal of `campaign sandbox`, or a provider's delivery export.

Both become `Message`s, in the order of the files. The files are read as a stream, and can be read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from inputs import (BadInput, TableForm, clean_cell, find_phone_columns, is_shortened, open_table, phone_digits,
                    require_file)

GOOD = frozenset({"DELIVERED", "READ", "REPLIED", "PARTIALLY DELIVERED"})
FAILED = frozenset({"EXPIRED", "UNDELIVERABLE", "REJECTED", "DELETED", "FILTERED", "NO ROUTE", "SIM FULL",
                    "INVALID DESTINATION ADDRESS", "INVALID SOURCE ADDRESS"})
REJECTED = "REJECTED"
DATE_FORMS = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y/%m/%d %H:%M:%S")


@dataclass(slots=True)
class Message:
    """A message that the gateway accepted or rejected. What the source does not record is empty."""

    file: Path
    line: int
    at: str
    phone: str
    id: str = ""
    msg_id: str = ""
    request_id: str = ""
    parts: str = ""
    text: str = ""
    accepted: bool = True
    error: str = ""
    status: str = ""


@dataclass(slots=True)
class StatusChange:
    """A delivery status of a message, as the journal records it."""

    id: str
    msg_id: str
    status: str


@dataclass(frozen=True)
class Period:
    """The messages to judge, by time. The end is excluded."""

    start: datetime | None = None
    end: datetime | None = None

    def contains(self, at: str, file: Path, line: int, form: str) -> bool:
        """Whether a time is in the period."""
        if self.start is None and self.end is None:
            return True
        time = parse_time(at, form)
        if time is None:
            raise BadInput(f"cannot read the time `{at}`", file=file, line=line,
                           remedy="pass its form with --time-format, such as `%d/%m/%Y %H:%M`")
        return (self.start is None or time >= self.start) and (self.end is None or time < self.end)


@dataclass(frozen=True)
class Fields:
    """What a source records about every message."""

    ids: bool
    msg_ids: bool
    request_ids: bool
    texts: bool


@dataclass
class Journal:
    """Journals of `campaign sandbox`, in the order in which they were written."""

    files: list[Path]
    period: Period = Period()
    fields: Fields = Fields(ids=True, msg_ids=True, request_ids=True, texts=False)
    notes: list[str] = field(default_factory=list)

    def read(self) -> Iterator[Message | StatusChange]:
        """All messages and changes of their statuses."""
        self.notes.clear()
        envelope, requests = 0, {"request_id": ""}
        for file in self.files:
            require_file(file)
            for line, event in self.events(file):
                match event.get("event"):
                    case "envelope":
                        envelope = next_envelope(event, envelope, file, line)
                        requests["request_id"] = str(event.get("request_id", ""))
                    case "operation" if "phone" in event and self.period.contains(str(event["at"]), file, line, ""):
                        yield read_operation(event, requests["request_id"], file, line)
                    case "status":
                        yield StatusChange(text_of(event, "id"), text_of(event, "msg_id"), str(event["status"]))

    def events(self, file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """The events of one file that the judge uses."""
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if b'"event":"charge"' in line or b'"event":"webhook"' in line:
                    continue
                try:
                    event = json.loads(line)
                    if not isinstance(event, dict) or "event" not in event:
                        raise ValueError("it is not an event")
                    check_members(event)
                except ValueError as error:
                    if not line.endswith(b"\n"):
                        self.notes.append(f"{file}:{number}: the last line is incomplete and was not used")
                        return
                    raise BadInput(f"this is not a journal of `campaign sandbox`: {error}", file=file, line=number,
                                   remedy="pass the file of `campaign sandbox --journal FILE`") from error
                yield number, event


def check_members(event: dict[str, Any]) -> None:
    """Refuses an event without the members that the judge needs."""
    needed = {"operation": ("at", "success"), "envelope": ("at", "envelope"), "status": ("msg_id", "status")}
    for name in needed.get(event["event"], ()):
        if name not in event:
            raise ValueError(f"the event has no `{name}`")


def next_envelope(event: dict[str, Any], last: int, file: Path, line: int) -> int:
    """The number of an envelope. Numbers are consecutive, and start again at 1 with each sandbox."""
    number = event["envelope"]
    if number not in (1, last + 1):
        raise BadInput(f"request {number} follows request {last}: the journal is incomplete", file=file, line=line,
                       remedy="pass all parts of the journal with --journal, in order")
    return int(number)


def text_of(event: dict[str, Any], name: str) -> str:
    """A member as text; empty if it is absent."""
    value = event.get(name)
    return "" if value is None else str(value)


def read_operation(event: dict[str, Any], request_id: str, file: Path, line: int) -> Message:
    """The message of an `operation` event."""
    return Message(file, line, str(event["at"]), phone_digits(str(event["phone"])), text_of(event, "id"),
                   text_of(event, "msg_id"), request_id, text_of(event, "parts"), text_of(event, "text"),
                   event["success"] is True, text_of(event, "error"))


@dataclass(frozen=True)
class ExportColumns:
    """The columns of a delivery export. What is empty is not used; the phone column is then detected."""

    phone: str = ""
    time: str = ""
    id: str = ""
    msg_id: str = ""
    status: str = ""
    text: str = ""


@dataclass
class Export:
    """Delivery exports of a provider: tables with one row per message."""

    files: list[Path]
    columns: ExportColumns
    form: TableForm = TableForm()
    time_format: str = ""
    period: Period = Period()
    # Words of the provider, in upper case, and the statuses that they mean.
    words: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def fields(self) -> Fields:
        """What the named columns record."""
        return Fields(bool(self.columns.id), bool(self.columns.msg_id), False, bool(self.columns.text))

    def read(self) -> Iterator[Message | StatusChange]:
        """All messages. Rows with the same gateway identifier are one message, such as its parts or channels."""
        self.notes.clear()
        seen: set[str] = set()
        repeated = 0
        for file in self.files:
            for message in self.read_file(file):
                if message.msg_id and message.msg_id in seen:
                    repeated += 1
                    if message.status:
                        yield StatusChange(message.id, message.msg_id, message.status)
                    continue
                seen.update([message.msg_id] if message.msg_id else [])
                yield message
        if repeated:
            self.notes.append(f"{repeated} rows of the export repeat a gateway identifier and were not counted again")

    def read_file(self, file: Path) -> Iterator[Message]:
        """The messages of one file, in its order."""
        table = open_table(file, self.form)
        columns = self.columns
        named = {"at": columns.time, "id": columns.id, "msg_id": columns.msg_id, "status": columns.status,
                 "text": columns.text}
        places = {name: table.require_column(column) for name, column in named.items() if column}
        phones, sample = find_phone_columns(table, [columns.phone] if columns.phone else [], "--export-phone",
                                            [name for name in named.values() if name])
        rows = ((line, cells) for part in (sample, table.rows) for line, cells in part)
        for line, cells in rows:
            if len(cells) <= max([*phones, *places.values()]):
                raise BadInput(f"the row has only {len(cells)} cells", file=file, line=line,
                               remedy="name the delimiter with --export-delimiter, or correct the row")
            texts = {name: clean_cell(cells[place]) for name, place in places.items()}
            at = texts.pop("at", "")
            if status := texts.get("status", "").upper():
                texts["status"] = self.words.get(status, status)
            if self.period.contains(at, file, line, self.time_format):
                yield Message(file, line, at, export_phone(cells[phones[0]], file, line), **texts,
                              accepted=texts.get("status") != REJECTED, error=texts.get("status", ""))


def export_phone(cell: str, file: Path, line: int) -> str:
    """The number in an export. The judge cannot count messages without one."""
    if is_shortened(cell):
        raise BadInput("a spreadsheet has shortened the phone number", file=file, line=line,
                       remedy="export the file again, and do not save it in a spreadsheet")
    digits = phone_digits(cell)
    if not digits:
        raise BadInput("the row has no phone number", file=file, line=line,
                       remedy="name the phone column with --export-phone, or remove the row")
    return digits


def parse_time(text: str, form: str = "") -> datetime | None:
    """A time. One with a zone becomes UTC; one without is compared as it is written."""
    text = text.strip()
    try:
        time = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError:
        time = None
        for other in () if form else DATE_FORMS:
            try:
                time = datetime.strptime(text, other)
                break
            except ValueError:
                continue
    if time is not None and time.tzinfo is not None:
        time = time.astimezone(timezone.utc).replace(tzinfo=None)
    return time


def is_failed(statuses: list[str]) -> bool:
    """Whether a message certainly reached nobody: its last status is a failure, and none is a delivery."""
    upper = [status.upper() for status in statuses]
    return bool(upper) and upper[-1] in FAILED and not GOOD.intersection(upper)
