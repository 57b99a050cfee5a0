"""Formulas on disk: traced once for all processes, and anew for anything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armillary.collision.distance import pair_kernel
from armillary.collision.distance.pair_kernel import called_pipeline
from armillary.disk_cache import FORMULAS
from armillary.kinematics import kept_formulas
from armillary.kinematics.kept_formulas import LAYERS_BELOW, kept_formula
from armillary.model.shapes import Box, Capsule, Sphere
from armillary.trace import Program, trace

BOX, CAPSULE = Box(size=(1.0, 2.0, 3.0)), Capsule(radius=0.1, length=0.5)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARMILLARY_CACHE", str(folder))
    return folder


class Traced:
    """Counts how often a formula is traced."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Program:
        self.count += 1
        return trace(lambda x: np.sin(x) * x, name="f", x=())

    def kept(self, *parts: object, what: str = "f") -> Program:
        return kept_formula(what, parts, self, made_by=LAYERS_BELOW)


def files(place: Path) -> list[Path]:
    return sorted(place.glob(f"*{FORMULAS}"))


def test_a_formula_is_traced_once(place: Path):
    made = Traced()
    first, again = made.kept(BOX, 1), made.kept(BOX, 1)
    assert made.count == 1
    assert again == first
    # The fingerprint by which code is found comes with it.
    assert vars(again)["fingerprint"] == made().fingerprint
    assert len(files(place)) == 1


def test_other_parts_are_other_formulas(place: Path):
    made = Traced()
    made.kept(BOX, 1)
    made.kept(BOX, 2)
    made.kept(Box(size=(2.0, 2.0, 3.0)), 1)
    made.kept(CAPSULE, 1)
    made.kept(BOX, 1, what="g")
    assert made.count == len(files(place)) == 5


class OwnSphere(Sphere, frozen=True):
    """A class whose source is not part of a key."""


def own() -> int:
    return 1


@pytest.mark.parametrize(
    "part",
    [OwnSphere(radius=1.0), OwnSphere, own, lambda: 1, frozenset({OwnSphere})],
    ids=["value", "class", "function", "lambda", "set"],
)
def test_what_others_define_is_traced_each_time(place: Path, part: object):
    made = Traced()
    made.kept(BOX, [part])
    made.kept(BOX, [part])
    assert made.count == 2
    assert files(place) == []


def test_another_source_makes_another_formula(monkeypatch: pytest.MonkeyPatch):
    made = Traced()
    made.kept(1)
    monkeypatch.setattr(kept_formulas, "source_digest", lambda modules: b"another")
    made.kept(1)
    assert made.count == 2
    monkeypatch.setattr(kept_formulas, "source_digest", lambda modules: None)
    made.kept(1)
    made.kept(1)
    assert made.count == 4


def test_damaged_files_are_made_again(place: Path):
    made = Traced()
    first = made.kept(1)
    (path,) = files(place)
    path.write_bytes(path.read_bytes()[:-1])
    assert made.kept(1) == first
    assert made.kept(1) == first
    assert made.count == 2


def test_without_a_cache_each_is_traced(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_CACHE", "off")
    made = Traced()
    made.kept(1)
    made.kept(1)
    assert made.count == 2


def test_pairs_of_shapes_are_the_same_pipelines(monkeypatch: pytest.MonkeyPatch):
    pairs = [(CAPSULE, BOX), (BOX, BOX), (Sphere(radius=1.0), CAPSULE)]

    def pipelines() -> list[tuple[object, ...]]:
        called_pipeline.cache_clear()
        made = [called_pipeline(a, b, "value", are_given=True) for a, b in pairs]
        return [(x.fingerprint, x.tables, x.columns, x.given) for x in made]

    traced = pipelines()

    def refused(*args: object) -> None:
        raise AssertionError("it is traced again")

    monkeypatch.setattr(pair_kernel, "_pipeline", refused)
    assert pipelines() == traced
    called_pipeline.cache_clear()
