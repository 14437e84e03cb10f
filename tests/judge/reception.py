"""Which messages of the results the gateway received: a first pass that counts, and a second that collects evidence."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from claims import IN_DOUBT, SENT, Claims
from evidence import GOOD, Export, Journal, Message, StatusChange, is_failed

Source = Journal | Export

# What has been found out about the message of a row.
MSG_ID_RIGHT, REQUEST_RIGHT, PARTS_RIGHT, PARTS_WRONG, BY_PHONE, QUEUED_FIRST = 1, 2, 4, 8, 16, 32
MOST = 255
EXAMPLES_OF_OTHERS = 100


@dataclass
class Reception:
    """How often the gateway received the message of each row, and messages that belong to none.

    The counts have the places of the claims. Only the places of messages are used (`Claims.message`).
    """

    received: bytearray
    refused: bytearray
    facts: bytearray
    strays: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    wrong_phone: list[tuple[int, Message]] = field(default_factory=list)
    wrong_text: list[tuple[int, Message]] = field(default_factory=list)
    others: int = 0
    other_examples: list[Message] = field(default_factory=list)
    messages: int = 0
    rejections: int = 0


class Counter:
    """The first pass: counts messages, and compares each with the row that has its identifier."""

    def __init__(self, claims: Claims, source: Source, only_known_ids: bool) -> None:
        size = len(claims)
        self.claims, self.source, self.only_known_ids = claims, source, only_known_ids
        self.found = Reception(bytearray(size), bytearray(size), bytearray(size))
        # Messages without an identifier, by number.
        self.loose: dict[int, int] = defaultdict(int)
        self.by_msg_id: dict[int, int] = {}
        if source.fields.msg_ids and not source.fields.ids:
            self.by_msg_id = {msg_id: claims.message[at] for at, msg_id in enumerate(claims.msg_id) if msg_id}

    def count(self) -> Reception:
        """Counts all messages of the source."""
        for item in self.source.read():
            if isinstance(item, Message):
                self.count_message(item)
        for phone, number in self.loose.items():
            self.assign_by_phone(phone, number)
        return self.found

    def count_message(self, message: Message) -> None:
        """Counts one message, for its row if its identifier is known."""
        found, claims = self.found, self.claims
        found.messages += message.accepted
        found.rejections += not message.accepted
        if self.source.fields.ids:
            claim = claims.by_id.get(claims.find_number(message.id))
        else:
            claim = self.by_msg_id.get(claims.find_number(message.msg_id))
        if claim is not None:
            self.count_for(claim, message)
        elif message.accepted:
            self.count_unknown(message)

    def count_for(self, claim: int, message: Message) -> None:
        """Counts a message for the row with its identifier, and compares the two."""
        found, claims = self.found, self.claims
        counts = found.received if message.accepted else found.refused
        counts[claim] = min(counts[claim] + 1, MOST)
        if message.request_id and not message.accepted:
            # The asynchronous endpoint queues a message before it rejects it.
            found.facts[claim] |= QUEUED_FIRST
        if claims.find_number(message.msg_id) == claims.msg_id[claim]:
            found.facts[claim] |= MSG_ID_RIGHT
        if message.request_id == claims.word(claims.request_id[claim]):
            found.facts[claim] |= REQUEST_RIGHT
        if claims.parts[claim] and message.parts:
            found.facts[claim] |= PARTS_RIGHT if message.parts == str(claims.parts[claim]) else PARTS_WRONG
        if claims.find_number(message.phone) != claims.phone[claim]:
            found.wrong_phone.append((claim, message))
        elif claims.expected and message.accepted and not has_text(message, claims.expected[claim]):
            found.wrong_text.append((claim, message))

    def count_unknown(self, message: Message) -> None:
        """Counts an accepted message whose identifier is in no row."""
        found, phone = self.found, self.claims.find_number(message.phone)
        has_identifier = message.id if self.source.fields.ids else message.msg_id
        if phone not in self.claims.by_phone or (has_identifier and self.only_known_ids):
            found.others += 1
            if len(found.other_examples) < EXAMPLES_OF_OTHERS:
                found.other_examples.append(message)
        elif self.source.fields.ids and message.id:
            found.strays[phone] += 1
        else:
            self.loose[phone] += 1

    def assign_by_phone(self, phone: int, number: int) -> None:
        """Assigns messages without an identifier to the rows with their number that have no message yet."""
        found, claims = self.found, self.claims
        messages = [message for message in claims.messages_of_phone(phone) if not found.received[message]]
        for states in (SENT, IN_DOUBT):
            for message in messages:
                if number and claims.state_of(message) in states and not found.received[message]:
                    found.received[message], number = 1, number - 1
                    found.facts[message] |= BY_PHONE
        if number:
            found.strays[phone] += number


def has_text(message: Message, expected: str) -> bool:
    """Whether a text contains what the row says. Different spaces do not count."""
    return " ".join(expected.split()) in " ".join(message.text.split())


@dataclass
class Record:
    """A message to a suspect number, with its statuses."""

    message: Message
    statuses: list[str]
    failed_before_next: bool = False

    @property
    def failed(self) -> bool:
        """Whether it failed before the next message to the number, and never arrived later."""
        return self.failed_before_next and not GOOD.intersection(self.statuses)


@dataclass
class Evidence:
    """The messages to the suspect numbers, and the messages with suspect identifiers."""

    by_phone: dict[int, list[Record]] = field(default_factory=lambda: defaultdict(list))
    refused: dict[int, Message] = field(default_factory=dict)
    by_msg_id: dict[int, Message] = field(default_factory=dict)
    by_request: dict[str, Message] = field(default_factory=dict)


@dataclass(frozen=True)
class Suspects:
    """The numbers and identifiers about which evidence is needed."""

    phones: set[int]
    msg_ids: set[int]
    requests: set[str]

    def __bool__(self) -> bool:
        return bool(self.phones or self.msg_ids or self.requests)


def collect_evidence(claims: Claims, source: Source, suspects: Suspects) -> Evidence:
    """The second pass."""
    evidence, open_records = Evidence(), {}
    if not suspects:
        return evidence
    for item in source.read():
        if isinstance(item, StatusChange):
            if record := open_records.get((item.id, item.msg_id)):
                record.statuses.append(item.status.upper())
            continue
        phone, msg_id = claims.find_number(item.phone), claims.find_number(item.msg_id)
        if msg_id in suspects.msg_ids:
            evidence.by_msg_id.setdefault(msg_id, item)
        if item.request_id in suspects.requests:
            evidence.by_request.setdefault(item.request_id, item)
        if phone not in suspects.phones:
            continue
        if not item.accepted:
            evidence.refused.setdefault(phone, item)
            continue
        for earlier in evidence.by_phone[phone]:
            earlier.failed_before_next |= is_failed(earlier.statuses)
        record = Record(item, [item.status.upper()] if item.status else [])
        evidence.by_phone[phone].append(record)
        open_records[item.id, item.msg_id] = record
    if isinstance(source, Export):
        note_failures_in_any_order(evidence)
    return evidence


def note_failures_in_any_order(evidence: Evidence) -> None:
    """An export shows the last status of each message, and might be in any order."""
    for records in evidence.by_phone.values():
        failures = [record for record in records if is_failed(record.statuses)]
        if len(failures) == len(records):
            # One of them is the last attempt.
            failures = failures[:-1]
        for record in failures:
            record.failed_before_next = True
