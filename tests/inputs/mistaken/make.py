"""Generates the files of this folder that a text editor cannot show or would change. Run it in this folder.

Needs openpyxl. The notes `meant.yaml` are written by hand.
"""

import datetime
import gzip
import io
import zipfile

import openpyxl


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def lines(rows, delimiter=",", end="\n"):
    return "".join(delimiter.join(row) + end for row in rows)


def sheet(book, title, rows):
    made = book.create_sheet(title)
    for row in rows:
        made.append(row)
    return made


def workbook(**sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet(book, title, rows)
    return book


def saved(book):
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


COVER = [["Шаблон списку клієнтів"], ["1. Заповніть аркуш «Клієнти»"], ["2. Не змінюйте назви стовпців"], ["Питання: +380441000000"]]


def campaigns():
    clients = [["Телефон", "Ім'я", "Код"], ["0501000001", "Olena", "NEW-126"], ["0671000002", "Taras", "NEW-163"], ["0931000003", "Maria", "NEW-200"]]
    write("campaigns/36-workbook-with-a-cover-sheet/clients.xlsx", saved(workbook(**{"Титул": COVER, "Клієнти": clients})))
    header = ["name", "mobile", "code"]
    old = [header, ["Petro", 380631000009, "OLD-1"]]
    new = [header, ["Olena", 380501000001, "NEW-126"], ["Taras", 380671000002, "NEW-163"], ["Maria", 380931000003, "NEW-200"]]
    write("campaigns/37-columns-by-letters/clients.xlsx", saved(workbook(**{"2025": old, "2026": new})))


def damaged_letters():
    german = [["phone", "name", "city"], ["+4915112345678", "Jürgen Müller", "Köln"], ["+4915187654321", "Anna Schmidt", "Bonn"], ["+4915234567890", "Günther Groß", "Nürnberg"]]
    write("lists/01-utf-8-read-as-windows-1252/clients.csv", lines(german).encode().decode("cp1252").encode())
    people = [["Телефон", "Ім'я", "Місто"], ["0501000001", "Олена", "Київ"], ["0671000002", "Тарас", "Львів"], ["0931000003", "Марія", "Одеса"]]
    write("lists/02-utf-8-read-as-windows-1251/clients.csv", lines(people, ";").encode().decode("cp1251").encode())
    lost = [["phone", "name", "city"], ["+380501000001", "Jos\ufffd", "Kyiv"], ["+380671000002", "\ufffd\ufffd\ufffd\ufffd", "Lviv"], ["+380931000003", "Maria", "Odesa"]]
    write("lists/04-replacement-characters/clients.csv", lines(lost).encode())


def invisible_signs():
    phones = [
        ["+38050\ufe0d1000001", "variation selector"],
        ["\u2800+380671000002\u2800", "blank of Braille"],
        ["+380\u316493\u31641000003", "Hangul filler"],
        ["+380681000004\U000e0041\U000e0042", "tags"],
        ["+380\u00a096\u00a0100\u00a000\u00a005", "no-break space"],
        ["\u202a+380971000006\u202c", "marks of direction"],
        ["\u2066+380981000007\u2069\u200b", "isolates and zero width"],
        ["\u2060+380\u00ad991000008\ufeff", "joiner, soft hyphen, byte order mark"],
    ]
    write("lists/06-phones-with-invisible-signs/clients.csv", lines([["phone", "sign"]] + [["\"" + phone + "\"", "\"" + sign + "\""] for phone, sign in phones]).encode())


def encodings():
    shop = [["Телефон", "Клієнт", "Магазин"], ["050 100 00 01", "Ґанна Їжакевич", "№ 7"], ["067 100 00 02", "Єва Ґудзь", "№ 12"]]
    write("lists/13-windows-1251-with-semicolons/clients.csv", lines(shop, ";", "\r\n").encode("cp1251"))
    write("lists/14-utf-16-without-a-mark/clients.csv", lines(shop, "\t", "\r\n").encode("utf-16-be"))
    write("lists/24-gzip-of-a-csv/clients.csv.gz", gzip.compress(("sep=;\r\n" + lines(shop, ";", "\r\n")).encode("cp1251"), mtime=0))
    ends = "phone,name\r\n+380501000001,Olena\n+380671000002,Taras\r+380931000003,Maria\r\n\n+380681000004,Ivan"
    write("lists/28-mixed-line-ends/clients.csv", ends.encode())
    tabs = [["phone ", " name", "city"], ["+380501000001 ", " Olena", "Kyiv "], [" +380671000002", "Taras  ", "Lviv"]]
    write("lists/23-tabs/clients.csv", lines(tabs, "\t", "\r\n").encode())
    padded = "\ufeffsep=;;\r\n" + lines([["phone", "name", "note"], ["+380501000001", "Olena", '"calls; writes"'], ["+380671000002", "Taras", ""]], ";", "\r\n")
    write("lists/26-sep-line/clients.csv", padded.encode())


def workbooks():
    clients = [["Телефон", "Ім'я", "Місто"], ["0501000001", "Олена", "Київ"], ["0671000002", "Тарас", "Львів"]]
    write("lists/10-cover-sheet-first/clients.xlsx", saved(workbook(**{"Інструкція": COVER, "Клієнти": clients})))
    numbers = [["phone", "name", "card"], [501000001, "Olena", 4149123412341234], [671000002.0, "Taras", 4149123412345678], [380931000003, "Maria", None], ["068 100 00 04", "Ivan", None]]
    write("lists/17-phones-as-numbers/clients.xlsx", saved(workbook(Clients=numbers)))
    book = workbook(Orders=[["Contact", None, "Order", None], ["Phone", "Name", "Number", "Sum"], ["+380501000001", "Olena", 17, 250.5], ["+380671000002", "Taras", 18, 90]])
    book["Orders"].merge_cells("A1:B1")
    book["Orders"].merge_cells("C1:D1")
    write("lists/19-merged-headers/orders.xlsx", saved(book))
    write("lists/25-ods/clients.ods", ods())


def ods():
    def text(words):
        return f"<table:table-cell office:value-type='string'><text:p>{words}</text:p></table:table-cell>"

    def phone(number):
        return f"<table:table-cell office:value-type='float' office:value='{number}'><text:p>3.80E+11</text:p></table:table-cell>"

    def date(day):
        return f"<table:table-cell office:value-type='date' office:date-value='{day}'><text:p>{datetime.date.fromisoformat(day):%d.%m.%Y}</text:p></table:table-cell>"

    rows = [[text("phone"), text("name"), text("visit")], [phone(380501000001), text("Olena"), date("2026-12-01")], [phone(380671000002), text("Taras"), date("2026-12-15")]]
    table = "".join("<table:table-row>" + "".join(row) + "</table:table-row>" for row in rows)
    spaces = {"office": "office", "table": "table", "text": "text"}
    names = " ".join(f"xmlns:{prefix}='urn:oasis:names:tc:opendocument:xmlns:{name}:1.0'" for prefix, name in spaces.items())
    content = f"<?xml version='1.0' encoding='UTF-8'?><office:document-content {names}><office:body><office:spreadsheet><table:table table:name='Sheet1'>{table}</table:table></office:spreadsheet></office:body></office:document-content>"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, words in [("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), ("content.xml", content)]:
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), words, zipfile.ZIP_DEFLATED)
    return out.getvalue()


campaigns()
damaged_letters()
invisible_signs()
encodings()
workbooks()
