"""The results files of a campaign: what `campaign` claims about each row.

A claim is a row of a results file. A million of them are kept, so they are columns of numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

from inputs import BadInput, Numbering, Table, clean_cell, is_shortened, open_table, phone_digits

SENT = frozenset({"accepted", "queued", "delivered", "read", "failed"})
IN_DOUBT = frozenset({"in_doubt", "unresolved", "assumed_sent", "sending"})
UNSENT = frozenset({"planned", "skipped", "invalid", "rejected", "not_sent"})
STATES = sorted(SENT | IN_DOUBT | UNSENT)

REQUIRED = ("row", "id", "to", "state", "msg_id", "request_id")
OPTIONAL = ("reason", "run", "parts", "gateway_status", "message_state")
# The list may write numbers without their country code, so only the last digits are compared.
SAME_DIGITS = 7
REMEDY = "pass a results file as `campaign results` writes it, as CSV"


class Claims:
    """All rows of all results files, with an index by identifier and one by phone number.

    Rows about the same message share its first row, the `message` of all of them. Rows with the same phone number
    are chained by `next_of_phone`.
    """

    def __init__(self) -> None:
        self.files: list[Path] = []
        self.texts = Numbering()
        self._words: dict[str, int] = {"": 0}
        self._word_list: list[str] = [""]
        self.file, self.row = array("H"), array("I")
        self.phone, self.id, self.msg_id = array("Q"), array("Q"), array("Q")
        self.state, self.parts = bytearray(), array("H")
        self.request_id, self.reason, self.run = array("I"), array("I"), array("I")
        self.status, self.refers = array("I"), bytearray()
        self.message, self.next_of_phone = array("I"), array("I")
        self.by_id: dict[int, int] = {}
        self.by_phone: dict[int, int] = {}
        self.last_of_phone: dict[int, int] = {}
        self.aliases: dict[str, int] = {}
        self.rows_without_phone: set[int] = set()
        self.unlike_list: list[int] = []
        self.expected: list[str] = []

    def __len__(self) -> int:
        return len(self.row)

    def word(self, number: int) -> str:
        """A text that many rows share, by its number."""
        return self._word_list[number]

    def intern(self, text: str) -> int:
        """The number of a text that many rows share."""
        if text not in self._words:
            self._words[text] = len(self._word_list)
            self._word_list.append(text)
        return self._words[text]

    def state_of(self, claim: int) -> str:
        """The state of a row's message."""
        return STATES[self.state[claim]]

    def campaign_of(self, claim: int) -> str:
        """The campaign of a row: `sale` for the run `sale@3`."""
        return self.word(self.run[claim]).partition("@")[0]

    def phone_text(self, claim: int) -> str:
        """The digits of a row's phone number; empty if it has none."""
        return self.texts.text(self.phone[claim])

    def with_phone(self, phone: int) -> Iterator[int]:
        """The rows with this number, in order."""
        claim = self.by_phone.get(phone)
        while claim is not None:
            yield claim
            following = self.next_of_phone[claim]
            claim = following - 1 if following else None

    def messages_of_phone(self, phone: int) -> list[int]:
        """The messages that the rows with this number are about, each once, in order."""
        return list(dict.fromkeys(self.message[claim] for claim in self.with_phone(phone) if self.id[claim]))

    def find_number(self, text: str) -> int:
        """The number of an identifier or phone number of the gateway."""
        return self.texts.number(text)


def read_claims(files: list[Path], list_columns: list[str], expected: str = "") -> Claims:
    """Reads results files. `list_columns` are the phone columns of the list, whose cells the results repeat.

    `expected` is a column whose value must occur in the row's text.
    """
    claims = Claims()
    for file in files:
        if file in claims.files:
            raise BadInput("the file is given twice", file=file, remedy="pass each results file once")
        read_file(claims, file, list_columns, expected)
    if not len(claims):
        raise BadInput("the results have no rows", file=files[0], remedy=REMEDY)
    return claims


def read_file(claims: Claims, file: Path, list_columns: list[str], expected: str) -> None:
    """Adds the rows of one results file."""
    table = open_table(file)
    places = find_places(table)
    copies = [place for name in list_columns if (place := find_copy(table, name)) is not None]
    text_place = table.require_column(expected, "--contains") if expected else None
    claims.files.append(file)
    for line, cells in table.rows:
        if len(cells) != len(table.header):
            raise BadInput(f"the row has {len(cells)} cells, the header has {len(table.header)}", file=file, line=line,
                           remedy=REMEDY)
        add_row(claims, file, line, {name: clean_cell(cells[place]) for name, place in places.items()})
        add_list_cells(claims, [cells[place] for place in copies])
        if text_place is not None:
            claims.expected.append(clean_cell(cells[text_place]))


def find_places(table: Table) -> dict[str, int]:
    """The places of the columns that the judge uses."""
    missing = [name for name in REQUIRED if table.find_column(name) is None]
    if missing:
        raise BadInput(f"this is not a results file: it has no column `{missing[0]}`", file=table.file, line=1,
                       remedy=REMEDY)
    places = {name: table.find_column(name) for name in REQUIRED + OPTIONAL}
    return {name: place for name, place in places.items() if place is not None}


def find_copy(table: Table, name: str) -> int | None:
    """The place of a column of the list. `_in` is appended to a name that the results use themselves."""
    place = table.find_column(f"{name}_in")
    return table.find_column(name) if place is None else place


def add_row(claims: Claims, file: Path, line: int, cells: dict[str, str]) -> None:
    """Adds one row, and connects it with the rows of its message and its number."""
    for name in ("id", "to", "msg_id"):
        if is_shortened(cells[name]):
            raise BadInput(f"a spreadsheet has shortened the number in `{name}`", file=file, line=line,
                           remedy="write the results again: campaign results NAME --out FILE")
    if not cells["row"].isdecimal() or len(cells["row"]) > 9:
        raise BadInput("the cell in `row` is not a row number", file=file, line=line, remedy=REMEDY)
    refers = cells["state"] == "skipped" and cells.get("reason", "").startswith("already sent") and bool(cells["id"])
    # The row is about an earlier message. If that was purged, nobody knows its state any more.
    state = (cells.get("message_state") or "in_doubt") if refers else cells["state"]
    if state not in STATES:
        raise BadInput(f"the state `{state}` is unknown", file=file, line=line, remedy=REMEDY)
    claim = len(claims)
    phone, identifier = claims.texts.number(phone_digits(cells["to"])), claims.texts.number(cells["id"])
    claims.file.append(len(claims.files) - 1)
    claims.row.append(int(cells["row"]))
    claims.phone.append(phone)
    claims.id.append(identifier)
    claims.state.append(STATES.index(state))
    claims.msg_id.append(claims.texts.number(cells["msg_id"]))
    claims.request_id.append(claims.intern(cells["request_id"]))
    claims.parts.append(min(int(parts), 65535) if (parts := cells.get("parts", "")).isdecimal() else 0)
    claims.reason.append(claims.intern(cells.get("reason", "")))
    claims.run.append(claims.intern(cells.get("run", "")))
    claims.status.append(claims.intern(cells.get("gateway_status", "")))
    claims.refers.append(refers)
    claims.message.append(claims.by_id.setdefault(identifier, claim) if identifier else claim)
    claims.next_of_phone.append(0)
    chain_phone(claims, claim, phone)


def chain_phone(claims: Claims, claim: int, phone: int) -> None:
    """Appends a row to the chain of its number."""
    if not phone:
        claims.rows_without_phone.add(claims.row[claim])
        return
    if phone in claims.by_phone:
        last = claims.last_of_phone.get(phone, claims.by_phone[phone])
        # 0 means the end, so places count from 1.
        claims.next_of_phone[last] = claim + 1
        claims.last_of_phone[phone] = claim
    else:
        claims.by_phone[phone] = claim


def add_list_cells(claims: Claims, cells: list[str]) -> None:
    """Remembers how the list writes the number of the last row, and whether the list has another number there."""
    phone = claims.phone[-1]
    if not phone or not cells:
        return
    end = claims.texts.text(phone)[-SAME_DIGITS:]
    written = [phone_digits(cell) for cell in cells]
    for digits in written:
        if digits and claims.texts.number(digits) != phone:
            claims.aliases.setdefault(digits, phone)
    if not any(digits.endswith(end) for digits in written):
        claims.unlike_list.append(len(claims) - 1)
