"""Laws of cells and states, tried on random ones of every kind."""

from __future__ import annotations

import itertools
import pickle
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from armillary import Cell, Link, Pose, State
from armillary.errors import StateError
from armillary.kernel.references import interpret
from armillary.model.link_poses import poses_of
from armillary.model.mount import WORLD
from strategies import (
    carriers,
    cells,
    cells_and_states,
    laws,
    manipulators,
    movable,
    poses,
    states,
    vectors,
)

Array = npt.NDArray[np.float64]


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, atol=1e-9)


def foot(cell: Cell, state: State, name: str, *, on: str) -> Array:
    """The pose of what a mount places in a frame: the inner frame of the base."""
    manipulator = cell.manipulators[cell.index[name]]
    base = manipulator.links[manipulator.base]
    X = cell.pose(f"{name}/{base.name}", state, relative_to=on)
    return X @ base.joint.precursor.inverse().matrix()


def everywhere(cell: Cell, state: State) -> Array:
    """The poses of all frames in the world, shape (k, 4, 4), by Python alone."""
    bound = cell.bind(state)
    frames = [cell.frame(name) for name in cell.frame_names]
    world = cell.frame(WORLD)
    return np.array([X.matrix() for X in poses_of(bound.tree, bound.q, frames, world)])


def holders(state: State, part: str) -> list[str]:
    """The frames that may hold a part: the world's and those that it does not carry."""
    found = [WORLD]
    for frame in state.cell.frame_names[1:]:
        if part not in carriers(state, frame.partition("/")[0]):
            found.append(frame)
    return found


# Gripping.


@laws(15)
@given(cells_and_states(), st.data())
def test_grip_then_release_leaves_the_pose_in_the_world(
    made: tuple[Cell, State], data: st.DataObject
) -> None:
    cell, state = made
    assume(movable(state))
    part = data.draw(st.sampled_from(movable(state)))
    frame = data.draw(st.sampled_from(holders(state, part)))
    assume(frame != WORLD)
    held = state.grip(part, by=frame, replace=True)
    free = held.release(part)
    close(everywhere(cell, held), everywhere(cell, state))
    close(everywhere(cell, free), everywhere(cell, state))
    assert held.attachments == {**state.attachments, part: frame}
    assert part not in free.attachments
    # It follows what holds it, and no longer once it is free.
    q = data.draw(vectors(cell))
    offset = foot(cell, held, part, on=frame)
    close(foot(cell, held.replace(q=q), part, on=frame), offset)
    close(
        foot(cell, free.replace(q=q), part, on=WORLD), foot(cell, state, part, on=WORLD)
    )


@laws(15)
@given(cells_and_states(), st.data())
def test_attach_keeps_the_pose_in_the_parent(
    made: tuple[Cell, State], data: st.DataObject
) -> None:
    cell, state = made
    free = [name for name in movable(state) if name not in state.attachments]
    assume(free)
    part = data.draw(st.sampled_from(free))
    frame = data.draw(st.sampled_from(holders(state, part)))
    held = state.attach(part, frame)
    close(
        foot(cell, held, part, on=frame), foot(cell, state, part, on=state.parent(part))
    )
    X = data.draw(poses)
    there = state.attach(part, frame, pose=X)
    close(foot(cell, there, part, on=frame), X.matrix())


@laws(15)
@given(cells_and_states())
def test_each_manipulator_is_mounted_on_one_frame(made: tuple[Cell, State]) -> None:
    cell, state = made
    standing = [(f, m) for f in cell.frame_names for m in state.children(f)]
    assert len(standing) == len(cell.manipulators)
    assert {m: f for f, m in standing} == {
        m.name: state.parent(m.name) for m in cell.manipulators
    }
    held = state.attachments
    assert held == {name: state.parent(name) for name in held}
    assert set(held) <= set(movable(state))


@laws(15)
@given(cells_and_states(), st.data())
def test_nothing_comes_to_hold_itself(
    made: tuple[Cell, State], data: st.DataObject
) -> None:
    cell, state = made
    copy = pickle.loads(pickle.dumps(state))
    part = data.draw(st.sampled_from(cell.manipulators)).name
    own = set(cell.frame_names) - set(holders(state, part))
    assert own
    frame = data.draw(st.sampled_from(sorted(own)))
    reason = "itself" if part in movable(state) else "fixed"
    with pytest.raises(StateError, match=reason):
        state.grip(part, by=frame, replace=True)
    with pytest.raises(StateError, match=reason):
        state.attach(part, frame, replace=True)
    if part in state.attachments:
        with pytest.raises(StateError, match="release it"):
            state.place(part, Pose.identity())
        with pytest.raises(StateError, match="attached to"):
            state.grip(part, by=WORLD)
    assert state == copy
    assert state.to_json() == copy.to_json()


# Values.


@laws(15)
@given(cells_and_states())
def test_states_come_back(made: tuple[Cell, State]) -> None:
    cell, state = made
    text = state.to_json()
    back = State.from_json(text)
    assert back == state
    assert hash(back) == hash(state)
    assert back.to_json() == text
    assert pickle.loads(pickle.dumps(state)) == state
    assert np.array_equal(everywhere(cell, back), everywhere(cell, state))


@laws(15)
@given(cells(), st.data())
def test_the_difference_leads_from_one_state_to_the_other(
    cell: Cell, data: st.DataObject
) -> None:
    a, b = data.draw(states(cell)), data.draw(states(cell))
    difference = a.difference(b)
    assert (difference == {}) == (a == b)
    assert b.difference(a) == {key: (y, x) for key, (x, y) in difference.items()}
    values = {
        "": dict(zip(cell.joint_names, a.q, strict=True)),
        "rate of ": dict(zip(cell.joint_names, a.qd, strict=bool(a.qd.size))),
        "base of ": {p.manipulator: p for p in a.placements},
    }
    for key, (here, there) in difference.items():
        what = next(w for w in ("rate of ", "base of ", "") if key.startswith(w))
        name = key.removeprefix(what)
        if name == "q":  # all rates at once, where one state has none
            assert list(here) == a.qd.tolist()
            values[what] = dict(zip(cell.joint_names, there, strict=bool(there)))
            continue
        assert values[what].get(name) == here
        values[what][name] = there
    there = State(
        q=tuple(values[""].values()),
        qd=tuple(values["rate of "].values()),
        placements=tuple(p for p in values["base of "].values() if p is not None),
    )
    assert there == b


# Poses.


@laws(8)
@given(cells_and_states(most=3), st.data())
def test_all_ways_to_poses_agree(made: tuple[Cell, State], data: st.DataObject) -> None:
    cell, state = made
    one_by_one = {f: cell.pose(f, state) for f in cell.frame_names[1:]}
    all_at_once = cell.poses(state)
    assert list(all_at_once) == list(one_by_one)
    for name, X in one_by_one.items():
        close(all_at_once[name], X)
    frame = data.draw(st.sampled_from(cell.frame_names))
    to = data.draw(st.sampled_from(cell.frame_names))
    relative = cell.pose(frame, state, relative_to=to)
    close(cell.between(frame, state, relative_to=to)(state), relative)
    close(all_at_once.relative(frame, to), relative)

    # A kernel of the cell holds things as they were built.
    built = cell.home.replace(q=state.q)
    fk = cell.fk(list(one_by_one))
    expected = [cell.pose(f, built) for f in one_by_one]
    close(fk(np.array(state.q)), expected)
    close(interpret(fk.program, np.array(state.q)), expected)


@laws(15)
@given(cells_and_states(), st.data())
def test_rigid_groups_are_rigid(made: tuple[Cell, State], data: st.DataObject) -> None:
    cell, state = made
    frame = data.draw(st.sampled_from(cell.frame_names))
    group = cell.rigid_with(frame, state)
    assert group[0] == frame
    moved = state.replace(q=data.draw(vectors(cell)))
    assert set(cell.rigid_with(group[-1], state)) == set(group)
    for other in group:
        here = cell.pose(other, state, relative_to=frame)
        close(cell.pose(other, moved, relative_to=frame), here)


# Collision rules.


@laws(15)
@given(cells_and_states(), st.data())
def test_rules_follow_attachments(
    made: tuple[Cell, State], data: st.DataObject
) -> None:
    cell, state = made
    pairs = cell.pairs(state)
    shaped = [
        f"{m.name}/{link.name}"
        for m in cell.manipulators
        for link in m.links
        if link.collision_shapes
    ]
    assert list(pairs.links) == sorted(shaped)
    for a, b in itertools.combinations(pairs.links, 2):
        assert pairs.why(a, b).tested == ((a, b) in pairs)
    assert cell.pairs(state.replace(q=data.draw(vectors(cell)))) == pairs
    for part, frame in state.attachments.items():
        at = cell.frame(frame)
        holder = cell.manipulators[cell.workcell.owners[at.link]]
        manipulator = cell.manipulators[cell.index[part]]
        base = f"{part}/{manipulator.links[manipulator.base].name}"
        link = f"{holder.name}/{cell.workcell.links[at.link].name}"
        assert tuple(sorted([base, link])) not in pairs


class Carried:
    """The rules of docs/rules.md for one state, read link by link."""

    def __init__(self, cell: Cell, state: State) -> None:
        self.cell, self.state = cell, state
        self.bolted = {mount.manipulator for mount in cell.mounts if mount.bolted}

    def link(self, name: str) -> Link:
        owner, _, link = name.partition("/")
        return self.cell.manipulators[self.cell.index[owner]].link(link)

    def below(self, name: str) -> tuple[str | None, bool, bool]:
        """What carries a link, whether rigidly in this state, and in every state."""
        owner, link = name.partition("/")[0], self.link(name)
        if link.parent is not None:
            return f"{owner}/{link.parent}", not link.moves, not link.moves
        on = self.state.parent(owner)
        is_bolted = owner in self.bolted
        if on == WORLD:
            return None, True, is_bolted
        at = self.cell.frame(on)
        holder = self.cell.manipulators[self.cell.workcell.owners[at.link]]
        return (
            f"{holder.name}/{self.cell.workcell.links[at.link].name}",
            True,
            is_bolted,
        )

    def root(self, name: str) -> str | None:
        """The lowest link that a link never moves in; None for the world."""
        below, _, always = self.below(name)
        while always and below is not None:
            name = below
            below, _, always = self.below(name)
        return None if always else name

    def next_with_shapes(self, name: str) -> str | None:
        below = self.below(name)[0]
        while below is not None and not self.link(below).collision_shapes:
            below = self.below(below)[0]
        return below

    def touches(self, link: str, other: str) -> bool:
        """Whether `other` carries the base that `link` is rigidly joined to."""
        owner = link.partition("/")[0]
        while self.link(link).parent is not None:
            below, is_rigid, _ = self.below(link)
            if not is_rigid or below is None:
                return False
            link = below
        holder, is_rigid, _ = self.below(link)
        while holder is not None and not self.link(holder).collision_shapes:
            if not is_rigid:
                return False
            holder, is_rigid, _ = self.below(holder)
        return is_rigid and holder == other and other.partition("/")[0] != owner

    def may_touch(self, part: str, other: str) -> bool:
        owner = part.partition("/")[0]
        on = self.state.parent(owner)
        if on == WORLD or owner in self.bolted:
            return False
        at = self.cell.frame(on)
        holder = self.cell.manipulators[self.cell.workcell.owners[at.link]]
        by = f"{holder.name}/{self.cell.workcell.links[at.link].name}"
        return any(
            fnmatchcase(by, touch.held_by)
            and fnmatchcase(part, touch.part)
            and any(fnmatchcase(other, link) for link in touch.links)
            for touch in self.cell.rules.touches
        )

    def is_tested(self, a: str, b: str) -> bool:
        if any(self.touches(*p) or self.may_touch(*p) for p in ((a, b), (b, a))):
            return False
        is_rigid = self.root(a) == self.root(b)
        is_adjacent = self.next_with_shapes(a) == b or self.next_with_shapes(b) == a
        about = {
            "any": True,
            "rigid": is_rigid,
            "adjacent": is_adjacent,
            "apart": not is_rigid and not is_adjacent,
        }
        rules = self.cell.rules
        for rule in reversed(rules.rules):
            sides = rule.a, rule.b
            if about[rule.where] and any(
                all(map(fnmatchcase, pair, sides)) for pair in ((a, b), (b, a))
            ):
                return rule.tested
        is_one = a.partition("/")[0] == b.partition("/")[0]
        return rules.within if is_one else rules.between


@laws(50)
@given(cells_and_states())
def test_pairs_are_those_of_the_rules_read_link_by_link(
    made: tuple[Cell, State],
) -> None:
    cell, state = made
    carried, pairs = Carried(cell, state), cell.pairs(state)
    for a, b in itertools.combinations(pairs.links, 2):
        assert ((a, b) in pairs) == carried.is_tested(a, b), pairs.why(a, b)


# Editing.


@laws(15)
@given(cells(), st.data())
def test_edits_can_be_undone(cell: Cell, data: st.DataObject) -> None:
    on = data.draw(st.sampled_from(cell.frame_names))
    extra = data.draw(manipulators("extra"))
    added = cell.add(extra, on=on, pose=data.draw(poses), bolted=False)
    assert added.remove("extra") == cell
    assert added.joint_names[: len(cell.joint_names)] == cell.joint_names

    old = data.draw(st.sampled_from(cell.manipulators))
    noted = msgspec.structs.replace(old, properties=())
    assert cell.exchange(noted).exchange(old) == cell

    for mount in cell.mounts:
        elsewhere = cell.mount(mount.manipulator, pose=Pose.translation(9, 9, 9))
        assert elsewhere != cell
        back = elsewhere.mount(
            mount.manipulator, on=mount.on, pose=mount.pose, bolted=mount.bolted
        )
        assert back == cell


@laws(15)
@given(cells())
def test_what_carries_others_stays(cell: Cell) -> None:
    standing = {m.on.partition("/")[0] for m in cell.mounts}
    for manipulator in cell.manipulators:
        if manipulator.name not in standing:
            less = cell.remove(manipulator.name)
            assert len(less.joint_names) + len(manipulator.joint_names) == len(
                cell.joint_names
            )
            assert manipulator.name not in less.index
        else:
            with pytest.raises(ValueError, match="cannot be removed: it carries"):
                cell.remove(manipulator.name)


@laws(15)
@given(cells(), st.sampled_from([0.25, 3.0]), st.data())
def test_a_scaled_cell_moves_along_a_scaled_path(
    cell: Cell, factor: float, data: st.DataObject
) -> None:
    scaled = cell.scaled(factor)
    rate = np.array(
        [
            factor if m.links[k].joint.unit.scales_with_length else 1.0
            for m in cell.manipulators
            for k in m.coordinates
        ]
    )
    q = np.array(data.draw(vectors(cell)))
    for before, after in ((cell.home.q, scaled.home.q), (q, rate * q)):
        X = everywhere(cell, cell.home.replace(q=before))
        X[:, :3, 3] *= factor
        close(everywhere(scaled, scaled.home.replace(q=after)), X)
    close(scaled.home.q, rate * cell.home.q)
    close(scaled.limits, rate * np.array(cell.limits))
    close(scaled.velocity_limits, rate * cell.velocity_limits)
    assert scaled.scaled(1.0 / factor).approx_equal(cell, 1e-9)


@laws(15)
@given(cells())
def test_nearly_equal_cells_differ_by_little(cell: Cell) -> None:
    assert cell.approx_equal(pickle.loads(pickle.dumps(cell)), 0.0)
    manipulator = cell.manipulators[0]
    first, *rest = manipulator.links
    moved = msgspec.structs.replace(
        first, primary=first.primary @ Pose.translation(0.0, 0.0, 1e-6)
    )
    changed = cell.exchange(msgspec.structs.replace(manipulator, links=(moved, *rest)))
    assert cell.approx_equal(changed, 2e-6)
    assert not cell.approx_equal(changed, 0.4e-6)
    assert not cell.approx_equal(cell.replace(name="other"), 1.0)
