from __future__ import annotations

import pickle

import msgspec
import pytest

from armillary.errors import FormatError
from armillary.formats.diagnostic import Budget, Diagnostic, Place, Report, Severity
from armillary.limits import DIAGNOSTICS

PLACE = Place("cell.urdf", 12, 3)


def finding(message: str = "it is bent", **changes) -> Diagnostic:
    whole = Diagnostic(
        place=PLACE, severity=Severity.ERROR, code="bent", message=message
    )
    return msgspec.structs.replace(whole, **changes)


def test_a_diagnostic_reads_as_compilers_write_it():
    assert str(finding()) == "cell.urdf:12:3: error[bent]: it is bent"


def test_the_hint_follows_the_message():
    assert str(finding(hint="Straighten it.")).endswith("it is bent. Straighten it.")
    assert str(finding("is it?", hint="Look.")).endswith("is it? Look.")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("a"), "a"),
        (Place("a", 2), "a:2"),
        (Place("a", 2, 5), "a:2:5"),
        (Place("a\nb\x1b"), r"a\nb\x1b"),
    ],
)
def test_a_place_says_what_is_known_of_it(place, text):
    assert str(place) == text


def test_a_diagnostic_is_one_line_whatever_the_file_says():
    text = str(finding("a\nb", hint="c\rd\u2028", place=Place("x\ny", 1, 1)))
    assert text.isprintable()


def test_diagnostics_are_values():
    one = finding()
    assert one == finding()
    assert hash(one) == hash(finding())
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.code = "other"  # type: ignore[misc]


def test_warnings_and_notes_raise_nothing_and_are_kept_in_order():
    report = Report()
    report.note(PLACE, "n", "a note")
    report.warning(PLACE, "w", "a warning", hint="Mend it.")
    report.raise_if_errors()
    assert [d.code for d in report.diagnostics] == ["n", "w"]
    assert report.diagnostics[1].hint == "Mend it."
    assert report.count(Severity.ERROR) == 0


def test_all_diagnostics_are_raised_at_once_with_the_errors_first():
    report = Report()
    report.warning(PLACE, "w", "doubtful")
    report.error(PLACE, "e1", "bad")
    report.error(PLACE, "e2", "worse")
    with pytest.raises(FormatError) as caught:
        report.raise_if_errors()
    assert [d.code for d in caught.value.diagnostics] == ["e1", "e2", "w"]
    assert str(caught.value).splitlines() == [
        "cell.urdf:12:3: error[e1]: bad",
        "cell.urdf:12:3: error[e2]: worse",
        "cell.urdf:12:3: warning[w]: doubtful",
    ]
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.diagnostics == caught.value.diagnostics


def test_a_flood_of_warnings_does_not_hide_the_error():
    report = Report(budget=Budget({DIAGNOSTICS: 3}))
    for i in range(10):
        report.warning(PLACE, "w", f"warning {i}")
    report.error(PLACE, "e", "the error")
    with pytest.raises(FormatError) as caught:
        report.raise_if_errors()
    assert str(caught.value).splitlines() == [
        "cell.urdf:12:3: error[e]: the error",
        "cell.urdf:12:3: warning[w]: warning 0",
        "cell.urdf:12:3: warning[w]: warning 1",
        "cell.urdf:12:3: warning[w]: warning 2",
        "cell.urdf: note[more]: ... and 7 more warnings",
    ]
    assert report.count(Severity.WARNING) == 10


def test_what_is_tolerated_is_an_error_for_the_strict():
    for strict, severity in ((False, Severity.WARNING), (True, Severity.ERROR)):
        report = Report(strict=strict)
        report.tolerating("it is left out").error(PLACE, "bent", "it is bent")
        (found,) = report.diagnostics
        assert found.severity is severity
        assert found.message == "it is bent" + ("" if strict else "; it is left out")
        assert report.faults == 0


def test_a_guess_is_an_error_but_for_the_lenient():
    for lenient, severity in ((True, Severity.WARNING), (False, Severity.ERROR)):
        report = Report(lenient=lenient)
        view = report.guessing("it is straight")
        view.error(PLACE, "bent", "it is bent", hint="Straighten it.")
        (found,) = report.diagnostics
        assert found.severity is severity
        assert view.faults == 1
        if lenient:
            assert found.message == "it is bent; it is straight"
        else:
            assert found.hint == "Straighten it. With lenient=True, it is straight."


def test_inside_of_what_is_tolerated_nothing_is_worse():
    report = Report()
    note = report.tolerating("a", Severity.NOTE)
    for view in (note.tolerating("b"), note.guessing("b"), note):
        view.error(PLACE, "bent", "it is bent")
    assert {found.severity for found in report.diagnostics} == {Severity.NOTE}


def test_a_loop_over_a_faulty_file_is_cut_short():
    report = Report(budget=Budget({DIAGNOSTICS: 3}))
    with pytest.raises(FormatError) as caught:
        for _ in report.bounded(range(1000)):
            report.tolerating("x").guessing("y").error(PLACE, "odd", "it is odd")
            report.error(PLACE, "bent", "it is bent")
    last = str(caught.value.diagnostics[-1])
    assert "and 28 more errors, 28 more warnings; the rest of the file" in last


def test_diagnostics_beyond_the_bound_are_counted_but_not_kept():
    report = Report(budget=Budget({DIAGNOSTICS: 5}))
    for i in range(100_000):
        report.error(PLACE, "e", f"error {i}")
    assert len(report.diagnostics) == 6
    assert report.diagnostics[-1].message == "... and 99995 more errors"
