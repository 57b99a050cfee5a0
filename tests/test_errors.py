from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import armillary as arm
from armillary import errors
from work import counted

CLASSES = [
    getattr(errors, name)
    for name in errors.__all__
    if isinstance(getattr(errors, name), type)
]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_one_of_ours_and_survives_pickling(kind):
    error = kind("it broke")
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, errors.ArmillaryError)
    assert type(copy) is kind
    assert str(copy) == str(error) == "it broke"
    assert copy.args == error.args


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (errors.UnknownName, LookupError),
        (errors.ShapeError, ValueError),
        (errors.ModelError, ValueError),
        (errors.JointError, errors.ModelError),
    ],
)
def test_errors_are_also_the_builtin_kind_people_catch(kind, base):
    assert issubclass(kind, base)


def test_format_error_tells_every_diagnostic_on_a_line_of_its_own():
    error = errors.FormatError("a.urdf:1:2: error[x]: one", "a.urdf:3:4: error[y]: two")
    assert error.diagnostics == error.args
    assert str(error) == "a.urdf:1:2: error[x]: one\na.urdf:3:4: error[y]: two"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_unknown_says_what_was_asked_what_is_near_and_what_exists():
    error = errors.unknown(
        "frame", "tool_0", ["base", "flange", "tool0"], owner="cell 'cell'"
    )
    assert isinstance(error, errors.UnknownName)
    assert str(error) == (
        "no frame named 'tool_0' in cell 'cell'. Did you mean 'tool0'? "
        "Known frames: base, flange, tool0."
    )


def test_unknown_ends_with_the_hint():
    error = errors.unknown("package", "ur", [], hint="Name it in packages=.")
    assert str(error) == (
        "no package named 'ur'. There are no packages. Name it in packages=."
    )


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("frame", "frames"), ("body", "bodies"), ("key", "keys"), ("mesh", "meshes")],
)
def test_unknown_uses_the_plural_of_the_kind(kind, plural):
    assert f"Known {plural}: a." in str(errors.unknown(kind, "zzz", ["a"]))


def test_unknown_finds_the_nearest_name_whatever_its_case():
    assert "Did you mean 'Tool0'?" in str(errors.unknown("frame", "TOOL0", ["Tool0"]))


def test_unknown_guesses_nothing_when_nothing_is_near():
    assert "Did you mean" not in str(errors.unknown("frame", "xyz", ["base", "tool"]))


def test_unknown_lists_a_dozen_names_and_counts_the_rest():
    text = str(errors.unknown("joint", "?", [f"j{i}" for i in range(20)]))
    assert text.endswith("j10, j11 and 8 more.")


def test_unknown_compares_few_of_many_names_and_finds_the_right_one():
    names = [f"robot_{i}/link_{j}" for i in range(100) for j in range(300)]
    with counted() as work:
        text = str(errors.unknown("frame", "robot_7/lonk_9", names))
    assert "Did you mean 'robot_7/link_9'?" in text
    assert len(text) < 500
    assert work.lines < 100 * len(names)  # comparing all takes ten times that


def test_names_are_quoted_when_they_could_be_misread():
    text = str(errors.unknown("link", "x", ["a b", "", "c,d", "plain/name_1.2"]))
    assert text.endswith("Known links: 'a b', '', 'c,d', plain/name_1.2.")


def test_a_name_that_is_not_a_text_is_shown_as_it_is():
    assert str(errors.unknown("link", 3, ["3"])).startswith("no link named 3.")


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=20))
def test_unknown_is_one_short_printable_line_whatever_the_names(name, known):
    text = str(errors.unknown("link", name, known))
    assert text.isprintable()
    # At worst each character is an escape of ten characters.
    assert len(text) < 200 + 14 * 10 * 70


def test_quote_cuts_the_middle_of_a_long_name():
    text = errors.quote("a" * 500 + "z" * 500)
    assert len(text) == errors.LONGEST_NAME_SHOWN + 2
    assert text.startswith("'aaa")
    assert text.endswith("zzz'")
    assert "..." in text


def test_quote_escapes_what_would_deceive_a_reader():
    assert errors.quote("a\x1b[31m\u202eb\ud800") == r"'a\x1b[31m\u202eb\ud800'"


def test_printable_keeps_readable_text_and_makes_one_line():
    assert errors.printable("Größe 3 µm") == "Größe 3 µm"
    assert errors.printable("a\nb\tc") == r"a\nb\tc"


def test_kinds_of_several_words_have_their_plural() -> None:
    for kind, plural in (
        ("form of a pose", "forms of a pose"),
        ("choice of axes", "choices of axes"),
        ("manipulator or group", "manipulators or groups"),
    ):
        assert f"Known {plural}: a." in str(errors.unknown(kind, "x", ["a"]))


def test_a_bare_name_is_compared_with_the_last_part_of_qualified_ones() -> None:
    error = errors.unknown("joint", "elbw", ["arm/elbow", "arm/wrist"])
    assert "Did you mean 'arm/elbow'?" in str(error)
    assert errors.suggestion("zzz", ["arm/elbow"]) == ""


def test_a_link_called_world_is_not_listed_beside_the_world():
    robot = arm.Manipulator(name="robot", links=[arm.Link(name="world")])
    with pytest.raises(errors.UnknownName) as caught:
        arm.Cell(manipulators=[robot]).fk("tool")
    assert str(caught.value).endswith("Known frames: world.")
