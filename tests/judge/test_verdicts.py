"""Each verdict: an honest campaign has no faults, and a planted fault is found alone."""

from __future__ import annotations

import unittest

from verdicts import Rules
from worlds import FIRST_ID, World, WorldTest, honest_world, phone_of, result_row


class Honest(WorldTest):
    """Campaigns without faults."""

    def test_honest_campaign_has_no_faults(self) -> None:
        for world in self.each_world():
            result = world.judge(Rules(exclusive=True))
            self.assertEqual(result.faults, [])
            self.assertEqual((result.rows, result.list_rows, result.messages, result.rejections), (19, 19, 13, 1))
            self.assertEqual([finding.received for finding in result.in_doubt], [True, False])

    def test_identifier_of_the_gateway_may_be_a_text(self) -> None:
        world = honest_world()
        for envelope in world.envelopes:
            for operation in envelope:
                operation["msg_id"] = f"m-{operation['msg_id']}"
        for row in world.rows:
            row["msg_id"] = f"m-{row['msg_id']}" if row["msg_id"] else ""
        self.assertEqual(world.faults(), set())
        world.rows[0]["msg_id"] = "m-1"
        self.assertEqual(world.faults(), {("falsely reported", 2)})

    def test_failed_message_that_is_sent_again_is_no_fault(self) -> None:
        for world in self.each_world():
            retried = world.rows[9]
            world.add_status(retried, "UNDELIVERABLE")
            retried["id"] = str(FIRST_ID + 900)
            world.answer(retried, world.receive(retried["id"], retried["to"]))
            result = world.judge()
            self.assertEqual((result.faults, result.retried), ([], 1))

    def test_rejected_message_that_is_sent_again_is_no_fault(self) -> None:
        for world in self.each_world():
            retried = world.rows[12]
            retried["state"], retried["id"] = "accepted", str(FIRST_ID + 900)
            world.answer(retried, world.receive(retried["id"], retried["to"]))
            self.assertEqual(world.faults(), set())

    def test_queued_message_that_is_rejected_later_is_no_fault(self) -> None:
        world = honest_world(asynchronous=True)
        for row in (world.rows[0], world.rows[9]):
            operation = world.operation_of(row)
            operation |= {"success": False, "error": "No route"}
            del operation["parts"]
        self.assertEqual(world.faults(), set())

    def test_message_of_an_earlier_run_is_counted_once(self) -> None:
        for world in self.each_world():
            world.earlier = [dict(row) for row in world.rows]
            for row in world.rows[:12]:
                row |= {"run": "sale@2", "state": "skipped", "reason": "already sent", "parts": ""}
            self.assertEqual(world.faults(), set())

    def test_purged_message_of_an_earlier_run_is_in_doubt(self) -> None:
        world = honest_world()
        world.rows[0] |= {"state": "skipped", "reason": "already sent", "message_state": ""}
        result = world.judge()
        self.assertEqual((result.faults, len(result.in_doubt)), ([], 3))

    def test_two_rows_of_a_number_are_allowed_if_the_campaign_allows_it(self) -> None:
        for world in self.each_world():
            world.add_message("delivered", to=phone_of(2), phone=phone_of(2))
            self.assertEqual(world.faults(Rules(allow_duplicates=True)), set())
            self.assertEqual(world.faults(), {("doubled", 2)})

    def test_failed_message_of_another_row_is_no_attempt(self) -> None:
        for world in self.each_world():
            world.add_status(world.rows[0], "UNDELIVERABLE")
            world.add_message("delivered", to=phone_of(2), phone=phone_of(2))
            self.assertEqual(world.judge(Rules(allow_duplicates=True)).retried, 0)
            world.receive(str(FIRST_ID + 900), phone_of(2))
            self.assertEqual(world.faults(Rules(allow_duplicates=True)), {("doubled", 2)})

    def test_message_of_another_campaign_is_counted_separately(self) -> None:
        world = honest_world()
        tested = world.add_message("accepted", to=phone_of(2), phone=phone_of(2), run="campaign.test@1")
        tested["message_run"] = "campaign.test@1"
        self.assertEqual(world.faults(), set())

    def test_national_number_in_the_list_is_recognized(self) -> None:
        world = honest_world()
        for row, cells in zip(world.rows, world.list_rows):
            row["phone"] = cells[0] = row["phone"].removeprefix("38")
        self.assertEqual(world.faults(), set())


class Lost(WorldTest):
    """Messages that never arrived."""

    def test_message_that_never_arrived_is_lost(self) -> None:
        for world in self.each_world():
            for place in (0, 3, 6, 9):
                world.drop(world.rows[place])
            self.assertEqual(world.faults(), {("lost", 2), ("lost", 5), ("lost", 8), ("lost", 11)})

    def test_rejected_message_that_is_reported_as_accepted_is_lost(self) -> None:
        world = honest_world()
        world.rows[12]["state"] = "accepted"
        result = world.judge()
        self.assertEqual([(fault.kind, fault.row) for fault in result.faults], [("lost", 14)])
        self.assertIn("the gateway rejected it: No route", result.faults[0].evidence)

    def test_rejected_message_that_is_reported_as_delivered_is_lost(self) -> None:
        for world in self.each_world():
            world.operation_of(world.rows[3])["success"] = False
            self.assertEqual(world.faults(), {("lost", 5)})

    def test_message_of_an_earlier_run_that_never_arrived_is_lost_once(self) -> None:
        world = honest_world()
        world.earlier = [dict(row) for row in world.rows]
        world.rows[0] |= {"state": "skipped", "reason": "already sent"}
        world.drop(world.rows[0])
        self.assertEqual([fault.kind for fault in world.judge().faults], ["lost"])


class Doubled(WorldTest):
    """Numbers with too many messages."""

    def test_message_with_the_same_id_twice_is_doubled(self) -> None:
        for world in self.each_world():
            world.receive(world.rows[4]["id"], world.rows[4]["to"])
            self.assertEqual(world.faults(), {("doubled", 6)})
            self.assertEqual(world.faults(Rules(allow_duplicates=True)), {("doubled", 6)})

    def test_message_with_an_unknown_id_is_doubled(self) -> None:
        for world in self.each_world():
            world.receive(str(FIRST_ID + 900), world.rows[4]["to"])
            self.assertEqual(world.faults(), {("doubled", 6)})
            self.assertEqual(world.faults(Rules(only_known_ids=True)), set())

    def test_skipped_duplicate_that_was_sent_is_doubled(self) -> None:
        for world in self.each_world():
            world.receive(str(FIRST_ID + 900), phone_of(2))
            self.assertEqual(world.faults(), {("doubled", 2)})

    def test_delivered_message_that_is_sent_again_is_doubled(self) -> None:
        for statuses in ([], ["ACCEPTED"], ["EXPIRED", "ACCEPTED"], ["DELIVERED"], ["EXPIRED", "DELIVERED"]):
            world = honest_world()
            for status in statuses:
                world.add_status(world.rows[4], status)
            world.receive(str(FIRST_ID + 900), world.rows[4]["to"])
            self.assertEqual(world.faults(), {("doubled", 6)}, statuses)

    def test_failure_that_comes_after_the_second_message_is_doubled(self) -> None:
        world = honest_world()
        world.receive(str(FIRST_ID + 900), world.rows[4]["to"])
        world.add_status(world.rows[4], "UNDELIVERABLE")
        self.assertEqual(world.faults(), {("doubled", 6)})

    def test_failed_message_that_arrives_after_its_retry_is_doubled(self) -> None:
        world = honest_world()
        world.add_status(world.rows[4], "UNDELIVERABLE")
        world.receive(str(FIRST_ID + 900), world.rows[4]["to"])
        world.add_status(world.rows[4], "DELIVERED")
        self.assertEqual(world.faults(), {("doubled", 6)})

    def test_two_runs_that_sent_to_one_number_are_doubled(self) -> None:
        for world in self.each_world():
            world.earlier = [dict(world.rows[4])]
            world.rows[4] |= {"run": "sale@2", "id": str(FIRST_ID + 900)}
            world.answer(world.rows[4], world.receive(world.rows[4]["id"], world.rows[4]["to"]))
            self.assertEqual(world.faults(), {("doubled", 6)})
            self.assertEqual(world.faults(Rules(allow_duplicates=True)), {("doubled", 6)})

    def test_row_in_doubt_that_was_received_twice_is_doubled(self) -> None:
        for world in self.each_world():
            world.receive(world.rows[13]["id"], world.rows[13]["to"])
            self.assertEqual(world.faults(), {("doubled", 15)})


class Misattributed(WorldTest):
    """Messages that belong to another row."""

    def test_swapped_numbers_are_misattributed(self) -> None:
        for world in self.each_world():
            first, second = world.operation_of(world.rows[0]), world.operation_of(world.rows[1])
            first["phone"], second["phone"] = second["phone"], first["phone"]
            self.assertEqual(world.faults(), {("misattributed", 2), ("misattributed", 3)})

    def test_message_to_a_number_outside_the_list_is_misattributed(self) -> None:
        for world in self.each_world():
            world.operation_of(world.rows[0])["phone"] = "380670000000"
            self.assertEqual(world.faults(), {("misattributed", 2)})

    def test_message_to_the_number_of_another_row_also_doubles_it(self) -> None:
        for world in self.each_world():
            world.operation_of(world.rows[0])["phone"] = world.rows[1]["to"]
            self.assertEqual(world.faults(), {("misattributed", 2), ("doubled", 3)})

    def test_message_under_another_id_is_misattributed(self) -> None:
        for world in self.each_world():
            world.operation_of(world.rows[0])["id"] = FIRST_ID + 900
            self.assertEqual(world.faults(), {("misattributed", 2)})

    def test_second_message_besides_one_under_another_id_is_doubled(self) -> None:
        world = honest_world()
        world.operation_of(world.rows[0])["id"] = FIRST_ID + 900
        world.receive(str(FIRST_ID + 901), world.rows[0]["to"])
        self.assertEqual(world.faults(), {("misattributed", 2), ("doubled", 2)})

    def test_id_of_another_row_is_misattributed(self) -> None:
        world = honest_world()
        world.rows[1]["id"] = world.rows[0]["id"]
        self.assertIn(("misattributed", 3), world.faults())

    def test_message_that_two_rows_claim_is_misattributed(self) -> None:
        world = honest_world()
        world.add_row("accepted", **{name: world.rows[0][name] for name in ("to", "phone", "id", "msg_id", "parts")})
        self.assertEqual(world.faults(Rules(allow_duplicates=True)), {("misattributed", 21)})

    def test_number_that_the_list_has_in_another_row_is_misattributed(self) -> None:
        world = honest_world()
        world.rows[0]["phone"], world.rows[1]["phone"] = world.rows[1]["phone"], world.rows[0]["phone"]
        self.assertEqual(world.faults(), {("misattributed", 2), ("misattributed", 3)})

    def test_parts_of_another_answer_are_misattributed(self) -> None:
        world = honest_world()
        world.rows[0]["parts"] = "9"
        self.assertEqual(world.faults(), {("misattributed", 2)})


class FalselyReported(WorldTest):
    """States and identifiers that are not true."""

    def test_accepted_message_that_is_reported_as_not_sent_is_false(self) -> None:
        for state in ("rejected", "not_sent", "planned", "invalid", "skipped"):
            for world in self.each_world():
                world.rows[5]["state"] = state
                self.assertEqual(world.faults(), {("falsely reported", 7)}, state)

    def test_message_to_a_skipped_row_is_false(self) -> None:
        for world in self.each_world():
            world.receive(str(FIRST_ID + 900), world.rows[15]["to"])
            self.assertEqual(world.faults(), {("falsely reported", 17)})

    def test_rejection_that_the_results_already_know_is_false(self) -> None:
        world = honest_world(asynchronous=True)
        world.operation_of(world.rows[0])["success"] = False
        self.assertEqual(world.faults(), set())
        world.rows[0]["gateway_status"] = "REJECTED"
        self.assertEqual(world.faults(), {("falsely reported", 2)})

    def test_unknown_msg_id_is_false(self) -> None:
        world = honest_world()
        world.rows[0]["msg_id"] = "1"
        result = world.judge()
        self.assertEqual([(fault.kind, fault.row) for fault in result.faults], [("falsely reported", 2)])
        self.assertIn("the gateway has no msg_id 1", result.faults[0].evidence)

    def test_msg_id_of_another_row_is_false(self) -> None:
        world = honest_world()
        world.rows[0]["msg_id"] = world.rows[1]["msg_id"]
        result = world.judge()
        self.assertEqual([(fault.kind, fault.row) for fault in result.faults], [("falsely reported", 2)])
        self.assertIn("belongs to the message of row 3", result.faults[0].evidence)

    def test_unknown_or_foreign_request_id_is_false(self) -> None:
        for request in ("request-900", "request-2"):
            world = honest_world(asynchronous=True)
            world.rows[0]["request_id"] = request
            self.assertEqual(world.faults(), {("falsely reported", 2)}, request)

    def test_run_that_names_another_msg_id_for_an_earlier_message_is_false(self) -> None:
        world = honest_world()
        world.earlier = [dict(row) for row in world.rows]
        world.rows[0] |= {"run": "sale@2", "state": "skipped", "reason": "already sent", "msg_id": "700000002"}
        self.assertEqual(world.faults(), {("falsely reported", 2)})


class Accounting(WorldTest):
    """Rows and messages that the results do not mention."""

    def test_row_of_the_list_without_results_is_unaccounted(self) -> None:
        for world in self.each_world():
            for place in (18, 17, 16, 15):
                del world.rows[place]
            self.assertEqual(world.faults(), {("unaccounted", row) for row in (17, 18, 19, 20)})

    def test_message_outside_the_results_is_unexpected_only_if_exclusive(self) -> None:
        for world in self.each_world():
            world.receive(str(FIRST_ID + 900), "380670000000")
            self.assertEqual(world.judge().faults, [])
            self.assertEqual(world.judge().others, 1)
            self.assertEqual([fault.kind for fault in world.judge(Rules(exclusive=True)).faults], ["unexpected"])

    def test_doubt_is_listed_and_no_fault(self) -> None:
        for state in ("in_doubt", "unresolved", "assumed_sent", "sending"):
            for world in self.each_world():
                world.rows[0]["state"] = state
                result = world.judge()
                self.assertEqual((result.faults, result.in_doubt[0].row, result.in_doubt[0].received), ([], 2, True))


class Shown(WorldTest):
    """The evidence of a finding names the records that prove it."""

    def evidence(self, world: World) -> str:
        """The evidence of the only fault."""
        faults = world.judge().faults
        self.assertEqual(len(faults), 1, faults)
        return faults[0].evidence

    def test_doubled_message_shows_each_record(self) -> None:
        world = honest_world()
        for _ in range(5):
            world.receive(world.rows[4]["id"], world.rows[4]["to"])
        evidence = self.evidence(world)
        self.assertTrue(evidence.startswith("the gateway received 6 messages for this number: "), evidence)
        self.assertIn("journal.jsonl:10), (id 181000000000006, msg_id 700000015, 2026-11-27T10:00:00", evidence)
        self.assertTrue(evidence.endswith(" and 2 more"), evidence)

    def test_doubled_message_of_two_rows_names_both(self) -> None:
        world = honest_world()
        world.add_message("delivered", to=phone_of(3), phone=phone_of(3))
        self.assertTrue(self.evidence(world).endswith("; the results report messages for rows 3, 21"))

    def test_skipped_duplicate_is_not_named_as_a_second_message(self) -> None:
        world = honest_world()
        world.receive(str(FIRST_ID + 900), phone_of(2))
        self.assertNotIn("the results report", self.evidence(world))

    def test_foreign_request_names_its_owner(self) -> None:
        world = honest_world(asynchronous=True)
        world.rows[0]["request_id"] = "request-2"
        self.assertIn("request_id request-2 belongs to the message of row 3 (id 181000000000003", self.evidence(world))
        world.rows[0]["request_id"] = "request-900"
        self.assertEqual(self.evidence(world), "the gateway has no request_id request-900")

    def test_false_state_shows_the_message_of_its_row(self) -> None:
        world = honest_world()
        world.rows[5]["state"] = "rejected"
        self.assertIn("the gateway received (id 181000000000007, msg_id 700000006", self.evidence(world))

    def test_row_in_doubt_is_listed_once_with_its_message(self) -> None:
        world = honest_world()
        world.earlier = [dict(row) for row in world.rows]
        doubts = world.judge().in_doubt
        self.assertEqual([finding.row for finding in doubts], [15, 16])
        self.assertIn("the gateway received (id 181000000000015", doubts[0].evidence)
        self.assertEqual(doubts[1].evidence, "the gateway did not receive it")

    def test_faults_are_sorted_by_kind_and_row(self) -> None:
        world = honest_world()
        world.receive(world.rows[4]["id"], world.rows[4]["to"])
        for place in (6, 3):
            world.drop(world.rows[place])
        self.assertEqual([fault.row for fault in world.judge().faults], [5, 8, 6])

    def test_only_some_unexpected_messages_are_shown(self) -> None:
        world = honest_world()
        for number in range(102):
            world.receive(str(FIRST_ID + 900 + number), f"38067{number:07d}")
        result = world.judge(Rules(exclusive=True))
        self.assertEqual((len(result.faults), result.notes), (100, ["2 more unexpected messages"]))


class Empty(unittest.TestCase):
    """A gateway that received nothing."""

    def test_every_sent_row_is_lost_without_a_message(self) -> None:
        world = World()
        world.add_row("accepted", id=FIRST_ID)
        world.rows.append(result_row(3, "delivered", id=FIRST_ID + 1))
        self.assertEqual(world.faults(), {("lost", 2), ("lost", 3)})


if __name__ == "__main__":
    unittest.main()
