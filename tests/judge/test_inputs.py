"""Files in every form, and what the judge says about files that it cannot use."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

from inputs import BadInput, Numbering, detect_delimiter, mask_phone, open_table, phone_digits
from judge import run
from worlds import COLUMNS, honest_world, phone_of, write_csv


class Phones(unittest.TestCase):
    """Normalization of numbers."""

    def test_number_keeps_its_digits_only(self) -> None:
        for cell in ("380501234567", "+380 (50) 123-45-67", "00380501234567", '="380501234567"', "'380501234567",
                     "380501234567.0", "tel:+380501234567", "3.80501234567E+11", "３８０501234567"):
            self.assertEqual(phone_digits(cell), "380501234567", cell)
        self.assertEqual(phone_digits("050 123 45 67"), "0501234567")
        self.assertEqual(phone_digits("none"), "")

    def test_masked_number_cannot_be_dialled(self) -> None:
        self.assertEqual(mask_phone("380501234567"), "380*******67")
        self.assertEqual(mask_phone("12345"), "*****")
        self.assertEqual(mask_phone(""), "")

    def test_identifier_gets_a_number_of_its_own(self) -> None:
        numbering = Numbering()
        for text in ("7", "007", "m-7", "", "9" * 30, "m-8"):
            self.assertEqual(numbering.text(numbering.number(text)), text)
        self.assertEqual(len({numbering.number(text) for text in ("7", "007", "m-7", "", "9" * 30)}), 5)


class Command(unittest.TestCase):
    """The judge as a command, on files in a folder."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.world = honest_world()
        self.world.write(self.folder)

    def path(self, name: str) -> str:
        """The path of a file in the folder."""
        return str(self.folder / name)

    def judge(self, *arguments: str) -> tuple[int, str]:
        """Runs the judge, and returns its exit code and output."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = run([self.path("results.csv"), *arguments])
        return code, output.getvalue()

    def judge_journal(self, *arguments: str) -> tuple[int, str]:
        """Runs the judge on the journal."""
        return self.judge("--journal", self.path("journal.jsonl"), *arguments)

    def refusal(self, *arguments: str) -> str:
        """The error of a run that is refused."""
        with self.assertRaises(BadInput) as caught, contextlib.redirect_stdout(io.StringIO()):
            run([self.path("results.csv"), *arguments])
        return str(caught.exception).replace(f"{self.folder}/", "")

    def write_export(self, rows: list[list[str]], **form: str) -> str:
        """Writes a delivery export and returns its path."""
        write_csv(self.folder / "export.csv", rows, **form)
        return self.path("export.csv")

    def export_rows(self) -> list[list[str]]:
        """A delivery export of the honest campaign."""
        operations = [operation for envelope in self.world.envelopes for operation in envelope]
        received = [operation for operation in operations if operation["success"]]
        return [["Телефон", "Час", "id", "msg_id", "text"]] + [
            [f"+{operation['phone']}", "27.11.2026 10:00", str(operation["id"]), str(operation["msg_id"]),
             f"Your CODE-{int(operation['phone'][5:])}"] for operation in received]


class Output(Command):
    """The summary, the JSON document and the exit codes."""

    def test_honest_campaign_exits_with_0(self) -> None:
        code, output = self.judge_journal("--list", self.path("list.csv"))
        self.assertEqual(code, 0)
        self.assertTrue(output.startswith("19 rows of results · 19 rows in the list · 13 messages received"), output)
        self.assertTrue(output.endswith("no fault found\n"))
        self.assertNotIn(phone_of(2), output)

    def test_fault_exits_with_1_and_masks_numbers(self) -> None:
        self.world.drop(self.world.rows[0])
        self.world.receive(self.world.rows[4]["id"], self.world.rows[4]["to"])
        self.world.write(self.folder)
        code, output = self.judge_journal("--json", self.path("out.json"))
        document = (self.folder / "out.json").read_text(encoding="utf-8")
        self.assertEqual(code, 1)
        self.assertTrue(output.endswith("2 faults found\n"))
        self.assertIn("results.csv row 2 380*******02: ", output)
        self.assertNotIn(phone_of(6), output + document)
        self.assertEqual((self.folder / "out.json").stat().st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(document)["counts"]["doubled"], 1)
        self.assertIn(phone_of(6), self.judge_journal("--show-numbers")[1])

    def test_examples_are_limited(self) -> None:
        for row in self.world.rows[:5]:
            self.world.drop(row)
        self.world.write(self.folder)
        output = self.judge_journal("--examples", "2")[1]
        self.assertEqual(output.count("the gateway has no such message"), 2)
        self.assertIn("… and 3 more", output)

    def test_many_doubled_numbers_lead_to_a_hint(self) -> None:
        for row in self.world.rows[:12]:
            self.world.receive(f"9{row['id']}", row["to"])
        self.world.write(self.folder)
        self.assertIn("note: many numbers are doubled: if this is another edition", self.judge_journal()[1])

    def test_period_limits_the_messages(self) -> None:
        self.assertEqual(self.judge_journal("--from", "2026-11-27T10:00", "--until", "2026-11-27T10:01")[0], 0)
        for period in (("--from", "2026-11-27T10:01"), ("--until", "2026-11-27T12:00+02:00")):
            code, output = self.judge_journal(*period)
            self.assertEqual(code, 1)
            self.assertIn("0 messages received", output)


class Exports(Command):
    """Delivery exports of a provider."""

    def test_export_is_read_in_any_form(self) -> None:
        for delimiter in ",;\t|":
            for encoding in ("utf-8", "utf-8-sig", "windows-1251", "utf-16"):
                export = self.write_export(self.export_rows(), delimiter=delimiter, encoding=encoding)
                self.assertEqual(self.judge("--export", export)[0], 0, (delimiter, encoding))

    def test_export_without_ids_is_counted_by_number(self) -> None:
        rows = self.export_rows()
        for changed, kind, row in ((rows + [rows[5]], "doubled", 6), (rows[:5] + rows[6:], "lost", 6),
                                   (rows + [[phone_of(17), *rows[1][1:]]], "falsely reported", 17)):
            code, output = self.judge("--export", self.write_export(changed))
            self.assertEqual(code, 1)
            self.assertIn(f"{kind}:\n  results.csv row {row} ", output)
            self.assertTrue(output.endswith("1 fault found\n"))

    def test_export_with_ids_finds_swapped_numbers(self) -> None:
        rows = self.export_rows()
        rows[1][0], rows[2][0] = rows[2][0], rows[1][0]
        for columns in (["--export-id", "ID"], ["--export-msg-id", "msg_id"]):
            code, output = self.judge("--export", self.write_export(rows), *columns)
            self.assertTrue(output.endswith("2 faults found\n"), output)
            self.assertIn("misattributed:", output)

    def test_parts_of_a_message_are_one_message(self) -> None:
        rows = self.export_rows()
        code, output = self.judge("--export", self.write_export(rows + rows[1:3]), "--export-msg-id", "msg_id")
        self.assertEqual(code, 0)
        self.assertIn("note: 2 rows of the export repeat a gateway identifier", output)

    def test_text_of_another_row_is_misattributed(self) -> None:
        options = ("--export-id", "id", "--export-text", "text", "--contains", "code")
        rows = self.export_rows()
        self.assertEqual(self.judge("--export", self.write_export(rows), *options)[0], 0)
        rows[1][4], rows[2][4] = rows[2][4], rows[1][4]
        code, output = self.judge("--export", self.write_export(rows), *options)
        self.assertTrue(output.endswith("2 faults found\n"), output)
        self.assertIn("does not contain the row's value", output)

    def test_failed_row_of_an_export_is_not_counted(self) -> None:
        rows = [[*cells, "DELIVERED"] for cells in self.export_rows()]
        rows[0][-1] = "Status"
        rows.insert(3, [*rows[5][:2], "9", "9", "", "Undeliverable"])
        export = self.write_export(rows)
        self.assertEqual(self.judge("--export", export)[0], 1)
        self.assertEqual(self.judge("--export", export, "--export-status", "status")[0], 0)

    def test_export_in_any_order_counts_the_attempt_that_did_not_fail(self) -> None:
        rows = [[*cells, "DELIVERED"] for cells in self.export_rows()]
        rows[0][-1] = "Status"
        failed = [*rows[5][:2], "9", "9", "", "UNDELIVERABLE"]
        for changed, code in ((rows[:1] + [failed] + rows[1:], 0), (rows + [failed], 0),
                              (rows[:5] + [failed, failed] + rows[6:], 0), (rows + [rows[5], failed], 1)):
            self.assertEqual(self.judge("--export", self.write_export(changed), "--export-status", "status")[0], code)

    def test_words_of_the_provider_mean_failed_or_rejected(self) -> None:
        rows = [[*cells, "Доставлено"] for cells in self.export_rows()]
        rows[0][-1] = "Статус"
        rows.append([*rows[5][:2], "9", "9", "", "Не доставлено"])
        rows.append([phone_of(14), *rows[5][1:2], "8", "8", "", "Відхилено"])
        options = ("--export", self.write_export(rows), "--export-status", "Статус")
        self.assertTrue(self.judge(*options)[1].endswith("2 faults found\n"))
        code, output = self.judge(*options, "--failed", "не доставлено", "--rejected", "відхилено")
        self.assertEqual(code, 0)
        self.assertIn("14 messages received by the gateway, 1 rejected", output)

    def test_message_rejected_at_intake_may_lack_in_an_export(self) -> None:
        rows = self.export_rows()
        del rows[10]
        self.assertIn("lost:\n  results.csv row 11 ", self.judge("--export", self.write_export(rows))[1])
        self.world.rows[9]["gateway_status"] = "REJECTED"
        self.world.write(self.folder)
        self.assertEqual(self.judge("--export", self.write_export(rows))[0], 0)

    def test_message_of_a_row_in_doubt_is_recognized_by_its_number(self) -> None:
        output = self.judge("--export", self.write_export(self.export_rows()))[1]
        self.assertIn("1 received, 1 not received", output)
        self.assertRegex(output, r"row 15 .*: the gateway received \(export.csv:14\)")
        self.assertRegex(output, r"row 16 .*: the gateway did not receive it")

    def test_message_without_an_id_belongs_to_the_row_with_its_number(self) -> None:
        for columns in (["--export-id", "id"], ["--export-msg-id", "msg_id"]):
            rows = self.export_rows()
            rows[1][2] = rows[1][3] = ""
            self.assertEqual(self.judge("--export", self.write_export(rows), *columns)[0], 0)
            rows.append(list(rows[1]))
            output = self.judge("--export", self.write_export(rows), *columns)[1]
            self.assertIn("doubled:\n  results.csv row 2 ", output)

    def test_other_campaigns_of_the_account_are_ignored_by_id_or_time(self) -> None:
        rows = self.export_rows()
        export = self.write_export(rows + [[rows[1][0], "26.11.2026 10:00", "5", "5", "another campaign"]])
        self.assertEqual(self.judge("--export", export)[0], 1)
        self.assertEqual(self.judge("--export", export, "--export-id", "id", "--only-known-ids")[0], 0)
        self.assertEqual(self.judge("--export", export, "--export-time", "Час", "--from", "2026-11-27")[0], 0)


class Forms(Command):
    """Forms of results files and lists."""

    def test_results_for_excel_are_read(self) -> None:
        rows = [list(COLUMNS)]
        for row in self.world.rows:
            rows.append([f'="{cell}"' if len(cell) > 8 and cell.isdecimal() else cell for cell in row.values()])
        for delimiter in ",;\t":
            write_csv(self.folder / "results.csv", rows, delimiter, "utf-8-sig")
            self.assertEqual(self.judge_journal("--list", self.path("list.csv"))[0], 0)

    def test_phone_column_of_the_list_is_detected(self) -> None:
        rows = [["Code", "Viber"], *[[code, phone] for phone, code in self.world.list_rows]]
        for text in ("", "sep=;\n"):
            write_csv(self.folder / "list.csv", rows, ";", "windows-1251")
            content = (self.folder / "list.csv").read_bytes()
            (self.folder / "list.csv").write_bytes(text.encode() + content)
            self.assertEqual(self.judge_journal("--list", self.path("list.csv"))[0], 0)

    def test_journal_in_parts_is_one_journal(self) -> None:
        lines = self.world.journal_text().splitlines(keepends=True)
        (self.folder / "1.jsonl").write_text("".join(lines[:6]), encoding="utf-8")
        (self.folder / "2.jsonl").write_text("".join(lines[6:]), encoding="utf-8")
        self.assertEqual(self.judge("--journal", self.path("1.jsonl"), "--journal", self.path("2.jsonl"))[0], 0)

    def test_incomplete_last_line_of_a_journal_is_noted(self) -> None:
        with (self.folder / "journal.jsonl").open("a", encoding="utf-8") as journal:
            journal.write('{"event":"oper')
        code, output = self.judge_journal()
        self.assertEqual(code, 0)
        self.assertIn("the last line is incomplete and was not used", output)

    @unittest.skipUnless(find_spec("openpyxl"), "openpyxl is not installed")
    def test_workbook_is_read(self) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        for row in [["phone", "code"], *self.world.list_rows]:
            book.active.append([int(row[0]) if row[0].isdecimal() else row[0], row[1]])
        book.save(self.folder / "list.xlsx")
        self.assertEqual(self.judge_journal("--list", self.path("list.xlsx"))[0], 0)


class Refused(Command):
    """Inputs that the judge cannot use: the message names the file, the line and the remedy."""

    def test_missing_source_or_file_is_refused(self) -> None:
        self.assertIn("help: pass either --journal or --export", self.refusal())
        both = ("--journal", self.path("journal.jsonl"), "--export", self.path("journal.jsonl"))
        self.assertIn("help: pass either --journal or --export", self.refusal(*both))
        message = self.refusal("--journal", self.path("missing.jsonl"))
        self.assertIn("error: missing.jsonl: there is no such file", message)

    def test_foreign_results_file_is_refused(self) -> None:
        (self.folder / "results.csv").write_text("phone,name\n1,2\n", encoding="utf-8")
        message = self.refusal("--journal", self.path("journal.jsonl"))
        self.assertIn("results.csv:1: this is not a results file: it has no column `row`", message)
        self.assertIn("help: pass a results file as `campaign results` writes it", message)

    def test_damaged_row_of_results_is_refused(self) -> None:
        for name, value, problem in (("state", "sent", "the state `sent` is unknown"),
                                     ("row", "two", "the cell in `row` is not a row number"),
                                     ("id", "1.81E+14", "a spreadsheet has shortened the number in `id`"),
                                     ("to", "3.80501E+11", "a spreadsheet has shortened the number in `to`")):
            world = honest_world()
            world.rows[3][name] = value
            world.write(self.folder)
            self.assertIn(f"error: results.csv:5: {problem}", self.refusal("--journal", self.path("journal.jsonl")))

    def test_row_with_missing_cells_is_refused(self) -> None:
        with (self.folder / "results.csv").open("a", encoding="utf-8") as results:
            results.write("9,9\n")
        self.assertIn("results.csv:21: the row has 2 cells, the header has 14",
                      self.refusal("--journal", self.path("journal.jsonl")))

    def test_open_quote_and_empty_file_are_refused(self) -> None:
        (self.folder / "results.csv").write_text('row,id,"to\n', encoding="utf-8")
        self.assertIn("this is not valid CSV", self.refusal("--journal", self.path("journal.jsonl")))
        (self.folder / "results.csv").write_text("", encoding="utf-8")
        self.assertIn("results.csv: the file is empty", self.refusal("--journal", self.path("journal.jsonl")))
        (self.folder / "results.csv").write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
        self.assertIn("results.csv: the results have no rows", self.refusal("--journal", self.path("journal.jsonl")))

    def test_damaged_journal_is_refused(self) -> None:
        for line, problem in (("hello\n", "this is not a journal of `campaign sandbox`"),
                              ("[]\n", "it is not an event"),
                              ('{"event":"operation","phone":"1"}\n', "the event has no `at`"),
                              ('{"event":"envelope","at":"","envelope":9}\n', "request 9 follows request 14")):
            (self.folder / "journal.jsonl").write_text(self.world.journal_text() + line, encoding="utf-8")
            message = self.refusal("--journal", self.path("journal.jsonl"))
            self.assertIn(problem, message)
            self.assertIn("error: journal.jsonl:29: ", message)

    def test_journal_without_its_beginning_is_refused(self) -> None:
        lines = self.world.journal_text().splitlines(keepends=True)
        (self.folder / "journal.jsonl").write_text("".join(lines[2:]), encoding="utf-8")
        message = self.refusal("--journal", self.path("journal.jsonl"))
        self.assertIn("journal.jsonl:1: request 2 follows request 0: the journal is incomplete", message)

    def test_unusable_export_is_refused(self) -> None:
        rows = self.export_rows()
        for changed, options, problem in (
                (rows, ["--export-phone", "Phone"], "export.csv:1: there is no column `Phone` (--export-phone)"),
                (rows, ["--from", "2026-11-27"], "--from and --until need the time of each message"),
                (rows, ["--export-time", "id", "--from", "2026-11-27"], "export.csv:2: cannot read the time"),
                (rows, ["--from", "soon", "--export-time", "Час"], "cannot read the time `soon` of --from"),
                (rows, ["--failed", "no"], "--failed and --rejected need the status of each message"),
                (rows, ["--export-delimiter", "::"], "export.csv: the delimiter `::` is not one character"),
                (rows, ["--examples", "-1"], "--examples cannot be negative"),
                (rows, ["--only-known-ids"], "--only-known-ids needs identifiers"),
                (rows, ["--contains", "code"], "--contains needs the text of each message"),
                (rows, ["--export-encoding", "klingon"], "there is no encoding `klingon`"),
                (rows + [["380"]], ["--export-id", "id"], "export.csv:15: the row has only 1 cells"),
                (rows + [["", "", "", "", ""]], [], "export.csv:15: the row has no phone number"),
                (rows + [["3.80501E+11", "", "", "", ""]], [], "export.csv:15: a spreadsheet has shortened"),
                ([["a", "b"], ["1", "2"]], [], "export.csv:1: no column looks like phone numbers")):
            self.assertIn(problem, self.refusal("--export", self.write_export(changed), *options))

    def test_list_without_a_phone_column_is_refused(self) -> None:
        write_csv(self.folder / "list.csv", [["a", "b"], [phone_of(2), phone_of(3)]])
        message = self.refusal("--journal", self.path("journal.jsonl"), "--list", self.path("list.csv"))
        self.assertIn("list.csv:1: several columns look like phone numbers", message)
        self.assertIn("help: name the column with --list-phone; the columns are: a, b", message)

    def test_same_results_file_twice_is_refused(self) -> None:
        message = self.refusal(self.path("results.csv"), "--journal", self.path("journal.jsonl"))
        self.assertIn("the file is given twice", message)

    def test_unwritable_json_is_refused(self) -> None:
        message = self.refusal("--journal", self.path("journal.jsonl"), "--json", self.path("no/such/folder"))
        self.assertIn("cannot write the file", message)


class Detection(unittest.TestCase):
    """Details of the detection."""

    def test_delimiter_in_quotes_is_ignored(self) -> None:
        self.assertEqual(detect_delimiter('"a,b,c";d'), ";")
        self.assertEqual(detect_delimiter("one"), ",")

    def test_wrong_encoding_is_refused(self) -> None:
        from inputs import TableForm

        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "a.csv"
            file.write_bytes("телефон\n1\n".encode("windows-1251"))
            with self.assertRaisesRegex(BadInput, "the text is not utf-8"):
                open_table(file, TableForm(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
