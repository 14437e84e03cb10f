"""The verdicts: what the results claim, compared with what the gateway received."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from claims import IN_DOUBT, SENT, UNSENT, Claims
from evidence import Journal, Message, is_failed
from inputs import TableForm, find_phone_columns, open_table, phone_digits
from reception import (BY_PHONE, MSG_ID_RIGHT, PARTS_RIGHT, PARTS_WRONG, QUEUED_FIRST, REQUEST_RIGHT, Counter,
                       Evidence, Reception, Record, Source, Suspects, collect_evidence)


class Kind(StrEnum):
    """The kinds of faults."""

    LOST = "lost"
    DOUBLED = "doubled"
    MISATTRIBUTED = "misattributed"
    FALSELY_REPORTED = "falsely reported"
    UNACCOUNTED = "unaccounted"
    UNEXPECTED = "unexpected"


@dataclass(frozen=True)
class Finding:
    """A fault, or a row in doubt: the row of a file, its number, and the evidence (without whole numbers)."""

    kind: Kind | None
    file: Path
    row: int
    phone: str
    evidence: str
    state: str = ""
    received: bool = False


@dataclass
class Judgement:
    """All findings, and the figures of the inputs."""

    faults: list[Finding] = field(default_factory=list)
    in_doubt: list[Finding] = field(default_factory=list)
    rows: int = 0
    list_rows: int | None = None
    messages: int = 0
    rejections: int = 0
    others: int = 0
    retried: int = 0
    several_rows: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Rules:
    """How strictly to judge."""

    allow_duplicates: bool = False
    only_known_ids: bool = False
    exclusive: bool = False


@dataclass(frozen=True)
class RecipientList:
    """The list of the campaign. Without names, its phone column is detected."""

    file: Path
    columns: list[str]
    form: TableForm = TableForm()

    def column_names(self) -> list[str]:
        """The headers of its phone columns."""
        table = open_table(self.file, self.form)
        return [table.header[place] for place in find_phone_columns(table, self.columns, "--list-phone")[0]]


def judge(claims: Claims, source: Source, rules: Rules, recipients: RecipientList | None = None) -> Judgement:
    """Compares the results with the gateway's record, and with the list if there is one."""
    reception = Counter(claims, source, rules.only_known_ids).count()
    bench = Bench(claims, source, rules, reception)
    bench.evidence = collect_evidence(claims, source, bench.suspects())
    bench.judge_phones()
    bench.judge_rows()
    bench.judge_attributions()
    if rules.exclusive:
        bench.judge_others()
    if recipients is not None:
        judge_list(claims, recipients, bench.result)
    result = bench.result
    result.rows, result.messages, result.rejections = len(claims), reception.messages, reception.rejections
    result.others = reception.others
    result.notes.extend(source.notes)
    result.faults.sort(key=lambda fault: (list(Kind).index(fault.kind), str(fault.file), fault.row))
    return result


class Bench:
    """One comparison: the claims, what was received, and the findings so far."""

    def __init__(self, claims: Claims, source: Source, rules: Rules, reception: Reception) -> None:
        self.claims, self.source, self.rules, self.reception = claims, source, rules, reception
        self.evidence = Evidence()
        self.result = Judgement()
        # Messages that are received under another identifier, or already reported as lost.
        self.explained: set[int] = set()

    def suspects(self) -> Suspects:
        """The numbers and identifiers that might be wrong, or that are in doubt."""
        claims, found = self.claims, self.reception
        phones, msg_ids, requests = set(found.strays), set(), set()
        phones.update(claims.find_number(message.phone) for _, message in found.wrong_phone)
        for claim in range(len(claims)):
            message, state = claims.message[claim], claims.state_of(claim)
            received = found.received[message]
            if received != 1 if state in SENT else received or state in IN_DOUBT:
                phones.add(claims.phone[claim])
            if self.has_wrong_msg_id(claim):
                msg_ids.add(claims.msg_id[claim])
            if self.has_wrong_request(claim):
                requests.add(claims.word(claims.request_id[claim]))
            if claims.next_of_phone[claim] and len(claims.messages_of_phone(claims.phone[claim])) > 1:
                phones.add(claims.phone[claim])
        return Suspects(phones, msg_ids, requests)

    def add(self, kind: Kind, claim: int, evidence: str) -> None:
        """Adds a fault of a row."""
        claims = self.claims
        self.result.faults.append(Finding(kind, claims.files[claims.file[claim]], claims.row[claim],
                                          claims.phone_text(claim), evidence, claims.state_of(claim)))

    # Numbers: how many messages each got.

    def judge_phones(self) -> None:
        """Finds numbers with more messages than the results explain."""
        for phone, records in list(self.evidence.by_phone.items()):
            if phone in self.claims.by_phone:
                self.judge_phone(phone, records)

    def judge_phone(self, phone: int, records: list[Record]) -> None:
        """Judges the messages to one number."""
        claims, found = self.claims, self.reception
        if self.rules.only_known_ids:
            records = [record for record in records if self.is_known(record)]
        messages = claims.messages_of_phone(phone)
        strays = self.stray_records(phone, records)
        # A failed message is an earlier attempt, and its retry is missing.
        unfailed = [stray for stray in strays if not is_failed(stray.statuses)]
        for missing in messages:
            if unfailed and claims.state_of(missing) in SENT and self.is_missing(missing):
                stray = unfailed.pop(0)
                self.explained.add(missing)
                self.add(Kind.MISATTRIBUTED, missing, f"the results have id {claims.texts.text(claims.id[missing])}, "
                         f"the gateway has this number's message as {describe(stray.message)}")
        counted = [record for record in records if not self.is_earlier_attempt(record, records)]
        self.result.retried += len(records) - len(counted)
        reported = [message for message in messages if claims.state_of(message) not in UNSENT]
        if not reported and not any(found.received[message] for message in messages):
            if strays:
                claim = claims.by_phone[phone]
                self.add(Kind.FALSELY_REPORTED, claim, f"the results say {self.describe_state(claim)}, "
                         f"the gateway received {describe_all(strays)}")
            return
        allowed = self.allowed_messages(messages)
        if len(counted) > allowed or is_repeated(counted):
            self.add_doubled(messages, counted)
        elif len(counted) > 1:
            self.result.several_rows += 1

    def is_earlier_attempt(self, record: Record, records: list[Record]) -> bool:
        """Whether a message failed and was sent again.

        With `duplicates: allow`, another message to the number can belong to another row. It is then no second attempt.
        """
        if self.rules.allow_duplicates and self.is_known(record):
            return record.failed and sum(other.message.id == record.message.id for other in records) > 1
        return record.failed

    def stray_records(self, phone: int, records: list[Record]) -> list[Record]:
        """The messages to a number whose identifier is in no row, and that did not fail before another message."""
        if not self.reception.strays.get(phone):
            return []
        unknown = [record for record in records if not self.is_known(record)]
        # Messages without identifiers are equal; as many of them as could not be assigned are strays.
        kept = unknown[len(unknown) - self.reception.strays[phone]:]
        return [record for record in kept if not record.failed]

    def is_known(self, record: Record) -> bool:
        """Whether a row has the identifier of this message."""
        claims, message = self.claims, record.message
        if self.source.fields.ids:
            return claims.find_number(message.id) in claims.by_id
        return bool(message.msg_id) and claims.find_number(message.msg_id) in self.known_msg_ids()

    def known_msg_ids(self) -> set[int]:
        """The gateway's identifiers in the results."""
        if not hasattr(self, "_known_msg_ids"):
            self._known_msg_ids = set(self.claims.msg_id)
        return self._known_msg_ids

    def allowed_messages(self, messages: list[int]) -> int:
        """How many messages a number may get: one per campaign, or one per row with `duplicates: allow`."""
        claims = self.claims
        rows: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for claim in self.claims.with_phone(claims.phone[messages[0]]) if messages else ():
            if claims.id[claim] and claims.state_of(claim) not in UNSENT:
                rows[claims.campaign_of(claim)][claims.file[claim]].add(claims.message[claim])
        if not self.rules.allow_duplicates:
            return max(len(rows), 1)
        return max(sum(max(len(found) for found in files.values()) for files in rows.values()), 1)

    def add_doubled(self, messages: list[int], counted: list[Record]) -> None:
        """Adds the fault of a number that got too many messages."""
        claims = self.claims
        known = [message for message in messages if claims.state_of(message) not in UNSENT] or messages
        rows = sorted({claims.row[message] for message in known})
        where = f"; the results report messages for rows {', '.join(map(str, rows))}" if len(rows) > 1 else ""
        self.add(Kind.DOUBLED, known[0], f"the gateway received {len(counted)} messages for this number: "
                 f"{describe_all(counted)}{where}")

    # Rows: whether their states are true.

    def is_missing(self, message: int) -> bool:
        """Whether the gateway did not receive a message that the results report as sent."""
        claims, found = self.claims, self.reception
        if found.received[message] or message in self.explained:
            return False
        state = claims.state_of(message)
        if found.refused[message]:
            # The asynchronous endpoint queues a message before it rejects it.
            return not (state == "failed" or state in ("queued", "accepted") and found.facts[message] & QUEUED_FIRST)
        is_rejected = claims.state_of(message) == "failed" and claims.word(claims.status[message]) == "REJECTED"
        return not (is_rejected and not isinstance(self.source, Journal))

    def judge_rows(self) -> None:
        """Finds rows whose state is not true, and lists the rows in doubt."""
        claims, found = self.claims, self.reception
        doubted: set[int] = set()
        for claim in range(len(claims)):
            message, state = claims.message[claim], claims.state_of(claim)
            if state in SENT and self.is_missing(message):
                self.add_lost(claim)
                self.explained.add(message)
            elif state in ("queued", "accepted") and self.is_known_rejection(claim):
                self.add(Kind.FALSELY_REPORTED, claim, f"the results say {self.describe_state(claim)} with the "
                         f"gateway's status REJECTED, the gateway rejected it: {self.describe_rejection(claim)}")
            elif state in UNSENT and claims.id[claim] and found.received[message]:
                self.add(Kind.FALSELY_REPORTED, claim, f"the results say {self.describe_state(claim)}, "
                         f"the gateway received {self.describe_message(claim)}")
            elif state in IN_DOUBT and message not in doubted:
                doubted.add(message)
                self.add_doubt(claim)

    def is_known_rejection(self, claim: int) -> bool:
        """Whether the gateway rejected a message after it queued it, and the results already have that status."""
        message = self.claims.message[claim]
        is_rejected = self.reception.refused[message] and not self.reception.received[message]
        return bool(is_rejected) and self.claims.word(self.claims.status[claim]) == "REJECTED"

    def describe_rejection(self, claim: int) -> str:
        """The gateway's error for a row's message, and its place."""
        refused = self.evidence.refused.get(self.claims.phone[claim])
        return f"{refused.error}, {place(refused)}" if refused else "at intake"

    def add_lost(self, claim: int) -> None:
        """Adds a message that the gateway does not have."""
        claims = self.claims
        said = f"the results say {self.describe_state(claim)} (id {claims.texts.text(claims.id[claim])})"
        if self.reception.refused[claims.message[claim]]:
            self.add(Kind.LOST, claim, f"{said}, the gateway rejected it: {self.describe_rejection(claim)}")
        else:
            self.add(Kind.LOST, claim, f"{said}, the gateway has no such message")

    def add_doubt(self, claim: int) -> None:
        """Adds a row in doubt, with what the gateway knows about it."""
        claims = self.claims
        received = bool(self.reception.received[claims.message[claim]])
        if received:
            evidence = f"the gateway received {self.describe_message(claim)}"
        elif self.reception.refused[claims.message[claim]]:
            evidence = "the gateway rejected it"
        else:
            evidence = "the gateway did not receive it"
        self.result.in_doubt.append(Finding(None, claims.files[claims.file[claim]], claims.row[claim],
                                            claims.phone_text(claim), evidence, claims.state_of(claim), received))

    def describe_state(self, claim: int) -> str:
        """The state of a row, with its reason."""
        claims = self.claims
        state = "skipped" if claims.refers[claim] else claims.state_of(claim)
        reason = claims.word(claims.reason[claim])
        return f"{state} ({reason})" if reason else state

    def describe_message(self, claim: int) -> str:
        """The messages with a row's identifier, or to its number."""
        claims = self.claims
        records = self.evidence.by_phone.get(claims.phone[claim], [])
        same = [record for record in records if claims.find_number(record.message.id) == claims.id[claim]]
        return describe_all(same or records) if same or records else "it for another number"

    # Attribution: whether a message, its identifiers and its text belong to the row.

    def has_wrong_msg_id(self, claim: int) -> bool:
        """Whether the row has an identifier that the gateway did not give to its message."""
        claims, found = self.claims, self.reception
        message = claims.message[claim]
        if not claims.msg_id[claim] or not self.source.fields.msg_ids or not found.received[message]:
            return False
        if claim != message and claims.msg_id[claim] != claims.msg_id[message] and claims.msg_id[message]:
            return True
        return claim == message and not found.facts[message] & (MSG_ID_RIGHT | BY_PHONE)

    def has_wrong_request(self, claim: int) -> bool:
        """Whether the row has a request in which its message was not."""
        claims, found = self.claims, self.reception
        message = claims.message[claim]
        has_evidence = found.received[message] or found.refused[message]
        return bool(claim == message and claims.request_id[claim] and self.source.fields.request_ids and has_evidence
                    and not found.facts[message] & REQUEST_RIGHT)

    def judge_attributions(self) -> None:
        """Finds messages, identifiers and texts that belong to other rows."""
        claims, found = self.claims, self.reception
        for claim, message in found.wrong_phone:
            self.add_wrong_phone(claim, message)
        for claim, message in found.wrong_text:
            self.add(Kind.MISATTRIBUTED, claim, f"the text of {describe(message)} does not contain the row's value")
        for claim in claims.unlike_list:
            self.add(Kind.MISATTRIBUTED, claim, "the row's number in the list is another one")
        for claim in range(len(claims)):
            if self.has_wrong_msg_id(claim):
                owner = self.evidence.by_msg_id.get(claims.msg_id[claim])
                self.add_wrong_identifier(claim, f"msg_id {claims.texts.text(claims.msg_id[claim])}", owner)
            if self.has_wrong_request(claim):
                request = claims.word(claims.request_id[claim])
                self.add_wrong_identifier(claim, f"request_id {request}", self.evidence.by_request.get(request))
            if found.facts[claim] & (PARTS_WRONG | PARTS_RIGHT) == PARTS_WRONG:
                self.add(Kind.MISATTRIBUTED, claim, f"the results have {claims.parts[claim]} parts, "
                         "the gateway billed another number of parts")
            if claims.message[claim] != claim:
                self.judge_shared_id(claim)

    def add_wrong_phone(self, claim: int, message: Message) -> None:
        """Adds a message that went to a number of another row, or to none of the list."""
        claims = self.claims
        owner = claims.by_phone.get(claims.find_number(message.phone))
        whose = f"that of row {claims.row[owner]}" if owner is not None else "that of no row"
        self.add(Kind.MISATTRIBUTED, claim, f"the gateway has {describe(message)} with another number: {whose}")

    def add_wrong_identifier(self, claim: int, name: str, owner: Message | None) -> None:
        """Adds an identifier of the gateway that does not belong to the row."""
        if owner is None:
            self.add(Kind.FALSELY_REPORTED, claim, f"the gateway has no {name}")
            return
        row = self.claims.by_id.get(self.claims.find_number(owner.id))
        whose = f" of row {self.claims.row[row]}" if row is not None else ""
        self.add(Kind.FALSELY_REPORTED, claim, f"{name} belongs to the message{whose} {describe(owner)}")

    def judge_shared_id(self, claim: int) -> None:
        """Finds an identifier that two rows have, although it belongs to one message."""
        claims = self.claims
        first = claims.message[claim]
        if claims.phone[first] != claims.phone[claim]:
            problem = "and another number"
        elif (claims.file[first] == claims.file[claim] and claims.row[first] != claims.row[claim]
              and not claims.refers[claim]):
            problem = "although both rows are reported with a message of their own"
        else:
            return
        where = f"row {claims.row[first]} of {claims.files[claims.file[first]].name}"
        self.add(Kind.MISATTRIBUTED, claim, f"{where} has the same id {claims.texts.text(claims.id[claim])}, {problem}")

    def judge_others(self) -> None:
        """Adds messages to numbers outside the results, if there must not be any."""
        found = self.reception
        for message in found.other_examples:
            self.result.faults.append(Finding(Kind.UNEXPECTED, message.file, message.line, message.phone,
                                              f"no row of the results explains {describe(message)}"))
        if found.others > len(found.other_examples):
            self.result.notes.append(f"{found.others - len(found.other_examples)} more unexpected messages")


def is_repeated(records: list[Record]) -> bool:
    """Whether one identifier occurs in several of these messages."""
    ids = [record.message.id for record in records if record.message.id]
    return len(set(ids)) < len(ids)


def judge_list(claims: Claims, recipients: RecipientList, result: Judgement) -> None:
    """Finds rows of the list that no results file has, by number, or by row if the results have no number for it."""
    table = open_table(recipients.file, recipients.form)
    phones, sample = find_phone_columns(table, recipients.columns, "--list-phone")
    seen: dict[int, int] = defaultdict(int)
    number = 1
    for line, cells in (row for part in (sample, table.rows) for row in part):
        number += 1
        keys = [list_phone(claims, cells[place]) for place in phones if place < len(cells)]
        # The first number with a row is the one that the campaign chose.
        key = next((key for key in keys if key in claims.by_phone), 0)
        seen[key] += bool(key)
        if not (key and seen[key] <= rows_of_phone(claims, key)) and not is_unnumbered(claims, {number, line}):
            shown = next((phone_digits(cells[place]) for place in phones if place < len(cells)), "")
            result.faults.append(Finding(Kind.UNACCOUNTED, recipients.file, line, shown,
                                         "no row of the results has this recipient"))
    result.list_rows = number - 1


def list_phone(claims: Claims, cell: str) -> int:
    """The number of a cell of the list, as the results write it."""
    digits = phone_digits(cell)
    phone = claims.find_number(digits)
    return phone if phone in claims.by_phone else claims.aliases.get(digits, 0)


def rows_of_phone(claims: Claims, phone: int) -> int:
    """The most rows with this number in one results file."""
    rows: dict[int, int] = defaultdict(int)
    for claim in claims.with_phone(phone):
        rows[claims.file[claim]] += 1
    return max(rows.values(), default=0)


def is_unnumbered(claims: Claims, rows: set[int]) -> bool:
    """Whether the results have such a row without a number. Blank lines can shift the rows of a list."""
    return not rows.isdisjoint(claims.rows_without_phone)


def describe(message: Message) -> str:
    """A message, without its number."""
    names = [f"id {message.id}" if message.id else "", f"msg_id {message.msg_id}" if message.msg_id else "",
             message.at, place(message)]
    return "(" + ", ".join(name for name in names if name) + ")"


def describe_all(records: list[Record]) -> str:
    """Messages, without their number: at most four of them."""
    more = f" and {len(records) - 4} more" if len(records) > 4 else ""
    return ", ".join(describe(record.message) for record in records[:4]) + more


def place(message: Message) -> str:
    """Where a message is recorded."""
    return f"{message.file.name}:{message.line}"
