"""Campaigns with honest results, in which tests plant faults."""

from __future__ import annotations

import csv
import json
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claims import read_claims
from evidence import Journal
from verdicts import Judgement, RecipientList, Rules, judge

COLUMNS = ("row", "id", "to", "state", "msg_id", "request_id", "parts", "gateway_status", "reason", "run",
           "message_run", "message_state", "phone", "code")
FIRST_ID, FIRST_MSG_ID = 181_000_000_000_000, 700_000_001
AT = "2026-11-27T10:00:00.000+00:00"


def phone_of(row: int) -> str:
    """The number of a row."""
    return f"38050{row:07d}"


def result_row(row: int, state: str, **cells: Any) -> dict[str, str]:
    """A row of results without a message."""
    plain = {name: "" for name in COLUMNS} | {"row": row, "to": phone_of(row), "state": state, "run": "sale@1",
                                              "phone": phone_of(row), "code": f"CODE-{row}"}
    return {name: str(value) for name, value in (plain | cells).items()}


@dataclass
class World:
    """The results, the list and the journal of a campaign."""

    asynchronous: bool = False
    rows: list[dict[str, str]] = field(default_factory=list)
    list_rows: list[list[str]] = field(default_factory=list)
    envelopes: list[list[dict[str, Any]]] = field(default_factory=list)
    earlier: list[dict[str, str]] = field(default_factory=list)

    def add_row(self, state: str, **cells: Any) -> dict[str, str]:
        """Adds a row to the list and to the results, without a message."""
        row = len(self.list_rows) + 2
        self.rows.append(result_row(row, state, **cells))
        self.list_rows.append([self.rows[-1]["phone"], self.rows[-1]["code"]])
        return self.rows[-1]

    def add_message(self, state: str, **cells: Any) -> dict[str, str]:
        """Adds a row whose message the gateway received."""
        result = self.add_row(state, **cells)
        result["id"] = str(FIRST_ID + int(result["row"]))
        result["message_run"], result["message_state"] = "sale@1", state
        self.answer(result, self.receive(result["id"], result["to"]))
        return result

    def add_rejected(self) -> dict[str, str]:
        """Adds a row whose message the gateway rejected."""
        result = self.add_row("rejected")
        result["id"] = str(FIRST_ID + int(result["row"]))
        self.receive(result["id"], result["to"], success=False)
        return result

    def add_doubt(self, received: bool) -> dict[str, str]:
        """Adds a row in doubt."""
        result = self.add_row("in_doubt", reason="the connection was lost")
        result["id"] = str(FIRST_ID + int(result["row"]))
        if received:
            self.receive(result["id"], result["to"])
        return result

    def receive(self, identifier: str, phone: str, success: bool = True) -> dict[str, Any]:
        """Adds an operation to the journal, in a request of its own."""
        number = sum(len(operations) for operations in self.envelopes)
        operation = {"id": int(identifier), "phone": phone, "msg_id": FIRST_MSG_ID + number, "success": success}
        operation |= {"parts": 1 + number % 3} if success else {"error": "No route"}
        self.envelopes.append([operation])
        return operation

    def answer(self, result: dict[str, str], operation: dict[str, Any]) -> None:
        """Copies the answer to an operation into its row."""
        if self.asynchronous:
            result["request_id"] = f"request-{len(self.envelopes)}"
        else:
            result["msg_id"], result["parts"] = str(operation["msg_id"]), str(operation["parts"])

    def operation_of(self, result: dict[str, str]) -> dict[str, Any]:
        """The operation with the identifier of a row."""
        return next(operation for operations in self.envelopes for operation in operations
                    if str(operation.get("id")) == result["id"])

    def drop(self, result: dict[str, str]) -> None:
        """Removes the operation of a row from the journal."""
        for operations in self.envelopes:
            operations[:] = [operation for operation in operations if str(operation.get("id")) != result["id"]]

    def add_status(self, result: dict[str, str], status: str) -> None:
        """Adds a change of the status of a row's message."""
        operation = self.operation_of(result)
        self.envelopes[-1].append({"status": status, "id": operation["id"], "msg_id": operation["msg_id"]})

    def journal_text(self) -> str:
        """The journal."""
        lines: list[dict[str, Any]] = []
        for number, operations in enumerate(self.envelopes, start=1):
            request = {"request_id": f"request-{number}"} if self.asynchronous else {}
            lines.append({"event": "envelope", "at": AT, "envelope": number, "operations": len(operations)} | request)
            for operation in operations:
                event = "status" if "status" in operation else "operation"
                lines.append({"event": event, "at": AT, "envelope": number} | operation)
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def write(self, folder: Path) -> None:
        """Writes the journal, the list and the results."""
        (folder / "journal.jsonl").write_text(self.journal_text(), encoding="utf-8")
        write_csv(folder / "list.csv", [["phone", "code"], *self.list_rows])
        write_csv(folder / "results.csv", [list(COLUMNS), *(list(row.values()) for row in self.rows)])
        if self.earlier:
            write_csv(folder / "earlier.csv", [list(COLUMNS), *(list(row.values()) for row in self.earlier)])

    def judge(self, rules: Rules = Rules()) -> Judgement:
        """Writes everything, and judges it."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.write(folder)
            files = [folder / "earlier.csv"] if self.earlier else []
            claims = read_claims([*files, folder / "results.csv"], ["phone"])
            return judge(claims, Journal([folder / "journal.jsonl"]), rules, RecipientList(folder / "list.csv", []))

    def faults(self, rules: Rules = Rules()) -> set[tuple[str, int]]:
        """The kind and the row of each fault."""
        return {(fault.kind.value, fault.row) for fault in self.judge(rules).faults if fault.kind}


def write_csv(file: Path, rows: list[list[str]], delimiter: str = ",", encoding: str = "utf-8") -> None:
    """Writes a table."""
    with file.open("w", encoding=encoding, newline="") as text:
        csv.writer(text, delimiter=delimiter).writerows(rows)


def honest_world(asynchronous: bool = False) -> World:
    """A campaign in which every state occurs, and all results are true."""
    world = World(asynchronous)
    for state in ("queued" if asynchronous else "accepted", "delivered", "read", "failed"):
        for _ in range(3):
            world.add_message(state)
    world.add_rejected()
    world.add_doubt(received=True)
    world.add_doubt(received=False)
    world.add_row("skipped", reason="opted out")
    world.add_row("skipped", reason="duplicate number", to=phone_of(2), phone=phone_of(2))
    world.add_row("invalid", reason="no phone number", to="", phone="")
    world.add_row("planned")
    return world


class WorldTest(unittest.TestCase):
    """A test with an honest campaign for each endpoint."""

    def each_world(self):
        """Yields the honest campaigns, each as a subtest."""
        for asynchronous in (False, True):
            with self.subTest(asynchronous=asynchronous):
                yield honest_world(asynchronous)
