#!/usr/bin/env python3
"""Occurrences of cron lines over a year, calculated independently of the product.

usage: judge.py YEAR ZONE LINE...    one line of output per occurrence: LINE, tab, moment in UTC, tab, local time meant
       judge.py --golden             the contents of golden.txt, for the years, zones and lines below
       judge.py --can                the available calculation of local times: croniter or minutes

Local times come from croniter, or from trying every minute if croniter is not installed. To convert them to moments, the
script walks through the year minute by minute and reads the local clock (zoneinfo). An occurrence is due in the minute in
which the clock first shows its time or a later one. A time that the clock repeats is not due again. If several occurrences
become due in the same minute, only one counts: the one that the clock shows, or else the first.
"""
import sys
from hashlib import sha256
from datetime import datetime, timedelta, timezone

try:
    from zoneinfo import ZoneInfo

    ZoneInfo("Europe/Kyiv")
except Exception as error:
    print(f"no zoneinfo with data: {error}", file=sys.stderr)
    sys.exit(3)
try:
    from croniter import croniter
except ImportError:
    croniter = None

# Samoa no longer has daylight saving time. In 2011 it did, and it also skipped a day.
YEARS = [(2026, "Europe/Kyiv"), (2026, "Europe/Berlin"), (2026, "America/New_York"), (2026, "Australia/Lord_Howe"),
         (2026, "Pacific/Apia"), (2011, "Pacific/Apia")]
LINES = ["30 3 * * *", "15 2 * * *", "30 9 * * *", "0 10 * * MON", "0 18 * * MON-FRI", "0 10 1 * *", "0 12 15 * MON",
         "*/15 0-4 * * SAT,SUN", "30 * * 3,4,9,10,11,12 *"]

MINUTE = timedelta(minutes=1)
NAMES = {name: number for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}


def field(text, least, most):
    """Returns the numbers in a field of a cron line."""
    numbers = set()
    for part in text.split(","):
        part, _, step = part.partition("/")
        if part == "*":
            first, last = least, most
        else:
            first, _, last = part.partition("-")
            first = NAMES.get(first.upper()) if first.upper() in NAMES else int(first)
            last = first if last == "" else NAMES.get(last.upper()) if last.upper() in NAMES else int(last)
        numbers.update(range(first, last + 1, int(step or 1)))
    return numbers


def by_minutes(line, first, end):
    """Yields the matching local times by trying each minute."""
    minute, hour, day, month, weekday = line.split()
    minutes, hours, months = field(minute, 0, 59), field(hour, 0, 23), field(month, 1, 12)
    days, weekdays = field(day, 1, 31), {number % 7 for number in field(weekday, 0, 7)}
    at = first
    while at < end:
        of_month, of_week = at.day in days, at.isoweekday() % 7 in weekdays
        # If both days are restricted, one match is enough.
        fits = of_month or of_week if day != "*" and weekday != "*" else of_month and of_week
        if at.minute in minutes and at.hour in hours and at.month in months and fits:
            yield at
        at += MINUTE


def by_croniter(line, first, end):
    """Yields the matching local times from croniter, without a time zone."""
    times = croniter(line, first - MINUTE)
    at = times.get_next(datetime)
    while at < end:
        yield at
        at = times.get_next(datetime)


def occurrences(lines, zone, year):
    """Returns, for each line, the moments of a year with their nominal local times."""
    start, end = datetime(year, 1, 1), datetime(year + 1, 1, 1)
    # A zone can be a day away from UTC, and can skip a day.
    span = timedelta(days=3)
    calculate = by_croniter if croniter else by_minutes
    local = {line: set(calculate(line, start - span, end + span)) for line in lines}
    found = {line: [] for line in lines}
    clock = ZoneInfo(zone)
    moment = (start - span).replace(tzinfo=timezone.utc)
    shown = moment.astimezone(clock).replace(tzinfo=None)
    while moment < (end + span).replace(tzinfo=timezone.utc):
        moment += MINUTE
        now = moment.astimezone(clock).replace(tzinfo=None)
        passed, minutes = shown, []
        while passed < now:
            passed += MINUTE
            minutes.append(passed)
        shown = max(shown, now)
        if moment.year != year:
            continue
        for line in lines:
            due = [minute for minute in minutes if minute in local[line]]
            if due:
                found[line].append((moment, now if now in due else due[0]))
    return found


def written(moment, meant):
    return f"{moment:%Y-%m-%dT%H:%MZ}\t{meant:%Y-%m-%d %H:%M}\n"


def golden():
    """Prints the count and hash of each year, and every occurrence near a clock change."""
    for year, zone in YEARS:
        clock = ZoneInfo(zone)
        near = timedelta(hours=30)
        for line, found in occurrences(LINES, zone, year).items():
            text = "".join(written(*one) for one in found)
            print(f"= {year}\t{zone}\t{line}\t{len(found)}\t{sha256(text.encode()).hexdigest()}")
            for moment, meant in found:
                offset = lambda at: at.astimezone(clock).utcoffset()
                if offset(moment - near) != offset(moment + near):
                    print(written(moment, meant), end="")


def main():
    match sys.argv[1:]:
        case ["--can"]:
            print("croniter" if croniter else "minutes")
        case ["--golden"]:
            golden()
        case [year, zone, *lines]:
            for line, found in occurrences(lines, zone, int(year)).items():
                for one in found:
                    print(f"{line}\t{written(*one)}", end="")


main()
