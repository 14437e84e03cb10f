"""The summary that people read, and the JSON document. Both mask phone numbers unless told otherwise."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

from inputs import BadInput, mask_phone
from verdicts import Finding, Judgement, Kind

WIDTH = 118

MEANINGS = {
    Kind.LOST: "reported as sent, but the gateway never received it",
    Kind.DOUBLED: "the number got more messages than the results explain",
    Kind.MISATTRIBUTED: "the message, number, text or id belongs to another row",
    Kind.FALSELY_REPORTED: "reported as not sent but received, or with a false msg_id or request_id",
    Kind.UNACCOUNTED: "in the list, but in no row of the results",
    Kind.UNEXPECTED: "received, but in no row of the results",
}


def render_summary(result: Judgement, examples: int, show_numbers: bool) -> str:
    """The summary: figures, counts, and some examples of each kind."""
    in_list = f" · {count(result.list_rows, 'row')} in the list" if result.list_rows is not None else ""
    lines = [f"{count(result.rows, 'row')} of results{in_list} · {count(result.messages, 'message')} received by the "
             f"gateway, {result.rejections} rejected"]
    kinds = Counter(fault.kind for fault in result.faults)
    for kind, meaning in MEANINGS.items():
        if kind is Kind.UNEXPECTED and not kinds[kind] or kind is Kind.UNACCOUNTED and result.list_rows is None:
            continue
        lines.append(f"  {kind.value:<17} {kinds[kind]:>7}   {meaning}")
    received = sum(finding.received for finding in result.in_doubt)
    doubts = len(result.in_doubt)
    lines.append(f"  {'in doubt':<17} {doubts:>7}   {received} received, {doubts - received} not received (no fault)")
    lines += [f"note: {note}" for note in notes_of(result)]
    for kind in Kind:
        lines += render_examples(kind.value, [fault for fault in result.faults if fault.kind is kind], examples,
                                 show_numbers)
    lines += render_examples("in doubt", result.in_doubt, examples, show_numbers)
    lines.append(f"{count(len(result.faults), 'fault')} found" if result.faults else "no fault found")
    return "\n".join(lines)


def notes_of(result: Judgement) -> list[str]:
    """What is not a fault, but helps to understand the counts."""
    notes = list(result.notes)
    doubled = sum(fault.kind is Kind.DOUBLED for fault in result.faults)
    if doubled > 10 and doubled * 10 > result.rows:
        notes.append("many numbers are doubled: if this is another edition or campaign, exclude it with --from and "
                     "--until, or pass the results of the other campaign too")
    if result.several_rows:
        notes.append(f"{count(result.several_rows, 'number')} got several messages, one for each row or campaign")
    if result.retried:
        notes.append(f"{count(result.retried, 'message')} failed and were sent again; only the last attempt counts")
    if result.others:
        notes.append(f"{count(result.others, 'message')} to other numbers or of other campaigns")
    return notes


def render_examples(name: str, findings: list[Finding], most: int, show_numbers: bool) -> list[str]:
    """Some findings of one kind, with their evidence."""
    if not findings or not most:
        return []
    lines = ["", f"{name}:"]
    for finding in findings[:most]:
        phone = f" {shown_phone(finding, show_numbers)}" if finding.phone else ""
        text = f"  {finding.file.name} row {finding.row}{phone}: {finding.evidence}"
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    if len(findings) > most:
        lines.append(f"  … and {len(findings) - most} more (--examples, --json)")
    return lines


def shown_phone(finding: Finding, show_numbers: bool) -> str:
    """The number of a finding, masked if it must be."""
    return finding.phone if show_numbers else mask_phone(finding.phone)


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 row`, `1 000 rows`."""
    return f"{number:,}".replace(",", " ") + f" {noun}" + ("" if number == 1 else "s")


def write_json(result: Judgement, file: Path, show_numbers: bool) -> None:
    """Writes all findings as JSON, readable by the user only."""
    document = {
        "faultless": not result.faults,
        "counts": {kind.value.replace(" ", "_"): sum(fault.kind is kind for fault in result.faults) for kind in Kind},
        "figures": {"results": result.rows, "list": result.list_rows, "received": result.messages,
                    "rejected": result.rejections, "others": result.others, "retried": result.retried,
                    "several_rows": result.several_rows},
        "faults": [finding_object(fault, show_numbers) for fault in result.faults],
        "in_doubt": [finding_object(finding, show_numbers) for finding in result.in_doubt],
        "notes": result.notes,
    }
    try:
        file.touch(mode=0o600)
        file.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write the file: {error.strerror}", file=file) from error


def finding_object(finding: Finding, show_numbers: bool) -> dict[str, Any]:
    """A finding as JSON."""
    kind = {"kind": finding.kind.value.replace(" ", "_")} if finding.kind else {"received": finding.received}
    return kind | {"file": str(finding.file), "row": finding.row, "phone": shown_phone(finding, show_numbers),
                   "state": finding.state, "evidence": finding.evidence}
