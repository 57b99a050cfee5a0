from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Frame, Link, Manipulator, Mount, State
from armillary.errors import StateError, UnknownName
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.frame import FrameRef
from armillary.model.joints.revolute import Revolute
from armillary.model.link_pairs import Pairs
from armillary.model.rules import Rule, Rules
from armillary.model.shapes.box import Box
from armillary.model.tree import Base, Tree
from armillary.spatial.pose import IDENTITY
from work import lines

BOX = (Box(size=(0.1, 0.1, 0.1)),)


def part(name: str, links: int = 1) -> Manipulator:
    """A rigid part of some links, with a frame on top."""
    top = (Frame(name=f"{name}_top"),)
    first = Link(name=f"{name}_0", collisions=BOX, frames=top)
    more = [
        Link(name=f"{name}_{k}", parent=f"{name}_0", collisions=BOX)
        for k in range(1, links)
    ]
    return Manipulator(name=name, links=(first, *more))


def chain(name: str, count: int) -> list[Link]:
    links = [Link(name=f"{name}0", collisions=BOX)]
    for k in range(1, count):
        joint = Revolute(axis=(0.0, 0.0, 1.0))
        below = f"{name}{k - 1}"
        links.append(Link(name=f"{name}{k}", parent=below, joint=joint, collisions=BOX))
    return links


@pytest.fixture
def cell() -> Cell:
    """An arm with a gripper bolted to it, on a table, and parts."""
    tip = Link(name="flange", parent="arm3")
    hand = [
        Link(name="mount"),
        Link(name="palm", parent="mount", collisions=BOX, frames=(Frame(name="tcp"),)),
        *(
            Link(
                name=name,
                parent="palm",
                joint=Revolute(axis=(1.0, 0.0, 0.0)),
                collisions=BOX,
            )
            for name in ("left", "right")
        ),
    ]
    return Cell(
        manipulators=(
            Manipulator(name="arm", links=(*chain("arm", 4), tip)),
            Manipulator(name="hand", links=tuple(hand)),
            part("table"),
            part("peg"),
            part("tray", 3),
        ),
        mounts=(
            Mount(manipulator="table"),
            Mount(manipulator="arm", on="table_top"),
            Mount(manipulator="hand", on="flange"),
            Mount(manipulator="tray", on="table_top", bolted=False),
        ),
    )


def removed(cell: Cell, before: State, after: State) -> set[tuple[str, str]]:
    assert set(cell.pairs(after)) <= set(cell.pairs(before))
    return set(cell.pairs(before)) - set(cell.pairs(after))


def test_grip_then_release_restores_the_pairs(cell: Cell):
    state = cell.home
    held = state.grip("peg", by="tcp")
    assert removed(cell, state, held) == {("hand/palm", "peg/peg_0")}
    assert cell.pairs(held.release("peg")) == cell.pairs(state)
    assert (
        cell.pairs(held).why("peg_0", "palm").reason
        == "'peg' is attached to 'hand/palm'"
    )


def test_attaching_removes_just_the_pairs_that_touch(cell: Cell):
    state = cell.home.place("tray", np.eye(4))
    held = state.attach("tray", "tcp")
    touching = {("hand/palm", f"tray/tray_{k}") for k in range(3)}
    assert removed(cell, state, held) == touching
    # On a frame of a link without shapes, the next one below has them.
    on_flange = state.attach("tray", "flange")
    assert removed(cell, state, on_flange) == {
        ("arm/arm3", f"tray/tray_{k}") for k in range(3)
    }


def test_part_on_part_on_tool(cell: Cell):
    state = cell.home.place("tray", np.eye(4))
    held = state.grip("tray", by="tcp")
    stacked = held.grip("peg", by="tray_top")
    assert removed(cell, held, stacked) == {("peg/peg_0", "tray/tray_0")}
    assert ("hand/palm", "peg/peg_0") in cell.pairs(stacked)
    assert cell.pairs(stacked.release("peg")) == cell.pairs(held)


def test_what_is_mounted_on_a_link_may_touch_it(cell: Cell):
    home = cell.pairs(cell.home)
    assert (
        home.why("tray_2", "table_0").reason == "'tray' is mounted on 'table/table_0'"
    )
    assert home.why("arm0", "table_0").reason == "'arm' is fixed to 'table/table_0'"
    assert home.why("arm1", "table_0").tested
    assert home.why("palm", "arm3").reason == "'hand' is fixed to 'arm/flange'"
    assert home.why("left", "arm3").tested
    moved = cell.home.grip("tray", by="tcp")
    assert cell.pairs(moved).why("tray_2", "table_0").tested
    back = moved.attach("tray", "table_top", replace=True)
    assert cell.pairs(back) == home


def test_a_moving_link_is_tested_against_what_carries_a_base_without_shapes():
    joint = Revolute(axis=(0.0, 0.0, 1.0))
    l1 = Link(name="l1", parent="base", joint=joint, collisions=BOX)
    robot = Manipulator(name="r", links=[Link(name="base"), l1])
    table = Manipulator(name="t", links=[Link(name="top", collisions=BOX)])
    for bolted in (True, False):
        mount = Mount(manipulator="r", on="top", bolted=bolted)
        cell = Cell(manipulators=[table, robot], mounts=[mount])
        assert cell.pairs(cell.home).why("l1", "top").reason == "adjacent"
        for rules in (Rules().include("l1", "top"), Rules.everything()):
            assert ("r/l1", "t/top") in cell.pairs(cell.home, rules=rules)


def test_what_a_moving_link_without_shapes_holds_is_adjacent_to_the_next(cell: Cell):
    joint = Revolute(axis=(0.0, 0.0, 1.0))
    wrist = Link(name="wrist", parent="arm3", joint=joint)
    arm3 = cell.manipulators[0]
    cell = cell.exchange(Manipulator(name="arm", links=(*arm3.links, wrist)))
    held = cell.home.grip("peg", by="wrist")
    assert removed(cell, cell.home, held) == {("arm/arm3", "peg/peg_0")}
    assert cell.pairs(held).why("peg_0", "arm3").reason == "adjacent"
    rules = cell.rules.include("peg_0", "arm3")
    assert ("arm/arm3", "peg/peg_0") in cell.pairs(held, rules=rules)


def test_fingers_may_touch_what_the_palm_holds(cell: Cell):
    rules = cell.rules.let_touch("left", "right", held_by="palm", part="peg/*")
    free, held = cell.home, cell.home.grip("peg", by="tcp")
    assert cell.pairs(free, rules=rules) == cell.pairs(free)
    before, after = (set(cell.pairs(held, rules=r)) for r in (cell.rules, rules))
    assert before - after == {("hand/left", "peg/peg_0"), ("hand/right", "peg/peg_0")}
    assert after < before
    other = cell.home.grip("tray", by="tcp")
    assert cell.pairs(other, rules=rules) == cell.pairs(other)
    elsewhere = cell.home.grip("peg", by="left")
    assert cell.pairs(elsewhere, rules=rules) == cell.pairs(elsewhere)


def test_what_is_attached_says_so_also_where_it_may_touch(cell: Cell):
    held = cell.home.grip("tray", by="tcp").grip("peg", by="tray_top")
    rules = cell.rules.let_touch("peg_0", held_by="palm")
    reason = cell.pairs(held, rules=rules).why("peg_0", "tray_0").reason
    assert reason == "'peg' is attached to 'tray/tray_0'"


def test_pairs_of_many_grips_are_not_kept_for_ever(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("armillary.model.collision_pairs.MOST_KEPT", 2)
    jury = CollisionPairs(cell.workcell, cell.rules)
    holders = [cell.frame(f"arm{k}").link for k in range(4)]
    trees = [
        Tree.of(cell.workcell).attached(
            {3: Base(FrameRef(holder, IDENTITY), mode="attached")}
        )
        for holder in holders
    ]
    found = list(map(jury.pairs, trees))
    assert len(jury._known) <= 2
    again = list(map(jury.pairs, trees))
    assert found == again


def test_pairs_do_not_depend_on_where_things_are(cell: Cell):
    state = cell.home.grip("peg", by="tcp")
    pairs = cell.pairs(state)
    q = np.linspace(-1.0, 1.0, len(cell.joint_names))
    assert cell.pairs(state.replace(q=q)) is pairs
    assert cell.pairs(State.from_json(state.to_json())) is pairs
    assert cell.pairs(state, rules=Rules.from_json(cell.rules.to_json())) is pairs


def test_a_second_state_takes_as_little_work_among_many_links():
    cell = Cell(
        manipulators=tuple(
            Manipulator(name=f"m{k}", links=tuple(chain("a", 20))) for k in range(20)
        )
    )
    cell.pairs(cell.home)
    state = cell.home.replace(q=np.ones(len(cell.joint_names)))
    assert lines(lambda: cell.pairs(state)) < 100


def test_a_cell_holds_its_own_rules(cell: Cell):
    rules = Rules.nothing().include("left", "right")
    own = Cell(manipulators=cell.manipulators, mounts=cell.mounts, rules=rules)
    assert tuple(own.pairs(own.home)) == (("hand/left", "hand/right"),)
    assert own.pairs(own.home) == cell.pairs(cell.home, rules=rules)
    assert pickle.loads(pickle.dumps(own)).rules == rules
    assert Cell.of(own.workcell).rules == rules


def test_rules_of_a_call_must_fit(cell: Cell):
    with pytest.raises(UnknownName, match=r"Did you mean 'palm'\?"):
        cell.pairs(cell.home, rules=Rules().exclude("plam", "left"))
    with pytest.raises(StateError):
        cell.pairs(State(q=(0.0,)))


def test_many_sets_of_rules_are_not_kept_for_ever(cell: Cell):
    for k in range(40):
        rules = Rules().extended([Rule(a="palm", b="left", reason=str(k))])
        assert cell.pairs(cell.home, rules=rules).why("left", "palm").reason == str(k)
    assert len(vars(cell.workcell)["kept"]["pairs of rules"]) < 40


def test_threads_share_a_cell(cell: Cell):
    states = [
        cell.home,
        cell.home.grip("peg", by="tcp"),
        cell.home.grip("tray", by="tcp"),
    ]
    found: list[list[Pairs]] = []

    def ask() -> None:
        found.append([cell.pairs(state) for state in states])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(each == found[0] for each in found)


def test_a_circle_from_elsewhere_is_refused():
    bare = [Manipulator(name=name, links=(Link(name=name),)) for name in ("one", "two")]
    cell = Cell(manipulators=tuple(bare))
    text = (
        '{"placements": [{"manipulator": "one", "on": "two"},'
        ' {"manipulator": "two", "on": "one"}]}'
    )
    with pytest.raises(StateError, match="'one' is attached to itself"):
        cell.pairs(State.from_json(text))


def test_it_survives_a_file(cell: Cell, tmp_path):
    rules = cell.rules.include("arm/*", "arm/*").let_touch("left", held_by="palm")
    own = Cell(manipulators=cell.manipulators, mounts=cell.mounts, rules=rules)
    arm.save(own, tmp_path / "a.cell.json")
    again = arm.load(tmp_path / "a.cell.json")
    assert again == own
    assert again.pairs(again.home) == own.pairs(own.home)
