"""Tables, phone numbers and identifiers, as the judge reads them from files.

Nothing here decides anything. A file that cannot be read is a `BadInput`, never a guess.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path

DELIMITERS = ",;\t|"
FALLBACK_ENCODING = "windows-1251"
LARGEST_CELL = 1 << 21
SAMPLE_ROWS = 100
PHONE_HEADERS = frozenset({"phone", "phone number", "mobile", "msisdn", "recipient", "телефон", "мобільний",
                           "номер телефону", "номер"})

csv.field_size_limit(LARGEST_CELL)


class BadInput(Exception):
    """A file or an option that the judge cannot use: where, what is wrong, and what to do about it."""

    def __init__(self, problem: str, *, file: Path | str = "", line: int = 0, remedy: str = "") -> None:
        place = f"{file}:{line}: " if line else f"{file}: " if file else ""
        super().__init__(f"error: {place}{problem}" + (f"\nhelp: {remedy}" if remedy else ""))


@dataclass(frozen=True)
class TableForm:
    """How to read a table. What is empty is detected."""

    encoding: str = ""
    delimiter: str = ""


@dataclass
class Table:
    """A table with a header. `rows` yields the number of the line (of the row in a workbook) and the cells."""

    file: Path
    header: list[str]
    rows: Iterator[tuple[int, list[str]]]

    def find_column(self, name: str) -> int | None:
        """The place of a column; names are compared without case and surrounding spaces."""
        wanted = name.strip().casefold()
        names = [header.strip().casefold() for header in self.header]
        return names.index(wanted) if wanted in names else None

    def require_column(self, name: str, option: str = "") -> int:
        """The place of a column that must exist."""
        place = self.find_column(name)
        if place is None:
            remedy = f"the columns are: {', '.join(self.header)}"
            raise BadInput(f"there is no column `{name}`" + (f" ({option})" if option else ""), file=self.file,
                           line=1, remedy=remedy)
        return place


def open_table(file: Path, form: TableForm = TableForm()) -> Table:
    """Opens a CSV file, or a workbook if openpyxl is installed."""
    require_file(file)
    lines = workbook_lines(file) if file.suffix.lower() == ".xlsx" else csv_lines(file, form)
    for _, cells in lines:
        header = [cell.strip() for cell in cells]
        return Table(file, header, lines)
    raise BadInput("the file is empty", file=file, remedy="pass a table with a header row")


def require_file(file: Path) -> None:
    """Refuses a path that is not a readable file."""
    if not file.is_file():
        raise BadInput("there is no such file", file=file, remedy="check the path")
    try:
        file.open("rb").close()
    except OSError as error:
        raise BadInput(f"cannot read the file: {error.strerror}", file=file) from error


def csv_lines(file: Path, form: TableForm) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file, without empty ones. The first is the header."""
    encoding = form.encoding or detect_encoding(file)
    first, has_separator_line = first_line(file, encoding)
    detected = first.strip()[4] if has_separator_line else detect_delimiter(first)
    delimiter = "\t" if form.delimiter == "tab" else form.delimiter or detected
    if len(delimiter) != 1:
        raise BadInput(f"the delimiter `{delimiter}` is not one character", file=file)
    try:
        with file.open(encoding=encoding, newline="") as text:
            reader = csv.reader(text, delimiter=delimiter, strict=True)
            for cells in reader:
                if cells and not (has_separator_line and reader.line_num == 1):
                    yield reader.line_num, cells
    except csv.Error as error:
        raise BadInput(f"this is not valid CSV: {error}", file=file, line=reader.line_num,
                       remedy="look for a quote that is not closed") from error
    except UnicodeError as error:
        raise BadInput(f"the text is not {encoding}", file=file, line=reader.line_num,
                       remedy="pass the encoding of the file") from error


def first_line(file: Path, encoding: str) -> tuple[str, bool]:
    """The first line of a file, and whether it is Excel's `sep=;`."""
    try:
        with file.open(encoding=encoding, newline="") as text:
            line = text.readline(LARGEST_CELL)
    except LookupError as error:
        raise BadInput(f"there is no encoding `{encoding}`", file=file) from error
    except UnicodeError as error:
        raise BadInput(f"the text is not {encoding}", file=file, line=1,
                       remedy="pass the encoding of the file") from error
    return line, line.lower().startswith("sep=") and len(line.strip()) == 5


def detect_encoding(file: Path) -> str:
    """UTF-8 or UTF-16 if the bytes prove it, otherwise windows-1251."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with file.open("rb") as data:
        start = data.read(4)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        data.seek(0)
        try:
            while chunk := data.read(1 << 20):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return FALLBACK_ENCODING
    return "utf-8-sig"


def detect_delimiter(header: str) -> str:
    """The delimiter that occurs most often in the header, outside quotes."""
    unquoted = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=unquoted.count)


def workbook_lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a workbook's first sheet, without empty ones."""
    try:
        import openpyxl
    except ImportError as error:
        raise BadInput("a workbook needs the Python package openpyxl", file=file,
                       remedy="save it as CSV, or run `python3 -m pip install openpyxl`") from error
    try:
        sheet = openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets[0]
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            texts = ["" if cell is None else str(cell) for cell in cells]
            if any(texts):
                yield number, texts
    except (OSError, KeyError, ValueError, IndexError) as error:
        raise BadInput(f"this is not a readable workbook: {error}", file=file, remedy="save it as CSV") from error


def clean_cell(cell: str) -> str:
    """A cell without the marks of spreadsheets: `="7"` and `'7` become `7`."""
    if cell.isalnum():
        return cell
    cell = cell.strip()
    if cell.startswith('="') and cell.endswith('"'):
        cell = cell[2:-1]
    return cell.removeprefix("'").strip()


def is_shortened(cell: str) -> bool:
    """Whether a spreadsheet has replaced digits by an exponent, as in `3.80501E+11`."""
    return re.fullmatch(r"\s*\d([.,]\d+)?[eE]\+?\d+\s*", cell) is not None


def phone_digits(cell: str) -> str:
    """The digits of a phone number, without a leading 00. This is the only normalization.

    It knows no countries: `0501234567` and `380501234567` are different numbers here.
    """
    if cell.isascii() and cell.isdigit():
        return cell.removeprefix("00")
    cell = clean_cell(cell)
    if is_shortened(cell):
        return str(int(Decimal(cell.replace(",", "."))))
    cell = re.sub(r"\.0$", "", cell)
    return "".join(str(int(sign)) for sign in cell if sign.isdecimal()).removeprefix("00")


def mask_phone(phone: str) -> str:
    """A phone number that cannot be dialled: the first three and the last two digits."""
    return phone[:3] + "*" * max(len(phone) - 5, 3) + phone[-2:] if len(phone) > 5 else "*" * len(phone)


def find_phone_columns(table: Table, names: list[str], option: str,
                       excluded: list[str] | None = None) -> tuple[list[int], list[tuple[int, list[str]]]]:
    """The phone columns of a table, and the rows that were read to find them.

    Without names it is the only column with a usual header, or else the only one that looks like phone numbers.
    """
    if names:
        return [table.require_column(name, option) for name in names], []
    usual = [place for place, header in enumerate(table.header) if header.casefold() in PHONE_HEADERS]
    if len(usual) == 1:
        return usual, []
    sample = list(islice(table.rows, SAMPLE_ROWS))
    rows, others = [cells for _, cells in sample], {table.find_column(name) for name in excluded or []}
    places = [place for place in range(len(table.header)) if place not in others and looks_like_phones(rows, place)]
    if len(places) != 1:
        found = "several columns look" if places else "no column looks"
        raise BadInput(f"{found} like phone numbers", file=table.file, line=1,
                       remedy=f"name the column with {option}; the columns are: {', '.join(table.header)}")
    return places, sample


def looks_like_phones(rows: list[list[str]], place: int) -> bool:
    """Whether most cells of a column have 9 to 15 digits and no letters."""
    cells = [cells[place] for cells in rows if place < len(cells) and cells[place].strip()]
    alike = [cell for cell in cells if 9 <= len(phone_digits(cell)) <= 15 and re.fullmatch(r"[\s\d+()'=\".-]+", cell)]
    return bool(cells) and len(alike) * 10 >= len(cells) * 8


class Numbering:
    """Numbers for texts, so that a million identifiers fit into an array.

    A text of digits is its own number. Any other text gets a number above all of these.
    """

    OTHER = 1 << 62

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []

    def number(self, text: str) -> int:
        """The number of a text; 0 is the number of the empty text."""
        if not text:
            return 0
        if text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 19:
            return int(text)
        if text not in self._numbers:
            self._numbers[text] = self.OTHER + len(self._texts)
            self._texts.append(text)
        return self._numbers[text]

    def text(self, number: int) -> str:
        """The text with this number."""
        return self._texts[number - self.OTHER] if number >= self.OTHER else str(number) if number else ""
