"""One target alone gives what it gives in a batch, bit for bit, by the short way."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armillary import Cell, example
from armillary.errors import ShapeError
from armillary.ik import inverse_kinematics
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reason import Reason
from armillary.kernel import binding

from .test_near import CELLS

NAMES = "irb2400", "iiwa", "oval"
COUNT = 40


class Counted:
    """A maker of queries that counts them."""

    def __init__(self) -> None:
        self.make, self.count = inverse_kinematics.query_of, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.count += 1
        return self.make(*args, **options)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """What the general way begins with."""
    counted = Counted()
    monkeypatch.setattr(inverse_kinematics, "query_of", counted)
    return counted


@pytest.fixture(scope="module", params=NAMES)
def asked(request: Any) -> tuple[InverseKinematics, Any, Any]:
    """Return a solver, targets of which some have no answer, and what they are near."""
    make, frame, n = CELLS[request.param]
    cell: Cell = make()
    q = np.random.default_rng(4).uniform(*np.clip(cell.limits, -2.9, 2.9), (COUNT, n))
    targets = cell.fk(frame)(q)
    targets[-4:-2, :3, 3] *= 20.0
    targets[-2, 0, 0] = np.nan
    targets[-1, :3, :3] *= 1.5
    return cell.ik(frame), targets, q + 0.03


def same(one: Any, other: Any, names: tuple[str, ...]) -> None:
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        assert (type(a), a.dtype, a.shape) == (type(b), b.dtype, b.shape), name
        assert not a.flags.writeable
        np.testing.assert_array_equal(a, b, err_msg=name)


PARTS = "q", "success", "residual", "reason", "steps", "starts"


@pytest.mark.parametrize("way", [None, 0.0, 1.5])
def test_alone_is_as_in_a_batch(asked: Any, way: float | None, queries: Counted):
    """Without `near`, close to it, and far away."""
    ik, targets, q = asked
    has_near = way is not None

    def options(k: int) -> dict[str, Any]:
        return {"near": q[k] - way * np.sign(q[k])} if way is not None else {}

    for k in range(COUNT):
        # The general way: as a batch of one row.
        batch = ik(targets[k : k + 1], **options(k))
        general = ik(targets[k], threads=1, **options(k))
        queries.count = 0
        alone = ik(targets[k], **options(k))
        if k % 8 == 0:
            again = pickle.loads(pickle.dumps(ik(targets[k], **options(k))))
            assert str(again) == str(alone)
            np.testing.assert_array_equal(again.residual, general.residual)
        same(alone, general, PARTS)
        for name in ("q", "reason", "residual"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(batch, name)[0])
        is_solved = bool(alone.success) and alone.reason == Reason.SOLVED
        if is_solved and not has_near and binding.arrays_are_as_expected():
            assert queries.count == 0
    assert ik(targets).success[:-4].all()


def test_all_of_one_is_as_in_a_batch(queries: Counted):
    make, frame, n = CELLS["irb2400"]
    cell = make()
    ik, q = cell.ik(frame), np.random.default_rng(4).uniform(-2.5, 2.5, (20, n))
    targets = cell.fk(frame)(q)
    targets[-1, :3, 3] *= 20.0
    parts = "q", "success", "residual", "reason", "count"
    for target in targets:
        general = ik.all(target, method="closed")
        queries.count = 0
        alone = ik.all(target)
        for name in parts:
            np.testing.assert_array_equal(getattr(alone, name), getattr(general, name))
        assert not alone.q.flags.writeable
        assert (alone.complete, alone.branches) == (True, general.branches)
    again = pickle.loads(pickle.dumps(ik.all(targets[0])))
    np.testing.assert_array_equal(again.residual, ik.all(targets[0]).residual)
    assert queries.count <= 2  # branches that are put at a limit


def test_limits_that_block_one_target_are_looked_for_only_if_asked_for():
    """The rail would have to be longer."""
    cell = example("ur10_on_rail")
    X = cell.fk("tool0")([1.0, *[0.7] * 6])
    X[0, 3] -= 3.0
    ik = cell.ik("tool0")
    assert ik(X).reason == Reason.LIMITS
    assert ik(X, explain=False).reason == Reason.NOT_FOUND


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "list": lambda X, q: (X.tolist(), q),
    "Fortran's order": lambda X, q: (np.asfortranarray(X), q),
    "strided": lambda X, q: (np.tile(X, (1, 2))[:, :4], np.repeat(q, 2)[::2]),
    "float32": lambda X, q: (X.astype("f4"), q.astype("f4")),
    "swapped": lambda X, q: (X.astype(">f8"), q.astype(">f8")),
    "subclass": lambda X, q: (np.ma.array(X), np.ma.array(q)),
    "near a list": lambda X, q: (X, q.tolist()),
}


@pytest.mark.parametrize("name", FORMS)
def test_other_forms_give_the_same(asked: Any, name: str):
    ik, targets, q = asked
    X, near = FORMS[name](targets[0], q[0])
    np.testing.assert_allclose(
        ik(X, near=near, tolerance=(1e-5, 1e-5)).q,
        ik(targets[0], near=q[0], tolerance=(1e-5, 1e-5)).q,
        atol=1e-4,
    )
    if name != "float32":
        general = ik(X, near=near, threads=1)
        np.testing.assert_array_equal(ik(X, near=near).q, general.q)


WRONG: dict[str, tuple[Any, Any]] = {
    "NaN": (np.eye(4), lambda n: np.full(n, np.nan)),
    "short": (np.eye(4), lambda n: np.zeros(n - 1)),
    "two": (np.eye(4), lambda n: np.zeros((2, n))),
    "text": (np.eye(4), lambda _: "home"),
    "target": (np.eye(3), np.zeros),
    "complex": (np.eye(4, dtype=complex), np.zeros),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_the_general_way(asked: Any, name: str):
    ik, _, q = asked
    target, near = WRONG[name]
    texts: list[tuple[type, str]] = []
    for options in ({}, {"threads": 1}):
        try:
            ik(target, near=near(q.shape[1]), **options)
        except (ShapeError, TypeError, np.exceptions.ComplexWarning) as error:
            texts.append((type(error), str(error)))
    assert len(texts) == 2
    assert texts[0] == texts[1]
