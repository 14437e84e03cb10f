"""Random campaigns with random faults: the judge finds exactly what was planted. The seeds are fixed."""

from __future__ import annotations

import random
import unittest
from collections.abc import Callable

from verdicts import Rules
from worlds import FIRST_ID, World

WORLDS = 400
Row = dict[str, str]
Expected = set[tuple[str, int]]


def lose(world: World, row: Row, _: int) -> Expected:
    """The gateway never received the message."""
    world.drop(row)
    return {("lost", int(row["row"]))}


def send_again_with_same_id(world: World, row: Row, _: int) -> Expected:
    """The message is sent again, as it is."""
    world.receive(row["id"], row["to"])
    return {("doubled", int(row["row"]))}


def send_again_with_new_id(world: World, row: Row, number: int) -> Expected:
    """The message is sent again as a new message."""
    world.receive(str(FIRST_ID + 10_000 + number), row["to"])
    return {("doubled", int(row["row"]))}


def send_to_nobody(world: World, row: Row, number: int) -> Expected:
    """The message goes to a number outside the list."""
    world.operation_of(row)["phone"] = f"38067{number:07d}"
    return {("misattributed", int(row["row"]))}


def change_id(world: World, row: Row, number: int) -> Expected:
    """The gateway has the message under another identifier."""
    world.operation_of(row)["id"] = FIRST_ID + 10_000 + number
    return {("misattributed", int(row["row"]))}


def deny(world: World, row: Row, number: int) -> Expected:
    """The results say that the message was not sent."""
    row["state"] = ("rejected", "not_sent", "planned", "skipped")[number % 4]
    return {("falsely reported", int(row["row"]))}


def invent_identifier(world: World, row: Row, number: int) -> Expected:
    """The results have an identifier that the gateway did not assign."""
    row["request_id" if world.asynchronous else "msg_id"] = f"{number + 1}"
    return {("falsely reported", int(row["row"]))}


def forget(world: World, row: Row, _: int) -> Expected:
    """The results lack a row that has no message."""
    skipped = world.add_row("skipped", reason="opted out")
    world.rows.remove(skipped)
    return {("unaccounted", int(skipped["row"]))}


def send_although_skipped(world: World, row: Row, number: int) -> Expected:
    """A skipped row got a message."""
    skipped = world.add_row("skipped", reason="opted out")
    world.receive(str(FIRST_ID + 10_000 + number), skipped["to"])
    return {("falsely reported", int(skipped["row"]))}


PLANTS: list[Callable[[World, Row, int], Expected]] = [
    lose, send_again_with_same_id, send_again_with_new_id, send_to_nobody, change_id, deny, invent_identifier, forget,
    send_although_skipped]


def random_world(chance: random.Random) -> World:
    """An honest campaign of up to sixty rows."""
    world = World(asynchronous=chance.random() < 0.5)
    for _ in range(chance.randint(1, 60)):
        kind = chance.random()
        if kind < 0.7:
            world.add_message(chance.choice(["queued" if world.asynchronous else "accepted", "delivered", "read"]))
        elif kind < 0.8:
            world.add_rejected()
        elif kind < 0.9:
            world.add_doubt(received=chance.random() < 0.5)
        else:
            world.add_row("skipped", reason="opted out")
    retry_some(world, chance)
    shuffle_requests(world, chance)
    return world


def retry_some(world: World, chance: random.Random) -> None:
    """Sends some failed messages again, honestly."""
    for row in [row for row in world.rows if row["state"] == "delivered" and chance.random() < 0.2]:
        world.add_status(row, "UNDELIVERABLE")
        row["id"] = str(FIRST_ID + 5_000 + int(row["row"]))
        world.answer(row, world.receive(row["id"], row["to"]))


def shuffle_requests(world: World, chance: random.Random) -> None:
    """Puts some messages in the request before theirs, unless their rows name the request."""
    if world.asynchronous:
        return
    for place in range(len(world.envelopes) - 1, 0, -1):
        if chance.random() < 0.5:
            world.envelopes[place - 1].extend(world.envelopes.pop(place))


class RandomWorlds(unittest.TestCase):
    """Every verdict in random company."""

    def test_planted_faults_are_found_and_nothing_else(self) -> None:
        planted: set[str] = set()
        for seed in range(WORLDS):
            chance = random.Random(seed)
            world, expected = random_world(chance), set()
            sent = [row for row in world.rows if row["state"] in ("accepted", "queued", "delivered", "read")]
            for number, row in enumerate(chance.sample(sent, min(len(sent), chance.randint(0, 8)))):
                found = chance.choice(PLANTS)(world, row, number)
                planted.update(kind for kind, _ in found)
                expected |= found
            self.assertEqual(world.faults(Rules()), expected, f"seed {seed}")
        self.assertEqual(planted, {"lost", "doubled", "misattributed", "falsely reported", "unaccounted"})


if __name__ == "__main__":
    unittest.main()
