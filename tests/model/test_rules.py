from __future__ import annotations

import pickle

import pytest

from armillary.errors import FormatError, ModelError, UnknownName
from armillary.model import rules as module
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.rules import ADJACENT, RIGID, Rule, Rules, Touch
from armillary.model.workcell import Workcell

SETS = {
    "default": Rules(),
    "actin": Rules.actin(),
    "robwork": Rules.robwork(),
    "robwork with a setup": Rules.robwork(has_setup=True),
    "everything": Rules.everything(),
    "nothing": Rules.nothing(),
    "more": Rules()
    .include("arm/*", "arm/*")
    .exclude("arm/a", "REGEXtable/.*", reason="never")
    .let_touch("arm/left", "arm/right", held_by="arm/palm", part="part/*"),
}


@pytest.fixture(params=SETS, ids=lambda name: name.replace(" ", "_"))
def rules(request: pytest.FixtureRequest) -> Rules:
    return SETS[request.param]


def test_rules_are_values(rules: Rules):
    assert Rules.from_json(rules.to_json()) == rules
    copy = pickle.loads(pickle.dumps(rules))
    assert copy == rules
    assert hash(copy) == hash(rules)
    assert sum(rules == other for other in SETS.values()) == 1
    with pytest.raises(AttributeError):
        rules.within = True  # type: ignore[misc]


def test_further_rules_come_last_and_change_nothing_else(rules: Rules):
    more = rules.exclude("a", "b")
    assert more.rules == (*rules.rules, Rule(a="a", b="b"))
    assert (more.within, more.between) == (rules.within, rules.between)
    assert more.touches == rules.touches


def test_by_default_neighbours_are_left_out():
    assert Rules().rules == (RIGID, ADJACENT)
    assert not Rules().within
    assert Rules().between
    assert Rules.actin().rules == ()


def test_patterns_leave_neighbours_alone_unless_instructed_otherwise():
    wheres = [
        Rules().include(*sides).rules[-1].where
        for sides in (("a", "b"), ("a*", "b"), ("a", "REGEXb"))
    ]
    assert wheres == ["any", "apart", "apart"]
    assert Rules().include("*", "*", where="any").rules[-1].where == "any"


def test_without_a_manipulator_its_names_are_gone():
    rules = (
        Rules()
        .exclude("arm/a", "table/top")
        .exclude("table/*", "lamp/x")
        .exclude("*", "lamp/x")
        .let_touch("arm/a", "lamp/x", held_by="gripper/palm")
        .let_touch("gripper/a", held_by="arm/a")
        .let_touch("arm/b", held_by="gripper/palm")
    )
    without = rules.without("arm")
    assert [rule.a for rule in without.rules] == ["*", "*", "table/*", "*"]
    assert without.touches == (Touch(held_by="gripper/palm", links=("lamp/x",)),)
    assert rules.without("nobody") is rules


def test_all_names_are_reported_once():
    sides = SETS["more"].sides
    assert sides[:2] == ("*", "arm/*")
    assert set(sides) >= {"arm/a", "REGEXtable/.*", "arm/palm", "part/*", "arm/right"}
    assert len(set(sides)) == len(sides)


def test_a_rule_says_what_it_is():
    rule = Rule(a="a/b", b="*", where="rigid", reason="never")
    assert str(rule) == "exclude 'a/b' and '*' where rigid (never)"
    assert str(Rule(a="x", b="y", tested=True)) == "include 'x' and 'y' (user)"


@pytest.mark.parametrize("side", ["", "REGEX(", "REGEX(?=a)", "*" * 2000])
def test_bad_sides_are_refused(side: str):
    for sides in ({"a": side, "b": "x"}, {"a": "x", "b": side}):
        with pytest.raises(ModelError):
            Rule(**sides)
    with pytest.raises(ModelError):
        Touch(held_by="a", links=("b", side))


def test_an_unknown_choice_of_pairs_is_reported():
    with pytest.raises(UnknownName, match=r"Did you mean 'adjacent'\?"):
        Rule(a="x", b="y", where="ajacent")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"within": 1}',
        '{"witin": true}',
        '{"rules": [{"a": "x"}]}',
        '{"rules": [{"a": "x", "b": "REGEX("}]}',
        '{"rules": [{"a": "x", "b": "y", "where": "here"}]}',
        b"\xff",
        "[" * 100_000,
    ],
)
def test_json_that_holds_no_rules_is_refused(text: str | bytes):
    with pytest.raises(FormatError, match="holds no rules"):
        Rules.from_json(text)


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch):
    patterns = [Rule(a=f"a{k}*", b="b") for k in range(10_001)]
    with pytest.raises(ModelError, match="10001 different patterns"):
        Rules(rules=tuple(patterns))
    assert len(Rules(rules=tuple(patterns[:10_000])).rules) == 10_000
    monkeypatch.setattr(module, "MOST_RULES", 3)
    with pytest.raises(ModelError, match="more than 3 rules"):
        Rules(rules=(Rule(a="a", b="b"),) * 4)


def test_a_cell_has_rules_about_what_is_in_it():
    arm = Manipulator(
        name="arm", links=(Link(name="base"), Link(name="tip", parent="base"))
    )
    other = Manipulator(name="other", links=(Link(name="base"),))
    cell = Workcell(
        manipulators=(arm, other), rules=Rules().exclude("tip", "other/base")
    )
    assert cell.rules.rules[-1].a == "tip"
    assert pickle.loads(pickle.dumps(cell)) == cell
    assert Workcell(manipulators=(arm, other)).rules == Rules()
    Workcell(
        rules=Rules().exclude("nobody*", "REGEXno.*")
    )  # patterns may match nothing
    with pytest.raises(UnknownName, match=r"Did you mean 'tip'\?"):
        Workcell(manipulators=(arm,), rules=Rules().exclude("arm/tipp", "base"))
    with pytest.raises(ModelError, match="not unique"):
        Workcell(manipulators=(arm, other), rules=Rules().exclude("tip", "base"))
    with pytest.raises(UnknownName):
        Workcell(manipulators=(arm,), rules=Rules().let_touch("tip", held_by="hand"))


def test_editing_a_cell_keeps_its_rules():
    parts = [Manipulator(name=name, links=(Link(name=f"{name}_0"),)) for name in "abc"]
    rules = Rules().exclude("a/*", "b/b_0").exclude("a/a_0", "c/c_0")
    cell = Workcell(manipulators=tuple(parts[:2])).add(parts[2]).replace(rules=rules)
    assert cell.mount("b", on="a/a_0").rules is rules
    assert cell.exchange(parts[0]).rules is rules
    without = cell.remove("c")
    assert without.rules == Rules().exclude("a/*", "b/b_0")
    assert without.remove("b").rules == Rules()
    with pytest.raises(UnknownName, match="a_0"):
        cell.exchange(Manipulator(name="a", links=(Link(name="other"),)))
    with pytest.raises(UnknownName):
        without.replace(rules=rules)


def test_names_must_be_texts():
    rules = Rules()
    for call in (rules.include_self, rules.without):
        with pytest.raises(ModelError, match=r"name of a manipulator, .*, not 3"):
            call(3)
    for call in (rules.include, rules.exclude):
        with pytest.raises(ModelError, match="name of a link or a pattern, not 3"):
            call("a/b", 3)
