"""Pairs that touch at home are found once for all processes, and whatever moves."""

from __future__ import annotations

from pathlib import Path

import pytest

import armillary as arm
from armillary.collision.placed_pairs import PlacedPairs
from armillary.model.shapes import Box


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often pairs are tested at home, with a cache that is empty at first."""
    monkeypatch.setenv("ARMILLARY_CACHE", str(tmp_path / "cache"))
    counts: list[int] = []
    touching = PlacedPairs.touching

    def counted(self: PlacedPairs, *args: object, **options: object) -> object:
        counts.append(1)
        return touching(self, *args, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(PlacedPairs, "touching", counted)
    return counts


class OwnBox(Box, frozen=True):
    """A shape whose code is not ours."""


def chain(gap: float = 0.0, width: float = 0.4, kind: type[Box] = Box) -> arm.Cell:
    """Boxes of 0.4 m, the third of which touches the first where there is no gap."""
    links: list[arm.Link] = []
    for k, x in enumerate((0.0, 0.2, 0.2 + gap)):
        at = arm.Pose.translation(x, 0.0, 0.0)
        joint = arm.joints.Revolute(precursor=at) if k else arm.joints.Fixed()
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name if links else None,
                joint=joint,
                collisions=(kind(size=(width, 0.4, 0.4)),),
            )
        )
    rules = arm.Rules().include_self("arm").exclude("*", "*", where="home")
    whole = arm.Manipulator(name="arm", links=tuple(links))
    return arm.Cell(manipulators=[whole], rules=rules)


def pairs_of(cell: arm.Cell) -> set[tuple[str, str]]:
    return set(cell.pairs(cell.home))


def test_it_is_asked_once_for_equal_cells(asked: list[int]):
    first = pairs_of(chain())
    assert sum(asked) == 1
    assert pairs_of(chain()) == first
    assert sum(asked) == 1


def test_it_is_asked_again_where_shapes_or_poses_differ(asked: list[int]):
    touching = pairs_of(chain())
    apart = pairs_of(chain(gap=0.6))
    assert sum(asked) == 2
    assert len(apart) == len(touching) + 1
    assert pairs_of(chain(width=0.1)) != touching
    assert sum(asked) == 3


def test_shapes_of_others_are_tested_each_time(asked: list[int]):
    first = pairs_of(chain(kind=OwnBox))
    assert pairs_of(chain(kind=OwnBox)) == first == pairs_of(chain())
    assert sum(asked) == 3
