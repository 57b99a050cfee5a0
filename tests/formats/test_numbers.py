from __future__ import annotations

import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import FormatError
from armillary.formats.diagnostic import Place, Report
from armillary.formats.numbers import (
    number_text,
    plain_number,
    plain_numbers,
    read_numbers,
)

PLACE = Place("a.urdf", 3, 7)


def read(text: str, count: int | None = None):
    report = Report()
    values = read_numbers(
        text, count, what="'xyz'", place=PLACE, report=report, commas=True
    )
    return values, [str(diagnostic) for diagnostic in report.diagnostics]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_survive_writing_and_reading_bit_for_bit(numbers):
    values, findings = read(" ".join(map(number_text, numbers)), len(numbers))
    assert findings == []
    assert values is not None
    assert list(map(float.hex, values)) == list(map(float.hex, numbers))


@given(st.text(st.sampled_from("+-.,0123456789eE_naifx \t\n\u00a0\u0663"), max_size=12))
def test_what_is_read_is_finite_and_means_what_python_means(text):
    values, findings = read(text)
    if values is None:
        assert len(findings) == 1
    else:
        assert findings == []
        assert values == tuple(float(word) for word in text.split())
        assert all(map(math.isfinite, values))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1 2\t3\n4\r5", (1, 2, 3, 4, 5)),
        ("  -1.5e-3  ", (-0.0015,)),
        ("+.5 5. 1E2", (0.5, 5, 100)),
        ("", ()),
        ("1e-999", (0,)),
        ("0.1" + "0" * 900, (0.1,)),
    ],
)
def test_decimal_numbers_are_read(text, numbers):
    assert read(text) == (numbers, [])


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "Infinity", "1e999"])
def test_what_is_not_finite_is_refused(text):
    assert_refused(text)


@pytest.mark.parametrize("text", ["1e", "--1", "1..2", "1e5.0", "0x10", "1_000"])
def test_what_is_nearly_a_number_is_refused(text):
    assert_refused(text)


@pytest.mark.parametrize("text", ["one", "1.0f", "\u0661", "1\u00a02", "1;2", "\x00"])
def test_what_is_not_a_number_is_refused(text):
    assert_refused(text)


def assert_refused(text: str) -> None:
    values, findings = read(f"0 {text} 1", 3)
    assert values is None
    assert len(findings) == 1
    assert findings[0].startswith("a.urdf:3:7: error[bad-number]: 'xyz': ")


@pytest.mark.parametrize("text", ["1,2,-3", "1, 2, -3", " 1 ,2\n, -3 "])
def test_commas_between_all_numbers_are_spaces(text):
    values, findings = read(text, 3)
    assert values == (1.0, 2.0, -3.0)
    assert findings == [
        f"a.urdf:3:7: warning[bad-number]: 'xyz' has commas: {text!r}; commas count as "
        "spaces"
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("1,5", 1), ("1,5", 2), ("0,1 0,2 0,3", 3), ("0,1 2,5 3", 3), ("0,1 2", 3)),
        *(("1,2 3", 3), ("1,,2", 3), (",1,2", 3), ("1,2,x", 3), ("1, 2, 3", None)),
    ],
)
def test_commas_get_the_advice_they_need(text, count):
    values, findings = read(text, count)
    assert values is None
    advice = "Write a decimal point, not a comma, and separate numbers by spaces."
    assert findings[0].endswith(advice) or "'x' is not a number" in findings[0]


def test_a_wrong_count_says_both_counts_and_the_text():
    assert read("1 2", 3)[1] == [
        "a.urdf:3:7: error[wrong-count]: 'xyz' must hold 3 numbers, not 2: '1 2'"
    ]
    assert "must hold 1 number, not 0: ''" in read("", 1)[1][0]


def test_a_number_as_long_as_a_book_is_refused_shortly():
    values, findings = read("1" * 5_000_000, 1)
    assert values is None
    assert "has 5000000 characters, more than 1000" in findings[0]
    assert len(findings[0]) < 200


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (3, "3"),
        (-0.0, "-0.0"),
        (1e-7, "1e-07"),
        (np.float64(0.1), "0.1"),
        (np.float32(0.5), "0.5"),
        (sys.float_info.max, "1.7976931348623157e+308"),
    ],
)
def test_numbers_are_written_shortest(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_what_is_not_finite_is_not_written(value):
    with pytest.raises(FormatError, match="Only finite numbers can"):
        number_text(value)


@pytest.mark.parametrize("count", [None, 1, 3])
@pytest.mark.parametrize(
    "text",
    [
        *("1", " 1 2\t3\r\n", "1 2", "-1e3 +.5 2.", "1,2,3", "1 , 2 , 3", "", " "),
        *(
            "nan",
            "1e999",
            "1\x0c2",
            "1\u00a02",
            "\u0661",
            "1_0",
            "0x1",
            "--1",
            "1" * 300,
        ),
    ],
)
def test_plain_numbers_are_those_that_are_read_without_fault(text: str, count):
    values, findings = read(text, count)
    is_plain = bool(values) and not findings and len(text) < 200
    assert plain_numbers(text, count) == (values if is_plain else None)


DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


@given(st.text(st.sampled_from("+-.019eE_na \t\n\x0b\u0663,"), max_size=9))
def test_plain_numbers_are_decimal_ones_with_white_space_between(text):
    words = [word for word in re.split("[ \t\r\n]+", text) if word]
    are_decimal = all(re.fullmatch(DECIMAL, word) for word in words)
    values = tuple(map(float, words)) if words and are_decimal else None
    if values is not None and not all(map(math.isfinite, values)):
        values = None
    for count in (None, 1, 2):
        expected = values if count in {None, len(words)} else None
        assert plain_numbers(text, count) == expected
    is_one = values is not None and words == [text]
    assert plain_number(text) == (values[0] if values and is_one else None)
