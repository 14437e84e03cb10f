"""Generates the corpus files that a text editor cannot show. Run it in this folder. The expectations below are written by hand.

Needs openpyxl and xlwt. Other files stay unchanged.
"""

import datetime
import gzip
import io
import os
import zipfile

import openpyxl
import xlwt

SOUND, SPOILT = "files", "malformed"
PEOPLE = [["0501234567", "Олена", "Київ"], ["0671234567", "Іван", "Львів"]]
HEADER = ["Телефон", "Ім'я", "Місто"]


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r").replace("\ufeff", "\\uFEFF").replace("\0", "\\0").replace("\u00a0", "\\u00A0") + '"'


def write(folder, name, data, lines):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
    with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def sound(name, data, about, header, rows, told=None, form=None, columns=None, warnings=()):
    """Writes a file and its expected content: the header, and rows by number."""
    lines = [f"about: {quoted(about)}"]
    for key, value in (form or {}).items():
        lines.append(f"{key}: {value if isinstance(value, int) else quoted(value)}")
    if columns:
        lines.append("columns: {" + ", ".join(f"{key}: {quoted(value)}" for key, value in columns.items()) + "}")
    # Semicolons are so common in spreadsheets that the program does not report them.
    if told and told != "delimiter semicolon":
        lines.append(f"told: {quoted(told)}")
    if warnings:
        lines.append("warnings: [" + ", ".join(quoted(words) for words in warnings) + "]")
    lines.append("header: [" + ", ".join(quoted(cell) for cell in header) + "]")
    lines.append("rows:")
    for number, cells in rows:
        lines.append(f"  {number}: [" + ", ".join(quoted(cell) for cell in cells) + "]")
    write(SOUND, name, data, lines)


def spoilt(name, data, about, rule, says, form=None, columns=None):
    """Writes a file, with the rule that rejects it and words of the finding."""
    lines = [f"about: {quoted(about)}"]
    for key, value in (form or {}).items():
        lines.append(f"{key}: {value if isinstance(value, int) else quoted(value)}")
    if columns:
        lines.append("columns: {" + ", ".join(f"{key}: {quoted(value)}" for key, value in columns.items()) + "}")
    lines.append(f"rule: {rule}")
    lines.append("says: [" + ", ".join(quoted(words) for words in says) + "]")
    write(SPOILT, name, data, lines)


def numbered(rows, first=2):
    return list(enumerate(rows, first))


def text_of(rows, delimiter=";", end="\r\n"):
    return end.join(delimiter.join(row) for row in rows) + end


def encodings():
    text = text_of([HEADER] + PEOPLE)
    semicolon = "delimiter semicolon"
    for name, codec, told in [
        ("utf-8", "utf-8", None),
        ("utf-8-with-mark", "utf-8-sig", None),
        ("windows-1251", "cp1251", "encoding Windows-1251"),
        ("koi8-u", "koi8_u", "encoding KOI8-U"),
        ("ibm866", "cp866", "encoding IBM866"),
        ("utf-16le-with-mark", "utf-16", "encoding UTF-16LE"),
        ("utf-16le", "utf-16-le", "encoding UTF-16LE"),
        ("utf-16be", "utf-16-be", "encoding UTF-16BE"),
    ]:
        people = PEOPLE
        body = text
        if name == "ibm866":
            # This code page has no letter і.
            people = [["0501234567", "Ольга", "Харьков"], ["0671234567", "Пётр", "Одесса"]]
            body = text_of([["Телефон", "Имя", "Город"]] + people)
        header = HEADER if people is PEOPLE else ["Телефон", "Имя", "Город"]
        told = ", ".join(part for part in (told, semicolon) if part)
        sound(f"{name}.csv", body.encode(codec), f"saved in {codec}", header, numbered(people), told, columns={"phone": "Телефон"})
    marked = ("\ufeff" + text).encode("utf-16-be")
    sound("utf-16be-with-mark.csv", marked, "UTF-16 with its bytes the other way round", HEADER, numbered(PEOPLE), "encoding UTF-16BE, " + semicolon, columns={"phone": "Телефон"})
    excel = "\ufeff" + text_of([HEADER] + PEOPLE, "\t")
    sound("unicode-text-of-excel.txt", excel.encode("utf-16-le"), "Excel's `Unicode Text`", HEADER, numbered(PEOPLE), "encoding UTF-16LE, delimiter tab", columns={"phone": "Телефон"})
    latin = [["+4915112345678", "Jürgen Müller", "Köln"], ["+4915187654321", "Günther Groß", "Nürnberg"]]
    for name, codec in [("windows-1252-german", "cp1252")]:
        sound(f"{name}.csv", text_of([["phone", "name", "city"]] + latin, ",").encode(codec), "a list from Germany", ["phone", "name", "city"], numbered(latin), "encoding Windows-1252")
    french = [["+33612345678", "Renée Lefèvre", "Orléans"], ["+33698765432", "François Côté", "Besançon"]]
    sound("windows-1252-french.csv", text_of([["phone", "name", "city"]] + french, ",").encode("cp1252"), "a list from France", ["phone", "name", "city"], numbered(french), "encoding Windows-1252")
    polish = [["+48501234567", "Małgorzata Wójcik", "Łódź"], ["+48601234567", "Grzegorz Brzęczyszczykiewicz", "Gdańsk"], ["+48602234567", "Świętosława Żółć", "Częstochowa"]]
    sound("windows-1250-told.csv", text_of([["phone", "name", "city"]] + polish, ",").encode("cp1250"), "a list from Poland, whose encoding is told", ["phone", "name", "city"], numbered(polish), "encoding Windows-1250", form={"encoding": "windows-1250"})
    greek = [["+306912345678", "Γιώργος Παπαδόπουλος", "Αθήνα"], ["+306987654321", "Μαρία Οικονόμου", "Θεσσαλονίκη"]]
    sound("iso-8859-7-told.csv", text_of([["phone", "name", "city"]] + greek, ",").encode("iso8859_7"), "a list from Greece, whose encoding is told", ["phone", "name", "city"], numbered(greek), "encoding ISO-8859-7", form={"encoding": "iso-8859-7"})
    turkish = [["+905321234567", "Çağrı Şahin", "İstanbul"], ["+905331234567", "Gülşen Yıldız", "İzmir"]]
    sound("windows-1254-told.csv", text_of([["phone", "name", "city"]] + turkish, ",").encode("cp1254"), "a list from Turkey, whose encoding is told", ["phone", "name", "city"], numbered(turkish), "encoding Windows-1254", form={"encoding": "windows-1254"})
    sound("mac-cyrillic-told.csv", text_of([["Телефон", "Имя"], ["0501234567", "Ольга"]]).encode("mac_cyrillic"), "saved on an old Mac, whose encoding is told", ["Телефон", "Имя"], [(2, ["0501234567", "Ольга"])], "encoding x-mac-cyrillic, " + semicolon, form={"encoding": "x-mac-cyrillic"}, columns={"phone": "Телефон"})
    japanese = [["+819012345678", "山田 太郎", "東京"], ["+819087654321", "鈴木 花子", "大阪"]]
    sound("shift-jis-told.csv", text_of([["phone", "name", "city"]] + japanese, ",").encode("shift_jis"), "a list from Japan, whose encoding is told", ["phone", "name", "city"], numbered(japanese), "encoding Shift_JIS", form={"encoding": "shift_jis"})
    late = [[f"38050{row:07}", f"Client {row}"] for row in range(3000)] + [["380671234567", "Іван Петренко"]]
    sound("windows-1251-far-behind.csv", text_of([["phone", "name"]] + late, ",").encode("cp1251"), "the first letter that is not Latin stands in the last row", ["phone", "name"], numbered(late)[:1] + numbered(late)[-1:], "encoding Windows-1251")
    space = [["050\u00a0123\u00a045\u00a067", "Olena"], ["067\u00a0123\u00a045\u00a067", "Ivan"]]
    sound("windows-1251-nbsp.csv", text_of([["phone", "name"]] + space, ",").encode("cp1251"), "nothing but no-break spaces is not Latin", ["phone", "name"], numbered(space), "encoding Windows-1252", form={"encoding": "windows-1252"})
    emoji = [["0501234567", "Олена 🌸", "Київ"]]
    sound("emoji.csv", text_of([HEADER] + emoji).encode("utf-8"), "characters beyond the basic plane", HEADER, numbered(emoji), semicolon, columns={"phone": "Телефон"})
    sound("emoji-utf-16.csv", ("\ufeff" + text_of([HEADER] + emoji)).encode("utf-16-le"), "pairs of surrogates", HEADER, numbered(emoji), "encoding UTF-16LE, " + semicolon, columns={"phone": "Телефон"})


def dialects():
    plain = [["phone", "name", "city"], ["380501234567", "Olena", "Kyiv"], ["380671234567", "Ivan", "Lviv"]]
    header, rows = plain[0], numbered(plain[1:])
    for name, delimiter, end, told in [
        ("comma", ",", "\n", None),
        ("comma-crlf", ",", "\r\n", None),
        ("comma-cr", ",", "\r", None),
        ("semicolon", ";", "\n", "delimiter semicolon"),
        ("tab", "\t", "\n", "delimiter tab"),
        ("pipe", "|", "\n", "delimiter vertical bar"),
    ]:
        sound(f"{name}.csv", text_of(plain, delimiter, end).encode(), f"divided by {name}", header, rows, told)
    sound("no-last-line-end.csv", text_of(plain, ",", "\n").rstrip("\n").encode(), "the last line has no end", header, rows)
    for name, delimiter, told in [("caret", "^", "delimiter `^`"), ("tilde", "~", "delimiter `~`"), ("colon", ":", "delimiter `:`")]:
        sound(f"{name}-told.csv", text_of(plain, delimiter, "\n").encode(), f"divided by a {name}, which is told", header, rows, told, form={"delimiter": delimiter})
    sound("tab-told.tsv", text_of(plain, "\t", "\n").encode(), "divided by tabs, which is told", header, rows, "delimiter tab", form={"delimiter": "tab"})
    many = [["phone", "name, first", "city, street"], ["380501234567", "Koval, Olena", "Kyiv, Main St"]]
    sound("more-commas-than-semicolons.csv", text_of(many, ";", "\n").encode(), "commas within cells, semicolons between them, which is told", many[0], numbered(many[1:]), "delimiter semicolon", form={"delimiter": ";"})
    sound("sep-semicolon.csv", ("sep=;\r\n" + text_of(plain, ";")).encode(), "Excel's line before the header", header, rows, "delimiter semicolon")
    sound("sep-comma-marked.csv", ("\ufeffsep=,\r\n" + text_of(plain, ",")).encode(), "the same behind a byte order mark", header, rows)
    sound("sep-tab-utf-16.csv", ("\ufeffsep=\t\r\n" + text_of(plain, "\t")).encode("utf-16-le"), "the same in UTF-16", header, rows, "encoding UTF-16LE, delimiter tab")
    sound("sep-caret.csv", ("sep=^\n" + text_of(plain, "^", "\n")).encode(), "the line names a sign that is not looked for", header, rows, "delimiter `^`")
    sound("sep-and-told.csv", ("sep=,\n" + text_of(plain, ";", "\n")).encode(), "the line is wrong, and the campaign says what is right", header, rows, "delimiter semicolon", form={"delimiter": ";"})
    sound("quoted-line-breaks.csv", b'phone,address\n380501234567,"Kyiv,\nMain St, 12"\n380671234567,"Lviv"\n', "a cell of two lines", ["phone", "address"], [(2, ["380501234567", "Kyiv,\nMain St, 12"]), (3, ["380671234567", "Lviv"])])
    sound("quotes-in-quotes.csv", b'phone,name\n380501234567,"Cafe ""Sun"""\n', "doubled quotes", ["phone", "name"], [(2, ["380501234567", 'Cafe "Sun"'])])
    sound("below-titles-told.csv", b'Clients;"of spring;\nall"\n\nphone;name\n380501234567;Olena\n', "titles and a blank line above the headers, whose row is told", ["phone", "name"], [(4, ["380501234567", "Olena"])], "header in row 3", form={"header_row": 3})
    sound("all-quoted.csv", b'"phone";"name"\r\n"380501234567";"O;K"\r\n', "every cell in quotes", ["phone", "name"], [(2, ["380501234567", "O;K"])], "delimiter semicolon")
    sound("blank-lines.csv", b"\n\nphone,name\n\n380501234567,Olena\n\n \n,\n380671234567,Ivan\n\n", "blank lines count, and are nobody", ["phone", "name"], [(5, ["380501234567", "Olena"]), (9, ["380671234567", "Ivan"])])
    sound("trailing-empty-columns.csv", b"phone,name,,\n380501234567,Olena,,\n380671234567,Ivan,,\n", "columns without anything behind the last one", ["phone", "name", "", ""], [(2, ["380501234567", "Olena", "", ""]), (3, ["380671234567", "Ivan", "", ""])])
    sound("trailing-delimiters-in-rows.csv", b"phone,name\n380501234567,Olena,,\n380671234567,Ivan\n", "delimiters behind the last cell of a row", ["phone", "name"], [(2, ["380501234567", "Olena"]), (3, ["380671234567", "Ivan"])])
    sound("trailing-delimiters-in-header.csv", b"phone,name,,\n380501234567,Olena\n380671234567,Ivan,,\n", "delimiters behind the last header alone", ["phone", "name", "", ""], [(2, ["380501234567", "Olena", "", ""]), (3, ["380671234567", "Ivan", "", ""])])
    sound("padded-headers.csv", " phone ,\u00a0First  name\u00a0\n380501234567,Olena\n".encode(), "spaces around headers", ["phone", "First  name"], [(2, ["380501234567", "Olena"])], columns={"first_name": "first name"})
    sound("headers-in-capitals.csv", "ТЕЛЕФОН;ІМ’Я\n0501234567;Олена\n".encode(), "headers in capitals, with another apostrophe", ["ТЕЛЕФОН", "ІМ’Я"], [(2, ["0501234567", "Олена"])], "delimiter semicolon", columns={"phone": "Телефон", "name": "Ім'я"})
    sound("phone-in-capitals.csv", b"Phone,Name\n380501234567,Olena\n", "the column of the numbers needs no name of its own", ["Phone", "Name"], [(2, ["380501234567", "Olena"])])
    sound("exact-header-wins.csv", b"phone,name,Name\n380501234567,olena,Olena\n", "two headers differ by a capital", ["phone", "name", "Name"], [(2, ["380501234567", "olena", "Olena"])], columns={"first_name": "Name"})
    sound("empty-headers.csv", b"phone,,name,\n380501234567,1,Olena,2\n", "columns without headers", ["phone", "", "name", ""], [(2, ["380501234567", "1", "Olena", "2"])])
    sound("one-column.csv", b"phone\n380501234567\n380671234567\n", "numbers alone", ["phone"], [(2, ["380501234567"]), (3, ["380671234567"])])
    sound("header-of-two-lines.csv", b'phone,"first\nname"\n380501234567,Olena\n', "a header with a line break", ["phone", "first\nname"], [(2, ["380501234567", "Olena"])], columns={"name": "First name"})
    sound("formulas-for-texts.csv", b'phone,code\n"=""380501234567""",="007"\n', "what programs write to keep zeros", ["phone", "code"], [(2, ['="380501234567"', '="007"'])])


def packed():
    body = text_of([HEADER] + PEOPLE).encode()
    semicolon = "delimiter semicolon"
    columns = {"phone": "Телефон"}
    sound("list.csv.gz", gzip.compress(body, mtime=0), "compressed with gzip", HEADER, numbered(PEOPLE), "compressed with gzip, " + semicolon, columns=columns)
    sound("gzip-by-content.csv", gzip.compress(body, mtime=0), "packed, and named as if it were not", HEADER, numbered(PEOPLE), "compressed with gzip, " + semicolon, columns=columns)
    sound("gzip-of-two-parts.csv", gzip.compress(body[:30], mtime=0) + gzip.compress(body[30:], mtime=0), "two packed files behind one another", HEADER, numbered(PEOPLE), "compressed with gzip, " + semicolon, columns=columns)
    sound("gzip-windows-1251.csv.gz", gzip.compress(text_of([HEADER] + PEOPLE).encode("cp1251"), mtime=0), "packed, in another encoding", HEADER, numbered(PEOPLE), "compressed with gzip, encoding Windows-1251, " + semicolon, columns=columns)
    # A frame with one uncompressed block (RFC 8878).
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(body)]) + ((len(body) << 3) | 1).to_bytes(3, "little") + body
    sound("list.csv.zst", frame, "compressed with zstd", HEADER, numbered(PEOPLE), "compressed with zstd, " + semicolon, columns=columns)
    sound("workbook.xlsx.gz", gzip.compress(book([HEADER] + PEOPLE), mtime=0), "a workbook that was packed again", HEADER, numbered(PEOPLE), "compressed with gzip, sheet `Sheet1`", columns=columns)


def book(rows, change=None, title="Sheet1"):
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = title
    for row in rows:
        sheet.append(row)
    if change:
        change(made, sheet)
    made.properties.created = made.properties.modified = datetime.datetime(2026, 1, 1)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def workbooks():
    columns = {"phone": "Телефон"}
    one = "sheet `Sheet1`"
    sound("texts.xlsx", book([HEADER] + PEOPLE), "texts", HEADER, numbered(PEOPLE), one, columns=columns)
    sound("named-as-csv.csv", book([HEADER] + PEOPLE), "a workbook under another ending", HEADER, numbered(PEOPLE), one, columns=columns)
    sound("long-numbers.xlsx", book([["phone", "id"], [380501234567, 123456789012345]]), "numbers with all their digits", ["phone", "id"], [(2, ["380501234567", "123456789012345"])], one)

    def formats(made, sheet):
        for cell, value, code in [
            ("B2", 1234.5, "#,##0.00"),
            ("C2", 0.15, "0%"),
            ("D2", datetime.date(2026, 12, 1), "dd.mm.yyyy"),
            ("E2", datetime.datetime(2026, 12, 1, 10, 30), "yyyy-mm-dd hh:mm"),
            ("F2", 501234567, "0000000000"),
            ("G2", 19.9, '0.00" грн"'),
            ("H2", datetime.time(9, 5), "h:mm"),
            ("I2", True, "General"),
        ]:
            sheet[cell] = value
            sheet[cell].number_format = code

    header = ["phone", "sum", "share", "date", "time", "padded", "money", "hour", "yes"]
    shown = ["380501234567", "1,234.50", "15%", "01.12.2026", "2026-12-01 10:30", "0501234567", "19.90 грн", "9:05", "TRUE"]
    sound("formats.xlsx", book([header, [380501234567]], formats), "cells as they are shown", header, [(2, shown)], one)

    def dates(made, sheet):
        for cell, code in [("B2", "mm-dd-yy"), ("C2", "d-mmm-yy"), ("D2", "[$-422]d mmmm yyyy"), ("E2", "m/d/yy h:mm")]:
            sheet[cell] = datetime.datetime(2026, 12, 1)
            sheet[cell].number_format = code

    sound("dates.xlsx", book([["phone", "local", "short", "uk", "both"], ["380501234567"]], dates), "dates", ["phone", "local", "short", "uk", "both"], [(2, ["380501234567", "01.12.2026", "1-Dec-26", "1 грудня 2026", "01.12.2026 0:00"])], one)

    def epoch(made, sheet):
        made.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
        sheet["B2"] = datetime.datetime(2026, 12, 1)
        sheet["B2"].number_format = "dd.mm.yyyy"

    sound("dates-of-1904.xlsx", book([["phone", "date"], ["380501234567"]], epoch), "a workbook of an old Mac", ["phone", "date"], [(2, ["380501234567", "01.12.2026"])], one)

    def hidden_sheet(made, sheet):
        sheet.sheet_state = "hidden"
        other = made.create_sheet("Клієнти")
        other.append(["phone"])
        other.append(["380671234567"])

    sound("first-sheet-hidden.xlsx", book([["phone"], ["380501234567"]], hidden_sheet), "the first sheet is hidden", ["phone"], [(2, ["380671234567"])], "sheet `Клієнти`, one of 2")
    sound("hidden-sheet-told.xlsx", book([["phone"], ["380501234567"]], hidden_sheet), "the hidden one is meant", ["phone"], [(2, ["380501234567"])], "sheet `Sheet1`, one of 2", form={"sheet": "Sheet1"})
    sound("sheet-told-roughly.xlsx", book([["phone"], ["380501234567"]], hidden_sheet), "its name in other letters", ["phone"], [(2, ["380671234567"])], "sheet `Клієнти`, one of 2", form={"sheet": "клієнти "})

    def hidden_rows(made, sheet):
        sheet.row_dimensions[3].hidden = True
        sheet.row_dimensions[5].hidden = True

    rows = [["phone"], ["380501234567"], ["380501234568"], ["380501234569"], ["380501234570"]]
    sound("hidden-rows.xlsx", book(rows, hidden_rows), "rows that a filter hides", ["phone"], numbered(rows[1:]), one, warnings=["2 rows are hidden in the sheet `Sheet1` but still included as recipients: 3, 5"])

    def gaps(made, sheet):
        sheet["A4"] = "phone"
        sheet["B4"] = "name"
        sheet["A6"] = 380501234567
        sheet["B6"] = "Олена"
        sheet["A9"] = 380671234567

    sound("blank-rows.xlsx", book([], gaps), "the list begins further below, and has gaps", ["phone", "name"], [(6, ["380501234567", "Олена"]), (9, ["380671234567", ""])], one)

    def shifted(made, sheet):
        sheet["C1"] = "phone"
        sheet["D1"] = "name"
        sheet["C2"] = 380501234567
        sheet["D2"] = "Олена"

    sound("begins-in-column-c.xlsx", book([], shifted), "columns A and B are empty", ["", "", "phone", "name"], [(2, ["", "", "380501234567", "Олена"])], one)

    def note(made, sheet):
        sheet["E3"] = "called"

    sound("note-beside.xlsx", book([["phone", "name"], ["380501234567", "Олена"], ["380671234567", "Іван"]], note), "a note in a column without a header", ["phone", "name", "", "", ""], [(2, ["380501234567", "Олена", "", "", ""]), (3, ["380671234567", "Іван", "", "", "called"])], one)
    sound("line-breaks.xlsx", book([["phone", "address"], ["380501234567", 'Kyiv,\n"Main" St']]), "a cell of two lines with quotes", ["phone", "address"], [(2, ["380501234567", 'Kyiv,\n"Main" St'])], one)
    sound("leading-zeros-as-text.xlsx", book([["phone", "code"], ["380501234567", "007"]]), "texts stay texts", ["phone", "code"], [(2, ["380501234567", "007"])], one)
    sound("formula-like-texts.xlsx", book([["phone", "text"], ["380501234567", "+1-2"]]), "a text like a formula", ["phone", "text"], [(2, ["380501234567", "+1-2"])], one)
    sound("fractions.xlsx", book([["phone", "a", "b"], ["380501234567", 0.1 + 0.2, 1 / 3]]), "fractions as a cell shows them", ["phone", "a", "b"], [(2, ["380501234567", "0.3", "0.333333333"])], one)

    def error(made, sheet):
        sheet["B2"] = "#N/A"
        sheet["B2"].data_type = "e"
        sheet["B3"] = "#DIV/0!"
        sheet["B3"].data_type = "e"

    sound("errors.xlsx", book([["phone", "name"], ["380501234567"], ["380671234567"]], error), "formulas that failed", ["phone", "name"], [(2, ["380501234567", "#N/A"]), (3, ["380671234567", "#DIV/0!"])], one, warnings=["2 cells in the sheet `Sheet1` have an error such as `#N/A` instead of a value: rows 2, 3"])
    sound("padded-headers.xlsx", book([[" Телефон ", "Ім'я\n"], ["0501234567", "Олена"]]), "spaces in headers", ["Телефон", "Ім'я"], [(2, ["0501234567", "Олена"])], one, columns={"phone": "телефон", "name": "Ім’я"})

    def merged(made, sheet):
        sheet.merge_cells("B2:B3")

    sound("merged-cells.xlsx", book([["phone", "group"], ["380501234567", "A"], ["380671234567", None]], merged), "a merged cell has its value once", ["phone", "group"], [(2, ["380501234567", "A"]), (3, ["380671234567", ""])], one)
    many = [["phone"]] + [[380500000000 + row] for row in range(1, 700)]
    sound("seven-hundred-rows.xlsx", book(many), "more rows than are looked at first", ["phone"], [(2, ["380500000001"]), (700, ["380500000699"])], one)

    old = xlwt.Workbook(encoding="utf-8")
    sheet = old.add_sheet("Клієнти")
    for row, cells in enumerate([HEADER + ["Дата"]] + PEOPLE):
        for column, cell in enumerate(cells):
            sheet.write(row, column, cell)
    date = xlwt.XFStyle()
    date.num_format_str = "DD.MM.YYYY"
    sheet.write(1, 3, datetime.date(2026, 12, 1), date)
    old.add_sheet("Архів").write(0, 0, "phone")
    out = io.BytesIO()
    old.save(out)
    sound("texts-and-a-date.xls", out.getvalue(), "a workbook of Excel 97", HEADER + ["Дата"], [(2, PEOPLE[0] + ["01.12.2026"]), (3, PEOPLE[1] + [""])], "sheet `Клієнти`, one of 2", columns=columns)
    old = xlwt.Workbook(encoding="utf-8")
    sheet = old.add_sheet("Sheet1")
    for row, cells in [(0, ["phone", "sum"]), (2, [380501234567, 12.5]), (4, [380671234567, 3])]:
        for column, cell in enumerate(cells):
            sheet.write(row, column, cell)
    out = io.BytesIO()
    old.save(out)
    sound("numbers.xls", out.getvalue(), "numbers of Excel 97, with gaps", ["phone", "sum"], [(3, ["380501234567", "12.5"]), (5, ["380671234567", "3"])], one)

    rows = "<table:table-row><table:table-cell office:value-type='string'><text:p>phone</text:p></table:table-cell><table:table-cell office:value-type='string'><text:p>share</text:p></table:table-cell><table:table-cell office:value-type='string'><text:p>note</text:p></table:table-cell></table:table-row>"
    rows += "<table:table-row table:number-rows-repeated='2'><table:table-cell table:number-columns-repeated='3'/></table:table-row>"
    rows += "<table:table-row><table:table-cell office:value-type='float' office:value='380501234567'><text:p>3.80501E+011</text:p></table:table-cell><table:table-cell office:value-type='percentage' office:value='0.15'><text:p>15%</text:p></table:table-cell><table:table-cell office:value-type='string'><text:p>a<text:s text:c='2'/>&amp; b</text:p><text:p>c</text:p></table:table-cell></table:table-row>"
    rows += "<table:table-row table:visibility='filter'><table:table-cell office:value-type='string'><office:annotation><text:p>not this</text:p></office:annotation><text:p>380671234567</text:p></table:table-cell><table:table-cell/><table:table-cell calcext:value-type='error'><text:p>#N/A</text:p></table:table-cell></table:table-row>"
    rows += "<table:table-row table:number-rows-repeated='1048570'><table:table-cell table:number-columns-repeated='1024'/></table:table-row>"
    hidden = "<table:table table:name='Secret' table:style-name='ta2'><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row></table:table>"
    sound("shown-texts.ods", ods(hidden + f"<table:table table:name='Sheet1' table:style-name='ta1'>{rows}</table:table>"), "cells as they are shown, a hidden sheet before", ["phone", "share", "note"], [(4, ["380501234567", "15%", "a  & b\nc"]), (5, ["380671234567", "", "#N/A"])], "sheet `Sheet1`, one of 2", warnings=["1 row is hidden in the sheet `Sheet1` but still included as a recipient: 5", "1 cell in the sheet `Sheet1` has an error such as `#N/A` instead of a value: row 5"])
    repeated = "<table:table-row><table:table-cell><text:p>phone</text:p></table:table-cell><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>380501234567</text:p></table:table-cell><table:table-cell table:number-columns-repeated='2'><text:p>x</text:p></table:table-cell></table:table-row>"
    sound("repeated-cells.ods", ods(f"<table:table table:name='Sheet1'>{repeated}</table:table>"), "equal cells are written once", ["phone", "a", "b"], [(2, ["380501234567", "x", "x"])], one)
    def day(style, value, shown):
        return f"<table:table-cell{style} office:value-type='date' office:date-value='{value}' calcext:value-type='date'><text:p>{shown}</text:p></table:table-cell>"
    own = " table:style-name='ce2'"
    columns = "<table:table-column/><table:table-column table:number-columns-repeated='2' table:default-cell-style-name='ce1'/><table:table-column table:number-columns-repeated='2'/>"
    names = "".join(f"<table:table-cell><text:p>{name}</text:p></table:table-cell>" for name in ["phone", "local", "both", "own", "cell"])
    days = day("", "2024-02-01", "01/02/24") + day("", "2024-02-01T09:05:00", "01/02/24 09:05") + day(own, "2024-02-01", "1 Feb 24") + day(" table:style-name='ce1'", "2024-02-01", "01/02/24")
    dates = f"{columns}<table:table-row>{names}</table:table-row><table:table-row><table:table-cell><text:p>380501234567</text:p></table:table-cell>{days}</table:table-row>"
    styles = "<number:date-style xmlns:number='urn:number' style:name='N37' number:automatic-order='true'/><style:style style:name='ce1' style:family='table-cell' style:data-style-name='N37'/><style:style style:name='ce2' style:family='table-cell' style:data-style-name='N80'/>"
    sound("dates.ods", ods(f"<table:table table:name='Sheet1'>{dates}</table:table>", styles), "dates in the system's short format", ["phone", "local", "both", "own", "cell"], [(2, ["380501234567", "01.02.2024", "01.02.2024 9:05", "1 Feb 24", "01.02.2024"])], one)


def ods(tables, own_styles=""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(name, text):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text, zipfile.ZIP_DEFLATED)
        add("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        styles = "<office:automatic-styles><style:style style:name='ta1' style:family='table'><style:table-properties table:display='true'/></style:style><style:style style:name='ta2' style:family='table'><style:table-properties table:display='false'/></style:style>" + own_styles + "</office:automatic-styles>"
        names = " ".join(f"xmlns:{prefix}='urn:{prefix}'" for prefix in ["office", "style", "table", "text", "calcext"])
        add("content.xml", f"<?xml version='1.0' encoding='UTF-8'?><office:document-content {names}>{styles}<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>")
    return out.getvalue()


def archive(parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in parts.items():
            made.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def malformed():
    encoding, other = "recipients-encoding", "recipients-form-of-another"
    not_csv, unreadable = "recipients-not-csv", "recipients-unreadable"
    ragged, unclosed = "recipients-ragged-row", "recipients-unclosed-quote"
    for name, data, kind in [
        ("letter.pdf", b"%PDF-1.7\n1 0 obj", "a PDF document"),
        ("table-of-a-shop.xls", b"<html><body><table><tr><td>phone</td></tr></table></body></html>", "a web page (HTML)"),
        ("table-with-doctype.xls", b"\xef\xbb\xbf<!DOCTYPE html>\n<table></table>", "a web page (HTML)"),
        ("spreadsheet-2003.xml", b"<?xml version='1.0'?><?mso-application progid='Excel.Sheet'?><Workbook/>", "an XML file"),
        ("answer.json", b'[{"phone": "380501234567"}]', "a JSON file"),
        ("one-object.json", b'{\n  "phone": "380501234567"}', "a JSON file"),
        ("letter.rtf", b"{\\rtf1\\ansi phone}", "a text document (RTF)"),
        ("list.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "an archive (7z)"),
        ("list.rar", b"Rar!\x1a\x07\x01\0", "an archive (RAR)"),
        ("list.csv.bz2", b"BZh91AY&SY", "a compressed file (bzip2)"),
        ("list.csv.xz", b"\xfd7zXZ\0\0", "a compressed file (xz)"),
        ("people.sqlite", b"SQLite format 3\0\x10\0", "a database (SQLite)"),
        ("people.parquet", b"PAR1\x15\x04", "a database table (Parquet)"),
        ("scan.png", b"\x89PNG\r\n\x1a\n", "an image"),
        ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", "an image"),
        ("packed-twice.csv.gz", gzip.compress(gzip.compress(b"phone\n1\n", mtime=0), mtime=0), "a file that was compressed twice"),
        ("archive.zip", archive({"list.csv": "phone\n1\n"}), "an archive (ZIP)"),
        ("letter.docx", archive({"[Content_Types].xml": "<Types/>", "word/document.xml": "<w/>"}), "a Word or PowerPoint document"),
        ("book.xlsb", archive({"[Content_Types].xml": "<Types/>", "xl/workbook.bin": "x"}), "a binary workbook (.xlsb)"),
        ("list.numbers", archive({"Index/Document.iwa": "x"}), "a Numbers document"),
    ]:
        spoilt(name, data, f"not a list but {kind}", not_csv, [kind])
    spoilt("utf-32.csv", "\ufeffphone\n1\n".encode("utf-32-le"), "four bytes for a character", encoding, ["UTF-32", "save it as CSV in UTF-8"])
    spoilt("broken-character.csv", "phone,name\n380501234567,Олена\n380671234567,Іван\n".encode() + b"380931234567,\xd0\n", "a character that a program has cut in two", encoding, ["line 4 is not valid UTF-8"])
    spoilt("two-encodings.csv", ("phone,name\n" + "380501234567,Олена Петренко\n" * 40).encode() + "380671234567,Іван\n".encode("cp1251"), "two lists that were put together", encoding, ["line 42 is not valid UTF-8"])
    spoilt("told-1251-is-utf-8.csv", text_of([HEADER] + PEOPLE).encode(), "the campaign says another encoding", other, ["is encoded in UTF-8, not in Windows-1251", "delete `encoding`"], {"encoding": "windows-1251"})
    spoilt("told-1251-is-utf-16.csv", ("\ufeff" + text_of([HEADER] + PEOPLE)).encode("utf-16-le"), "the campaign says another encoding", other, ["UTF-16LE", "delete `encoding`"], {"encoding": "windows-1251"})
    spoilt("told-utf-8-is-1251.csv", text_of([["phone", "name"], ["380501234567", "Олена"]], ",").encode("cp1251"), "the campaign says UTF-8", encoding, ["line 2 is not valid UTF-8"], {"encoding": "utf-8"})
    spoilt("half-a-surrogate.csv", "\ufeffphone\n1\n".encode("utf-16-le") + b"\0\xd8" + "\n".encode("utf-16-le"), "half of a pair in UTF-16", encoding, ["is not valid UTF-16LE"])
    spoilt("broken-shift-jis.csv", b"phone,name\n1,\x81\xff\n", "broken in the encoding that was told", encoding, ["line 2", "Shift_JIS"], {"encoding": "shift_jis"})
    spoilt("sheet-of-text.csv", b"phone\n380501234567\n", "a sheet of a file without sheets", other, ["is not a workbook, so it has no sheet `Клієнти`", "delete `sheet`"], {"sheet": "Клієнти"})
    spoilt("encoding-of-a-workbook.xlsx", book([["phone"], [380501234567]]), "an encoding of a workbook", other, ["is a workbook, but `encoding` applies only to CSV files"], {"encoding": "windows-1251"})
    spoilt("delimiter-of-a-workbook.xlsx", book([["phone"], [380501234567]]), "a delimiter of a workbook", other, ["is a workbook, but `delimiter` applies only to CSV files"], {"delimiter": ";"})
    spoilt("wrong-sheet.xlsx", book([["phone"], [380501234567]], title="Клієнти"), "a sheet that is not there", "recipients-sheet", ["has no sheet `Клиенты`"], {"sheet": "Клиенты"})
    spoilt("nearly-the-sheet.xlsx", book([["phone"], [380501234567]], title="Clients"), "a sheet that is nearly there", "recipients-sheet", ["did you mean `Clients`?"], {"sheet": "Client"})
    spoilt("wrong-sheet.ods", ods("<table:table table:name='Clients'/>"), "a sheet that is not there", "recipients-sheet", ["did you mean `Clients`?"], {"sheet": "Clientz"})
    spoilt("all-sheets-hidden.ods", ods("<table:table table:name='Secret' table:style-name='ta2'/>"), "no sheet that is seen", "recipients-sheet", ["no visible sheet", 'sheet: "Secret"'])
    spoilt("empty-sheet.xlsx", book([]), "a sheet without cells", "recipients-empty", ["is empty"])
    spoilt("header-alone.xlsx", book([["phone", "name"]]), "a sheet with nobody", "recipients-empty", ["no recipients"])
    whole = book([["phone", "name"], [380501234567, "Олена"]] * 50)
    spoilt("broken-off.xlsx", whole[: len(whole) // 2], "a workbook that broke off", unreadable, ["is a workbook that cannot be read"])
    spoilt("no-parts.xlsx", archive({"[Content_Types].xml": "<Types/>"}), "a workbook without parts", unreadable, ["is a workbook that cannot be read"])
    spoilt("broken-xml.xlsx", archive({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": "<workbook><sheets>"}), "a workbook whose parts break off", unreadable, ["is a workbook that cannot be read"])
    spoilt("no-content.ods", archive({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<a><b></a>"}), "a sheet whose text is broken", unreadable, ["is a workbook that cannot be read"])
    spoilt("broken-off.ods", ods("<table:table table:name='A'><table:table-row><table:table-cell><text:p>phone"), "a sheet that breaks off", unreadable, ["is a workbook that cannot be read"])
    spoilt("zeros.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), "the head of a workbook, and nothing", unreadable, ["is a workbook that cannot be read"])
    spoilt("head-alone.xls", b"\xd0\xcf\x11\xe0", "four bytes of a workbook", unreadable, ["is a workbook that cannot be read"])
    spoilt("head-alone.xlsx", b"PK\x03\x04", "four bytes of a workbook", unreadable, ["is a workbook that cannot be read"])
    packed = gzip.compress((b"phone,name\n" + b"380501234567,Olena\n" * 5000), mtime=0)
    spoilt("broken-off.csv.gz", packed[:-20], "a packed file that broke off", unreadable, ["is an incomplete gzip file"])
    spoilt("head-alone.csv.gz", b"\x1f\x8b\x08\0", "four bytes of a packed file", unreadable, ["is an incomplete gzip file"])
    spoilt("damaged.csv.zst", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff", "a damaged packed file", unreadable, ["is an incomplete zstd file"])
    spoilt("nothing.csv", b"", "nothing at all", "recipients-empty", ["is empty"])
    spoilt("blank-lines-alone.csv", b"\n\n\r\n", "blank lines", "recipients-empty", ["is empty"])
    spoilt("header-alone.csv", b"phone,name\n", "nobody", "recipients-empty", ["no recipients"])
    spoilt("no-such-header-row.csv", b"phone,name\n380501234567,Olena\n", "the headers are said to stand below the last row", "recipients-no-header", ["ends before row 4"], form={"header_row": 4})
    spoilt("no-header.csv", b"380501234567,Olena\n380671234567,Ivan\n", "no row names the columns", "recipients-no-header", ["the first row contains a phone number"])
    spoilt("title.csv", b"Clients of spring,,\nphone,name,city\n380501234567,Olena,Kyiv\n", "a title stands above the header", "recipients-no-header", ["contains a title"])
    spoilt("title.xlsx", book([["Clients of spring"], ["phone", "name"], [380501234567, "Олена"]]), "a title stands above the header", "recipients-no-header", ["contains a title"])
    spoilt("no-numbers.csv", b"name,city\nOlena,Kyiv\n", "no column has numbers", "recipients-phone-column", ["no column is named `phone`"])
    spoilt("two-phones.csv", b"phone,name,phone\n380501234567,Olena,380671234567\n", "two columns of one name", "recipients-duplicate-column", ["columns 1 and 3 are both named `phone`"])
    spoilt("ragged.csv", b"phone,city\n380501234567,Kyiv, centre\n", "a comma that is not quoted", ragged, ["line 2 has 3 cells, but the header has 2", "comma inside an unquoted cell"])
    few = "".join(f"3805012345{row:02},a{',b' if row % 3 == 0 else ''}\n" for row in range(70))
    spoilt("ragged-often.csv", ("phone,city\n" + few).encode(), "many rows do not fit", ragged, ["line 2 has 3 cells, but the header has 2", "24 rows have this problem", "2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47, 50, 53, 56, 59 and 4 more"])
    spoilt("a-cell-too-few.csv", b"phone,name\n380501234567\n380671234567,Ivan\n", "a line break that is not quoted", ragged, ["line 2 has 1 cell, but the header has 2"])
    spoilt("wrong-delimiter-told.csv", b"phone;name\n380501234567;Olena\n", "the campaign says another delimiter", "recipients-phone-column", ["no column is named `phone`"], {"delimiter": ","})
    spoilt("unclosed-quote.csv", b'phone,name\n380501234567,"Olena\n380671234567,Ivan\n', "a quote that nobody closed", unclosed, ["the quote opened on line 2 is not closed"])
    spoilt("swallowed-row.csv", b'phone,name\n380501234567,"Olena\n380671234567,"Ivan"\n', "a forgotten quote hides a row", unclosed, ["line 2"])
    spoilt("stray-quote.csv", b'phone,name\n380501234567,"Cafe "Sun""\n', "quotes within quotes", "recipients-stray-quote", ["text follows the closing quote"])
    spoilt("nul.csv", b"phone,name\n380501234567,a\0b\n", "a byte that no text has", not_csv, ["line 2 contains a NUL"])
    spoilt("large-cell.csv", b"phone,name\n380501234567," + b"x" * 70000 + b"\n", "a cell that is too large", "recipients-too-large", ["line 2 has a cell that is larger than 64 KiB"])
    spoilt("many-columns.csv", ("phone" + ",x" * 16384 + "\n").encode(), "more columns than a spreadsheet has", "recipients-too-many-columns", ["16385 columns"])
    spoilt("ambiguous-header.csv", b"phone,NAME,Name\n380501234567,a,b\n", "a header that fits two columns, and neither exactly", "recipients-unknown-column", ["`name`", "`NAME` or `Name`"], columns={"first_name": "name"})


encodings()
dialects()
packed()
workbooks()
malformed()
print(len(os.listdir(SOUND)) // 2, "sound,", len(os.listdir(SPOILT)) // 2, "malformed")
