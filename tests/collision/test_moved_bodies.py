"""Checks of states in which bodies moved: equal answers, for the work of what moved."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import armillary as arm
from armillary.collision import latest_state, pair_records, shape_pairs
from armillary.collision.check_tables import CheckTables
from armillary.collision.columns import CheckColumns
from armillary.collision.distance.sizes import form_of
from armillary.collision.placed_pairs import PlacedPairs
from armillary.kernel import pipeline_kernel, pipeline_records, tables
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.model.primitive import Primitive
from armillary.shapes import Box, Capsule, Sphere
from armillary.testing.samples import random_pose
from work import lines

Q = np.random.default_rng(0).uniform(-3.0, 3.0, (40, 2))


def scene(boxes: int) -> arm.Cell:
    """Return an arm of two links among boxes, which are not tested with each other."""
    links = [arm.Link(name="base")]
    for k in range(2):
        joint = arm.joints.Revolute(
            axis=(0, k, 1 - k), precursor=arm.Pose.translation(0.1, 0, 0.4)
        )
        shapes = [Capsule(radius=0.05, length=0.3), Sphere(radius=0.1)]
        links.append(
            arm.Link(
                name=f"l{k}", parent=links[-1].name, joint=joint, collisions=shapes
            )
        )
    things = [
        arm.Manipulator(
            name=f"box{k}",
            links=[arm.Link(name="body", collisions=[Box(size=(0.1, 0.2, 0.1))])],
        )
        for k in range(boxes)
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links), *things])
    return cell.replace(rules=cell.rules.exclude("box*/*", "box*/*", reason="apart"))


def assert_right(cell: arm.Cell, state: arm.State) -> None:
    check = cell.collision(state)
    placed = check._placed
    values = placed.all_values(placed.poses(Q))  # which have no records
    apart = np.minimum.reduceat(values, check.tables.starts, axis=1)
    expected = apart.min(axis=1)
    np.testing.assert_allclose(check.distances(Q), apart, atol=1e-9)
    np.testing.assert_allclose(check.clearance(Q), expected, atol=1e-9)
    contacts = [each.distance for each in check.contacts(Q[0], within=0.5)]
    near = np.sort(apart[0][apart[0] <= 0.5])
    np.testing.assert_allclose(contacts, near, atol=1e-9)
    k = int(np.abs(apart[0]).argmin())
    steps = 1e-6 * np.eye(Q.shape[1])
    moved = [check.distances(Q[0] + step)[k] for step in (*steps, *-steps)]
    slopes = np.subtract(*np.reshape(moved, (2, -1))) / 2e-6
    np.testing.assert_allclose(check.gradients(Q[0])[k], slopes, atol=1e-5)
    np.testing.assert_array_equal(check(Q), expected <= 0.0)
    assert [bool(check(q)) for q in Q[:5]] == (expected[:5] <= 0.0).tolist()


def test_answers_follow_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes, the arm and what it grips move, until all records are made anew."""
    cell, rng = scene(6), np.random.default_rng(1)
    anew = 0
    whole = pair_records.PairRecords.of

    def counted(*given: object) -> object:
        nonlocal anew
        anew += 1
        return whole(*given)

    monkeypatch.setattr(pair_records.PairRecords, "of", counted)
    state = cell.home
    for step in range(24):
        name = f"box{rng.integers(6)}"
        if step == 8:
            state = state.place("arm", random_pose(rng))
        elif step == 12:
            state = state.grip("box1", by="arm/l1")
        elif step == 16:
            state = state.release("box1")
        elif step % 6 == 5:
            names = [f"box{k}" for k in range(6) if f"box{k}" not in state.attachments]
            state = state.place_all({each: random_pose(rng) for each in names})
        elif name not in state.attachments:
            state = state.place(name, random_pose(rng))
        assert_right(cell, state)
    assert 6 <= anew < 24  # of 48 checks, of truths and of clearances


def test_moved_boxes_analyse_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    cell, rng = scene(20), np.random.default_rng(2)
    cell.collision()(Q[0])

    def refuse(*given: object) -> None:
        raise AssertionError("This does not depend on where bodies are.")

    for kind in (CheckTables, SpeedBounds):
        monkeypatch.setattr(kind, "of", refuse)
    state = cell.home.place_all({f"box{k}": random_pose(rng) for k in range(20)})
    assert_right(cell, state)


def test_distances_after_a_move_declare_no_columns_and_make_no_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both took longer than all else of the first distances and contacts."""
    cell, rng = scene(6), np.random.default_rng(4)
    state = cell.home.place("box0", random_pose(rng))

    def ask(state: arm.State) -> tuple[list[float], list[float]]:
        check = cell.collision(state)
        contacts = check.contacts(Q[0], within=0.5)
        return check.distances(Q[0]).tolist(), [each.distance for each in contacts]

    ask(state)
    moved = state.place("box3", random_pose(rng))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("This does not depend on where bodies are.")

    with monkeypatch.context() as patch:
        patch.setattr(CheckColumns, "__init__", refuse)
        patch.setattr(pipeline_kernel, "kernel_of", refuse)
        patch.setattr(pipeline_records, "kernel_of", refuse)
        found = ask(moved)
    assert found == ask(moved)
    assert_right(cell, moved)


def test_a_box_that_is_placed_where_it_was_has_not_moved() -> None:
    cell, rng = scene(6), np.random.default_rng(5)
    poses = {f"box{k}": random_pose(rng) for k in range(6)}
    state = cell.home.place_all(poses)
    before = cell.collision(state)
    before(Q[0])
    poses["box2"] = random_pose(rng)
    moved = cell.collision(state.place_all(poses))
    last = moved._placed.moved_from
    assert last is not None
    first = before.tables.tested.links.index("box2/body")
    assert last[1].which[: last[1].links].tolist() == [first]
    back = cell.collision(state)
    assert back.distances(Q).tolist() == before.distances(Q).tolist()
    assert_right(cell, state)


def test_checks_of_one_cell_keep_their_margins_and_rules() -> None:
    """Tables are found by the identity of rules and meshes, with the margin."""
    cell, rng = scene(4), np.random.default_rng(6)
    nothing = cell.rules.exclude("*", "*", reason="none")
    state = cell.home
    for _ in range(3):
        state = state.place("box1", random_pose(rng))
        for margin in (0.0, 0.2):
            check = cell.collision(state, margin=margin)
            assert check.margin == margin
            assert (check.clearance(Q) <= margin).tolist() == check(Q).tolist()
            assert not len(cell.collision(state, rules=nothing, margin=margin).pairs)
            assert len(check.pairs) == len(cell.collision(state).pairs) > 0


def test_the_work_of_a_moved_box_does_not_grow_with_their_number() -> None:
    X = arm.Pose.from_rpy(0.1, 0.2, 0.3, (1.0, 0.2, 0.3))
    counts: list[int] = []
    for boxes in (10, 40):
        cell = scene(boxes)
        state = cell.home.place_all(
            {f"box{k}": arm.Pose.translation(0.9, 0.1, 0.01 * k) for k in range(boxes)}
        )
        cell.collision(state)(Q[0])
        moved = [state.place("box3", X) for _ in range(2)]
        cell.collision(moved[0])(Q[0])
        counts.append(
            lines(lambda s=state, c=cell: c.collision(s.place("box4", X))(Q[0]))
        )
    assert counts[1] < 1.3 * counts[0]
    assert counts[1] < 3500


def test_grips_answer_to_the_bit_as_in_a_cell_that_knows_no_other_state() -> None:
    """What is carried moves, on others that are carried, and joints move between."""
    cell, rng = scene(4), np.random.default_rng(3)

    def answers(cell: arm.Cell, state: arm.State) -> list[np.ndarray]:
        check = cell.collision(state)
        each = [check(Q), check.clearance(Q), check.distances(Q), check.gradients(Q)]
        contacts = [each.points for each in check.contacts(Q[0], within=0.3)]
        return [*each, np.array([check(q) for q in Q[:4]]), np.array(contacts)]

    def grip(state: arm.State, part: str, to: str) -> arm.State:
        return state.attach(part, to, pose=random_pose(rng), replace=True)

    state = cell.home
    for step in range(9):
        match step % 3:
            case 0:  # one on the arm, which carries another
                state = grip(grip(state, "box1", "l1"), "box2", "box1/body")
            case 1:  # the same, elsewhere; and what carries the arm moves
                state = grip(state, "box1", "l1").place("arm", random_pose(rng))
            case _:
                q = rng.uniform(-1.0, 1.0, 2)
                state = grip(state.replace(q=q), "box2", "box1/body")
                state = state.place("box3", random_pose(rng))
        fresh = scene(4)
        for here, there in zip(
            answers(cell, state), answers(fresh, fresh.bind(state)), strict=True
        ):
            np.testing.assert_array_equal(here, there)


def test_states_answer_to_the_bit_after_others_followed_them() -> None:
    """Boxes move one by one; all checks are asked again when all have moved."""
    cell, rng = scene(24), np.random.default_rng(6)
    states = [cell.home.place_all({f"box{k}": random_pose(rng) for k in range(24)})]
    checks = [cell.collision(states[0])]
    for step in range(16):  # some twice in a row, some again later
        name = f"box{(step // 2 * 5) % 24}"
        states.append(states[-1].place(name, random_pose(rng)))
        checks.append(cell.collision(states[-1]))
        checks[-1](Q[0])
    for k in rng.permutation(len(states)).tolist():
        fresh = scene(24)
        expected = fresh.collision(fresh.bind(states[k]))
        assert [bool(checks[k](q)) for q in Q] == [bool(expected(q)) for q in Q]
        np.testing.assert_array_equal(checks[k].distances(Q), expected.distances(Q))
        np.testing.assert_array_equal(checks[k].placed.whole, expected.placed.whole)


def test_threads_may_be_the_first_to_ask_where_shapes_are() -> None:
    cell, rng = scene(24), np.random.default_rng(7)
    every = {f"box{k}": random_pose(rng) for k in range(24)}
    for step in range(20):
        state = cell.home.place_all(every)
        cell.collision(state)(Q[0])
        moved = state.place(f"box{step}", random_pose(rng))
        check, fresh = cell.collision(moved), scene(24)
        expected = fresh.collision(fresh.bind(moved)).placed.whole
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _, c=check: c.placed.whole, range(8)))
        for whole in found:
            np.testing.assert_array_equal(whole, expected)
            assert not whole.flags.writeable


def test_checks_of_one_code_answer_by_their_own_records() -> None:
    """Also when others are gone, and for rows that machine code leaves to others."""
    cell, rng = scene(4), np.random.default_rng(8)
    first = cell.collision()
    first(Q[0])
    far = {f"box{k}": arm.Pose.translation(5.0 + k, 0.0, 0.0) for k in range(4)}
    near = {f"box{k}": arm.Pose.translation(0.1, 0.0, 0.1 * k) for k in range(4)}
    checks = [cell.collision(cell.home.place_all(some)) for some in (far, near)]
    expected = [check.clearance(Q) <= 0.0 for check in checks]
    assert (expected[0] != expected[1]).any()
    del first
    gc.collect()
    turned, single = np.asfortranarray(Q.repeat(2, axis=1))[:, ::2], Q.astype("f4")
    for k in rng.permutation(len(Q)).tolist():
        for check, answers in zip(checks, expected, strict=True):
            assert bool(check(Q[k])) == bool(check(turned[k])) == answers[k]
            assert bool(check(single[k])) == bool(check(single[k].astype("f8")))
            assert bool(check([*Q[k]])) == answers[k]


def test_a_part_gripped_elsewhere_makes_few_records_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell, rng = scene(3), np.random.default_rng(4)

    def gripped() -> arm.State:
        X = arm.Pose.from_rpy(*rng.uniform(-0.1, 0.1, 3), rng.uniform(0.0, 0.01, 3))
        return cell.home.attach("box0", "l1", pose=X)

    cell.collision(gripped())(Q[0])

    def refuse(*given: object) -> None:
        raise AssertionError("Most records are those of the last grip.")

    monkeypatch.setattr(pair_records.PairRecords, "of", refuse)
    for _ in range(3):
        cell.collision(gripped())(Q[0])


def test_another_part_in_the_grip_reads_no_shape_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = scene(3)
    read: list[int] = []

    def counted(shape: Primitive) -> Primitive:
        read.append(id(shape))
        return form_of(shape)

    monkeypatch.setattr(shape_pairs, "form_of", counted)
    for k in range(3):
        grip = arm.Pose.translation(0.0, 0.0, 0.5)
        assert_right(cell, cell.home.attach(f"box{k}", "l1", pose=grip))
    assert len(read) == len({*read}) == 7  # of two links two each, and three boxes


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
def test_any_sequence_of_changes_answers_as_a_new_cell(seed: int) -> None:
    """Bodies move, are gripped and released, joints move; margins and rules differ.

    Some checks are asked once, some twice, some again when others followed.
    """
    cell, rng = changing_scene(12), np.random.default_rng(seed)
    rules = cell.rules.exclude("box3/*", "*", reason="left out")
    state, earlier = cell.home, []
    for _ in range(50):
        state = changed(state, rng)
        given = {
            "margin": float(rng.choice((0.0, 0.0, 0.05))),
            "rules": rules if rng.random() < 0.2 else None,
        }
        earlier.append((cell.collision(state, **given), state, given))
        again = earlier[rng.integers(len(earlier))] if rng.random() < 0.3 else None
        for check, now, options in filter(None, (earlier[-1], again)):
            fresh = changing_scene(12)
            expected = fresh.collision(fresh.bind(now), **options)
            for q in Q[: rng.integers(1, 4)]:
                assert check(q) == expected(q)
            if rng.random() < 0.3:
                for ask in ("__call__", "clearance", "distances"):
                    np.testing.assert_array_equal(
                        getattr(check, ask)(Q[:9]), getattr(expected, ask)(Q[:9])
                    )


def changing_scene(boxes: int) -> arm.Cell:
    """Return a scene with a table that stands, which boxes are tested against."""
    cell = scene(boxes)
    table = arm.Link(name="top", collisions=[Box(size=(0.3, 0.3, 0.1))])
    stand = arm.Mount(manipulator="table", pose=arm.Pose.translation(0.0, 0.0, -1.5))
    things = (*cell.manipulators, arm.Manipulator(name="table", links=[table]))
    return cell.replace(manipulators=things, mounts=[stand])


def changed(state: arm.State, rng: np.random.Generator) -> arm.State:
    """Return a state after a change that a user could make."""
    names = [f"box{k}" for k in range(12)]
    free = [name for name in names if name not in state.attachments]
    held = [name for name in names if name in state.attachments]
    kind = rng.choice(("one", "one", "few", "all", "grip", "on", "release", "q", "arm"))
    match kind:
        case "one":
            return state.place(str(rng.choice(free)), random_pose(rng))
        case "few" | "all":
            some = free if kind == "all" else rng.choice(free, 3, replace=False)
            return state.place_all({str(name): random_pose(rng) for name in some})
        case "grip" if len(held) < 3:
            return state.grip(str(rng.choice(free)), by="arm/l1")
        case "on" if len(held) < 3:
            one, other = rng.choice(free, 2, replace=False)
            return state.attach(str(one), f"{other}/body", pose=random_pose(rng))
        case "release" if held:
            return state.release(str(rng.choice(held)))
        case "arm":
            return state.place("arm", random_pose(rng))
        case _:
            return state.replace(q=rng.uniform(-2.0, 2.0, 2))


def test_a_moved_box_writes_its_own_records_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first answer copies no table; that of the same check again has its own."""
    cell, rng = scene(24), np.random.default_rng(9)
    every = {f"box{k}": random_pose(rng) for k in range(24)}
    state = cell.home.place_all(every)
    cell.collision(state)(Q[0])
    cell.collision(state.place("box0", every["box1"]))(Q[0])
    copies = 0

    def counted(packed: np.ndarray) -> np.ndarray:
        nonlocal copies
        copies += 1
        return tables.copied(packed)

    monkeypatch.setattr(latest_state, "copied", counted)
    for k in range(2, 6):
        check = cell.collision(state.place("box1", every[f"box{k}"]))
        with monkeypatch.context() as patch:
            patch.setattr(PlacedPairs, "of", None)
            patch.setattr(pair_records, "records_of", None)
            check(Q[0])
            assert copies == 2 * (k - 2)
            check(Q[1])
            assert copies == 2 * (k - 1)


def test_threads_ask_states_at_the_same_time() -> None:
    cell, rng = scene(16), np.random.default_rng(10)
    poses = [{f"box{k}": random_pose(rng) for k in range(16)} for _ in range(3)]
    states = [cell.home.place_all(each) for each in poses]
    states += [states[0].place(f"box{k % 16}", random_pose(rng)) for k in range(64)]
    expected = [bool(cell.collision(each).clearance(Q[0]) <= 0.0) for each in states]
    assert 0 < sum(expected) < len(expected)
    order = rng.integers(len(states), size=2000).tolist()

    def ask(k: int) -> bool:
        return bool(cell.collision(states[k])(Q[0]))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, order)) == [expected[k] for k in order]
