#!/usr/bin/env python3
"""Checks the results of a campaign against what the gateway received, independently of `campaign`.

Exit codes: 0 no fault found, 1 faults found, 2 the input cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path

from claims import read_claims
from evidence import REJECTED, Export, ExportColumns, Journal, Period, parse_time
from inputs import BadInput, TableForm
from printing import render_summary, write_json
from reception import Source
from verdicts import RecipientList, Rules, judge

OLDEST_PYTHON = (3, 11)


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.splitlines()[2],
                                     allow_abbrev=False)
    add = parser.add_argument
    add("results", nargs="+", type=Path, help="results files of one edition: CSV, or .xlsx with openpyxl")
    received = parser.add_argument_group("what the gateway received (one of the two)")
    received.add_argument("--journal", action="append", type=Path, default=[], metavar="FILE",
                          help="a journal of `campaign sandbox`; repeat it for several parts, in order")
    received.add_argument("--export", action="append", type=Path, default=[], metavar="FILE",
                          help="a delivery export of the provider: CSV, or .xlsx with openpyxl; can be repeated")
    columns = parser.add_argument_group("columns of the export")
    for name, what in (("phone", "phone number [default: detected]"), ("time", "time of sending"),
                       ("id", "your own message identifier"), ("msg-id", "identifier that the provider assigned"),
                       ("status", "delivery status"), ("text", "text of the message")):
        columns.add_argument(f"--export-{name}", default="", metavar="COLUMN", help=what)
    columns.add_argument("--failed", action="append", default=[], metavar="WORD",
                         help="a status that means `not delivered`, in the provider's words; can be repeated")
    columns.add_argument("--rejected", action="append", default=[], metavar="WORD",
                         help="a status that means `not accepted`, in the provider's words; can be repeated")
    columns.add_argument("--export-delimiter", default="", metavar="SIGN", help="[default: detected]")
    columns.add_argument("--export-encoding", default="", metavar="NAME", help="[default: detected]")
    columns.add_argument("--time-format", default="", metavar="FORM", help="such as %%d/%%m/%%Y %%H:%%M")
    recipients = parser.add_argument_group("the list")
    recipients.add_argument("--list", type=Path, metavar="FILE", help="the list of recipients")
    recipients.add_argument("--list-phone", action="append", default=[], metavar="COLUMN",
                            help="its phone column [default: detected]; can be repeated")
    recipients.add_argument("--list-delimiter", default="", metavar="SIGN", help="[default: detected]")
    recipients.add_argument("--list-encoding", default="", metavar="NAME", help="[default: detected]")
    rules = parser.add_argument_group("rules")
    rules.add_argument("--from", dest="start", default="", metavar="TIME", help="ignore earlier messages")
    rules.add_argument("--until", dest="end", default="", metavar="TIME", help="ignore messages from this time on")
    rules.add_argument("--duplicates", choices=("skip", "refuse", "allow"), default="skip",
                       help="the setting of the campaign: with `allow`, a number gets a message per row")
    rules.add_argument("--contains", default="", metavar="COLUMN",
                       help="the text of a message must contain this column of the results")
    rules.add_argument("--only-known-ids", action="store_true", help="ignore messages whose id is in no results file")
    rules.add_argument("--exclusive", action="store_true", help="messages to numbers outside the results are faults")
    output = parser.add_argument_group("output")
    output.add_argument("--examples", type=int, default=10, metavar="N", help="examples of each kind [default: 10]")
    output.add_argument("--show-numbers", action="store_true", help="show whole phone numbers")
    output.add_argument("--json", type=Path, metavar="FILE", help="write all findings to this file")
    return parser


def build_source(options: argparse.Namespace) -> Source:
    """The gateway's record that the options name."""
    if bool(options.journal) == bool(options.export):
        raise BadInput("name what the gateway received", remedy="pass either --journal or --export")
    start, end = parse_option_time(options.start, "--from"), parse_option_time(options.end, "--until")
    period = Period(start, end)
    if options.journal:
        if options.contains:
            raise BadInput("the journal of the sandbox has no texts", remedy="pass --contains only with --export")
        return Journal(options.journal, period)
    columns = ExportColumns(options.export_phone, options.export_time, options.export_id, options.export_msg_id,
                            options.export_status, options.export_text)
    if (start or end) and not columns.time:
        raise BadInput("--from and --until need the time of each message", remedy="pass --export-time COLUMN")
    if options.contains and not columns.text:
        raise BadInput("--contains needs the text of each message", remedy="pass --export-text COLUMN")
    if options.contains and not columns.id and not columns.msg_id:
        raise BadInput("--contains needs an identifier of each message",
                       remedy="pass --export-id COLUMN or --export-msg-id COLUMN")
    if options.only_known_ids and not columns.id and not columns.msg_id:
        raise BadInput("--only-known-ids needs identifiers",
                       remedy="pass --export-id COLUMN or --export-msg-id COLUMN")
    form = TableForm(options.export_encoding, options.export_delimiter)
    words = {word.upper(): "UNDELIVERABLE" for word in options.failed}
    words |= {word.upper(): REJECTED for word in options.rejected}
    if words and not columns.status:
        raise BadInput("--failed and --rejected need the status of each message", remedy="pass --export-status COLUMN")
    return Export(options.export, columns, form, options.time_format, period, words)


def parse_option_time(text: str, option: str) -> datetime | None:
    """The time of an option; `None` if it is not given."""
    time = parse_time(text) if text else None
    if text and time is None:
        raise BadInput(f"cannot read the time `{text}` of {option}", remedy="write it as 2026-11-27T10:00")
    return time


def run(arguments: list[str]) -> int:
    """Judges, prints the summary and returns the exit code."""
    options = build_parser().parse_args(arguments)
    if options.examples < 0:
        raise BadInput("--examples cannot be negative")
    source = build_source(options)
    recipients, list_columns = None, []
    if options.list is not None:
        form = TableForm(options.list_encoding, options.list_delimiter)
        recipients = RecipientList(options.list, options.list_phone, form)
        list_columns = recipients.column_names()
    claims = read_claims(options.results, list_columns, options.contains)
    rules = Rules(options.duplicates == "allow", options.only_known_ids, options.exclusive)
    result = judge(claims, source, rules, recipients)
    if options.json is not None:
        write_json(result, options.json, options.show_numbers)
    print(render_summary(result, options.examples, options.show_numbers))
    return 1 if result.faults else 0


def main() -> int:
    """Runs the judge as a program."""
    if sys.version_info < OLDEST_PYTHON:
        print("error: the judge needs Python 3.11 or newer", file=sys.stderr)
        return 2
    try:
        return run(sys.argv[1:])
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
