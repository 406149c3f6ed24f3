"""Outside text at the glass: nothing harmful stays, nothing is lost, and layouts agree with the toolkit."""

from __future__ import annotations

import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from watchfloor.text import (
    LONGEST_MS,
    Clean,
    cell_width,
    clean,
    clean_line,
    clean_prose,
    count_hidden,
    cut,
    is_plain,
    numeral,
    since,
)

CLEANERS = [clean, clean_line, clean_prose]
EVERYTHING = [chr(point) for point in range(sys.maxunicode + 1)]

# Lone surrogates included, and the characters that matter far more often than chance would have them.
nasty = st.sampled_from(
    "\x00\t\n\r\x1b\x07\x7f\x80\x9b\x9d\xa0\xad\u034f\u061c\u06dd\u115f\u180b\u200b\u200c\u200d\u200e\u2028\u202e\u2066"
    "\u2069\u2800\u3000\u3164\ud800\udfff\ufe0e\ufe0f\ufeff\ufffb\ufffe\U000e0001\U000e0041\U000e0100\U0010ffff"
    "aZ1#<>;[m\u20e3\u0301\u0915\u094d\u0645❤👩👍🏽🚀🇩日é␛"
)
strings = st.text(nasty | st.characters(), max_size=30)


def names(chars: Iterable[str]) -> list[str]:
    return [f"U+{ord(char):04X} {unicodedata.name(char, '?')}" for char in chars]


# ---------------------------------------------------------------------------------------------- what becomes visible


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("", ""),
        ("rm -rf build && make migrate", "rm -rf build && make migrate"),
        ("Größe 日本語 👍🏽 ✓ …", "Größe 日本語 👍🏽 ✓ …"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x00\x07\x08\x0b\x0c\r\x1f", "␀␇␈␋␌␍␟"),
        ("\x7f", "␡"),
        ("\x1b[2J", "␛[2J"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b]0;title\x1b\\", "␛]0;title␛\\"),
        ("\x1bP1$r0m\x1b\\", "␛P1$r0m␛\\"),
        ("\x1b_Gi=1;AAAA", "␛_Gi=1;AAAA"),
        ("\x9b31m\x9d0;t\x9c\x90q", "<U+009B>31m<U+009D>0;t<U+009C><U+0090>q"),
        ("\x85", "<U+0085>"),
        ("safe\u202etxt.exe\u202c", "safe<U+202E>txt.exe<U+202C>"),
        ("\u2066\u2067\u2068\u2069\u200e\u200f\u061c", "<U+2066><U+2067><U+2068><U+2069><U+200E><U+200F><U+061C>"),
        ("a\u200bb\u200cc\u200dd\ufeffe\u2060", "a<U+200B>b<U+200C>c<U+200D>d<U+FEFF>e<U+2060>"),
        ("\U000e0001\U000e0068\U000e007f", "<U+E0001><U+E0068><U+E007F>"),
        ("❤\ufe0f\U000e0100\u180b", "❤<U+FE0F><U+E0100><U+180B>"),
        ("\xad\u034f\u115f\u1160\u3164\uffa0", "<U+00AD><U+034F><U+115F><U+1160><U+3164><U+FFA0>"),
        ("\u2028\u2029", "<U+2028><U+2029>"),
        ("\ufff9a\ufffab\ufffb\ufffc", "<U+FFF9>a<U+FFFA>b<U+FFFB><U+FFFC>"),
        ("\ud800x\udc9b", "<U+D800>x<U+DC9B>"),
        ("\ufffe\uffff\ufdd0\U0001ffff\U0010fffe", "<U+FFFE><U+FFFF><U+FDD0><U+1FFFF><U+10FFFE>"),
        ("git\xa0push\u3000--force\u2800", "git<U+00A0>push<U+3000>--force<U+2800>"),
        ("\U0001d173\U0001bca0\U00013430", "<U+1D173><U+1BCA0><U+13430>"),
        ("\ufffd", "\ufffd"),
        ("e\u0301 \ue0b0 [red]x[/red] <U+202E>", "e\u0301 \ue0b0 [red]x[/red] <U+202E>"),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    assert clean(raw) == shown
    assert is_plain(raw) == (raw == shown)
    assert count_hidden(raw) == sum(clean(char) != char for char in raw)


def test_every_harmful_code_point_is_shown_and_no_other() -> None:
    harmful = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
    # Invisible, though their category says mark, letter or symbol; and what will never be a character.
    also = re.compile(
        "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\uffff\ufdd0-\ufdef"
        "\U00013430-\U0001343f\U00040000-\U000effff]"
    )
    wrong = []
    for char in EVERYTHING:
        expected = char not in " \n\t\ufffd" and (
            unicodedata.category(char) in harmful or bool(also.match(char)) or ord(char) & 0xFFFE == 0xFFFE
        )
        if (clean(char) != char) != expected:
            wrong.append(char)
    assert names(wrong) == []


def test_what_is_harmful_is_found_in_a_long_text_as_well() -> None:
    for around in ("a plain line\n" * 5, "größer, 部署 ✓ " * 5):
        for char in itertools.chain(map(chr, range(0x10000)), EVERYTHING[0x10000::97]):
            assert is_plain(around + char + around) == (clean(char) == char), hex(ord(char))
    assert clean("a plain line\n" * 20 + "\u202e") == "a plain line\n" * 20 + "<U+202E>"


def test_every_token_is_told_apart_and_printable() -> None:
    hidden = [char for char in EVERYTHING if not is_plain(char)]
    tokens = {clean(char) for char in hidden}
    assert len(tokens) == len(hidden)
    for token in tokens:
        assert re.fullmatch(r"[\u2400-\u2421]|<U\+[0-9A-F]{4,6}>", token)
        assert cell_width(token) == cell_len(token) == len(token)


def test_clean_line_shows_line_breaks_and_tabs() -> None:
    assert clean_line("a\nb\tc\r\n\u2028") == "a␊b␉c␍␊<U+2028>"
    assert clean_line("plain") == "plain"


@given(strings, strings)
@pytest.mark.parametrize("cleaner", [clean, clean_line])
def test_cleaning_keeps_no_state(cleaner: Callable[[str], Clean], a: str, b: str) -> None:
    assert cleaner(a) + cleaner(b) == cleaner(a + b)


@given(strings)
@pytest.mark.parametrize("cleaner", CLEANERS)
def test_cleaning_is_idempotent_and_never_shortens(cleaner: Callable[[str], Clean], s: str) -> None:
    cleaned = cleaner(s)
    assert cleaner(cleaned) == cleaned
    assert len(cleaned) >= len(s)
    cleaned.encode()  # raises where a lone surrogate is left


@given(strings)
@pytest.mark.parametrize("cleaner", CLEANERS)
def test_no_control_survives(cleaner: Callable[[str], Clean], s: str) -> None:
    left = {char for char in cleaner(s) if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")}
    assert left <= ({"\n", "\t"} if cleaner is not clean_line else set())
    assert not re.search("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]", cleaner(s))


@given(strings)
def test_the_count_is_of_what_was_made_visible(s: str) -> None:
    assert count_hidden(s) == sum(clean(char) != char for char in s)
    assert is_plain(s) == (count_hidden(s) == 0) == (clean(s) == s)
    assert count_hidden(clean(s)) == 0
    assert (count_hidden(s, prose=True) == 0) == (clean_prose(s) == s)


@given(strings)
def test_prose_never_shows_more_than_clean(s: str) -> None:
    assert count_hidden(s, prose=True) <= count_hidden(s)
    assert clean(clean_prose(s)) == clean(s)


# ---------------------------------------------------------------------------------------------- prose


@pytest.mark.parametrize(
    "body",
    [
        "plain\n\twith lines",
        "❤\ufe0f and ☎\ufe0e and ⌚\ufe0f",
        "1\ufe0f\u20e3 #\ufe0f\u20e3",
        "👩\u200d🚀 👩🏽\u200d🚀 👨\u200d👩\u200d👧\u200d👦",
        "🏳\ufe0f\u200d🌈 👁\ufe0f\u200d🗨\ufe0f 🧔🏻\u200d♂\ufe0f",
        "می\u200cخواهم کتاب\u200cها ۱۲\u200cام",
        "क\u094d\u200dष क\u094d\u200cष र\u200d\u094dय",
        "ශ\u0dca\u200dරී ലങ്ക ന\u0d4d\u200d അ",
        "trailing virama क\u094d\u200d",
        "10\xa0000 km\u202f; 田中\u3000太郎 ├──\xa0x ⠀",
        "قال \u06dd \u0600١",
    ],
)
def test_prose_keeps_what_writing_needs(body: str) -> None:
    assert clean_prose(body) == body
    assert count_hidden(body, prose=True) == 0


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("a\u200db", "a<U+200D>b"),
        ("a\u200cb", "a<U+200C>b"),
        ("\u200d", "<U+200D>"),
        ("\ufe0f", "<U+FE0F>"),
        ("👩\u200d", "👩<U+200D>"),
        ("\u200d👩", "<U+200D>👩"),
        ("👩\u200d\u200d👩", "👩<U+200D><U+200D>👩"),
        ("👩\u200cx", "👩<U+200C>x"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f<U+FE0F>"),
        ("a\ufe0f", "a<U+FE0F>"),
        ("1\ufe0f", "1<U+FE0F>"),
        ("1\ufe0e\u20e3", "1<U+FE0E>\u20e3"),
        ("म\u200c\u200cम", "म<U+200C><U+200C>म"),
        ("م\u200c", "م<U+200C>"),
        ("\u200cم", "<U+200C>م"),
        ("م\u200ca", "م<U+200C>a"),
        ("क\u094d\u200d\u200d", "क\u094d<U+200D><U+200D>"),
        ("日\U000e0100", "日<U+E0100>"),
        ("🏴\U000e0067\U000e007f", "🏴<U+E0067><U+E007F>"),
        ("\u202eabc\u200f", "<U+202E>abc<U+200F>"),
        ("\x1b[31mred\r\n", "␛[31mred␍\n"),
        ("soft\xadhyphen", "soft<U+00AD>hyphen"),
    ],
)
def test_prose_shows_the_rest(body: str, shown: str) -> None:
    assert clean_prose(body) == shown


# ---------------------------------------------------------------------------------------------- cells

LINES = [
    "",
    "plain ascii",
    "Größe – “quoted” … ✓ ▲ ⏸ ─│┌",
    "日本語テキスト",
    "한국어 각",
    "ｱｲｳ ＡＢＣ",
    "e\u0301a\u0308\u0323 n\u0303",
    "हिन्दी में पाठ",
    "می\u200cخواهم",
    "क\u094d\u200dष",
    "👍 👍🏽 🚀 🫠 🪿 🫩",
    "❤ ❤\ufe0f ☎\ufe0f ⌚\ufe0f 1\ufe0f\u20e3",
    "👩\u200d🚀x 👨\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 👁\ufe0f\u200d🗨\ufe0f",
    "🇩🇪🇯🇵",
    "❤\u0301\ufe0f",
    "\u0301\ufe0fa\u200d",
    "␛[31m <U+202E> ␍␊",
    "䷀ ☰ 𝌆 ㋿ 〰",
    "a\nb\tc",
]


@pytest.mark.parametrize("line", LINES)
def test_the_width_is_the_one_that_the_toolkit_measures(line: str) -> None:
    assert cell_width(line) == cell_len(line)


def test_the_width_of_every_character_is_the_one_that_the_toolkit_measures() -> None:
    kept = (char for char in EVERYTHING if clean_prose(char) == char)
    assert names(char for char in kept if cell_width(char) != cell_len(char)) == []


@given(strings)
@pytest.mark.parametrize("cleaner", CLEANERS)
def test_the_width_of_clean_text_is_the_one_that_the_toolkit_measures(cleaner: Callable[[str], Clean], s: str) -> None:
    assert cell_width(cleaner(s)) == cell_len(cleaner(s))


@pytest.mark.parametrize(
    ("line", "cells", "shown"),
    [
        ("deploy", 6, "deploy"),
        ("deploy", 7, "deploy"),
        ("deploy", 5, "depl…"),
        ("deploy", 1, "…"),
        ("deploy", 0, ""),
        ("deploy", -3, ""),
        ("", 0, ""),
        ("", 5, ""),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("日本語", 3, "日…"),
        ("日本語", 2, "…"),
        ("日", 1, "…"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("aé\u0301", 2, "aé\u0301"),
        ("👩\u200d🚀👩\u200d🚀", 4, "👩\u200d🚀👩\u200d🚀"),
        ("👩\u200d🚀👩\u200d🚀", 3, "👩\u200d🚀…"),
        ("a❤\ufe0fb", 4, "a❤\ufe0fb"),
        ("a❤\ufe0fb", 3, "a…"),
        ("a❤\ufe0f", 2, "a…"),
        ("a\tb\nc", 5, "a␉b␊c"),
        ("a\tb\nc", 4, "a␉b…"),
    ],
)
def test_cut(line: str, cells: int, shown: str) -> None:
    assert cut(clean_prose(line), cells) == shown


@given(strings, st.integers(-2, 40))
@example("\t" * 9, 4)
@pytest.mark.parametrize("cleaner", CLEANERS)
def test_no_control_comes_out_of_a_cut(cleaner: Callable[[str], Clean], s: str, cells: int) -> None:
    short = cut(cleaner(s), cells)
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in short)
    assert cell_len(short) <= max(0, cells)


@given(strings, st.integers(-2, 40))
@example("a❤\ufe0f", 2)
@example("\u0301日", 1)
@pytest.mark.parametrize("cleaner", [clean_line, clean_prose])
def test_a_cut_line_fits_and_is_the_beginning(cleaner: Callable[[str], Clean], s: str, cells: int) -> None:
    line = Clean(cleaner(s).replace("\n", " ").replace("\t", " "))
    short = cut(line, cells)
    assert cell_len(short) <= max(0, cells)
    if cell_len(line) <= cells:
        assert short == line
    elif cells > 0:
        assert short.endswith("…")
        assert line.startswith(short[:-1])
        # One more cluster, which takes at most two cells, would not have fit.
        assert cell_len(short) >= cells - 1
        rest = line[len(short) - 1 :]
        assert unicodedata.category(rest[0])[0] != "M"
        assert rest[0] not in "\u200c\u200d\ufe0e\ufe0f"
    else:
        assert short == ""


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (-1, "0:00"),
        (-5_000_000, "0:00"),
        (0, "0:00"),
        (999, "0:00"),
        (1_000, "0:01"),
        (31_999, "0:31"),
        (134_000, "2:14"),
        (3_599_999, "59:59"),
        (3_600_000, "1:00:00"),
        (3_723_000, "1:02:03"),
        (86_399_999, "23:59:59"),
        (86_400_000, "1d 0h"),
        (273_600_000, "3d 4h"),
        (100 * 86_400_000, "100d 0h"),
        (LONGEST_MS, "7300d 0h"),
        (LONGEST_MS + 1, "unknown time"),
        pytest.param(10**5_000, "unknown time", id="endless"),
        pytest.param(-(10**5_000), "0:00", id="endless and negative"),
    ],
)
def test_since(ms: int, shown: str) -> None:
    assert since(ms) == shown


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (0, "0"),
        (1_234, "1,234"),
        (-1_234, "-1,234"),
        (2**53 - 1, "9,007,199,254,740,991"),
        (2**53, "over 2^53"),
        pytest.param(10**5_000, "over 2^53", id="endless"),
        (-(2**53), "under -2^53"),
    ],
)
def test_every_count_can_be_written(n: int, shown: str) -> None:
    assert numeral(n) == shown
