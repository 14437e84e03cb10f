"""Generates golden.csv: how libphonenumber parses numbers as people write them.

    pip install phonenumbers==9.0.43 && python golden.py > golden.csv

The reference is the Python port of libphonenumber, which shares no code with campaign. The columns are the text, the region, the
number parsed in that region, the number parsed after a plus sign, and the type of the latter. Numbers are digits; `-` means no
valid number.
"""

import random

import phonenumbers
from phonenumbers import PhoneNumberFormat as Form
from phonenumbers import PhoneNumberType as Type

REGIONS = (
    "UA PL DE RO MD HU SK CZ AT CH IT FR ES PT GB IE NL BE SE NO FI DK EE LV LT BG GR TR GE AM AZ KZ UZ IL AE SA EG IN CN JP KR "
    "VN TH ID AU NZ US CA MX BR AR CL CO ZA NG KE"
).split()
TYPES = [Type.MOBILE, Type.FIXED_LINE, Type.FIXED_LINE_OR_MOBILE, Type.TOLL_FREE, Type.PREMIUM_RATE, Type.SHARED_COST]
TYPES += [Type.VOIP, Type.PERSONAL_NUMBER, Type.PAGER, Type.UAN, Type.VOICEMAIL]
NAMES = {value: name.lower() for name, value in vars(Type).items() if name.isupper() and name != "UNKNOWN"}
GROUPS = [" ", "-", "\u00a0", ".", "\u2009", "\u2011"]

chance = random.Random(20261123)


def digits(number):
    valid = number is not None and phonenumbers.is_valid_number(number)
    return phonenumbers.format_number(number, Form.E164).lstrip("+") if valid else "-"


def read(text, region):
    try:
        return phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None


def line(text, region):
    bare = "".join(str(int(c)) for c in text if c.isdigit())
    behind = bare.removeprefix("00") if "+" not in text and bare.startswith("00") else bare
    abroad = read("+" + behind, None)
    kind = NAMES.get(phonenumbers.number_type(abroad), "none") if digits(abroad) != "-" else "none"
    return "\t".join([text, region, digits(read(text, region)), digits(abroad), kind])


def spread(text):
    """The text with its digits in groups, as people write them."""
    group = chance.choice(GROUPS)
    return group.join(text[at : at + 3] for at in range(0, len(text), 3))


def spellings(number, kind):
    e164 = phonenumbers.format_number(number, Form.E164)
    national = phonenumbers.national_significant_number(number)
    yield e164
    yield national
    if kind not in TYPES[:3]:
        return
    yield e164[1:]
    yield "00" + e164[1:]
    yield phonenumbers.format_number(number, Form.NATIONAL)
    yield phonenumbers.format_number(number, Form.INTERNATIONAL)
    yield "+" + spread(e164[1:])
    yield spread(e164[1:])


def mistyped(text):
    """The text with one digit deleted, doubled or changed."""
    at = chance.randrange(1, len(text))
    return chance.choice([text[:at] + text[at + 1 :], text[:at] + text[at - 1 :], text[:at] + chance.choice("0123456789") + text[at + 1 :]])


lines = set()
for region in sorted(REGIONS):
    for kind in TYPES:
        example = phonenumbers.example_number_for_type(region, kind)
        if example is None:
            continue
        text = phonenumbers.format_number(example, Form.E164)
        for _ in range(2 if kind in TYPES[:2] else 1):
            end = f"{chance.randrange(10_000):04}"
            other = read(text[:-4] + end, None)
            for spelling in spellings(other, kind):
                lines.add(line(spelling, region))
            lines.add(line(mistyped(text[:-4] + end), region))
            lines.add(line(mistyped(phonenumbers.national_significant_number(other)), region))
            lines.add(line((text[:-4] + end)[1:], chance.choice(REGIONS)))
    # Numbers that begin with their own country code and are valid with and without it.
    code = str(phonenumbers.country_code_for_region(region))
    found = 0
    while found < 20 and chance.random() > 0.000_5:
        text = code + "".join(chance.choices("0123456789", k=chance.randrange(6, 11)))
        if "-" not in (home := digits(read(text, region)), digits(read("+" + text, None))) and home != text:
            lines.add(line(text, region))
            found += 1
for text in sorted(lines):
    print(text)
