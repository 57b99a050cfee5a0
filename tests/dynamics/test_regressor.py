"""Torques are the regressor times the inertial parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from armillary.spatial.pose import Pose
from masses import heavy_example, vectors, with_inertias, with_links

EXAMPLES = ("irb2400", "ur5e_on_oval", "scara", "pan_tilt", "delta")


def assert_regressor(cell: arm.Cell, *given: Any, **about: Any) -> None:
    Y = cell.inertial_regressor(**about)(*given)
    phi = cell.inertial_parameters(**about)
    torque = cell.inverse_dynamics(**about)(*given)
    assert Y.shape == (*torque.shape, len(phi))
    np.testing.assert_allclose(Y @ phi, torque, rtol=1e-11, atol=1e-11)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EXAMPLES)
def test_torques_are_linear_in_the_parameters(name: str) -> None:
    cell = heavy_example(name, 0)
    assert_regressor(cell, *vectors(cell, 1))


@pytest.mark.thorough
def test_couplings_branches_and_curved_joints(random_cell: Any) -> None:
    for seed in range(3):
        cell = with_inertias(random_cell(seed), seed)
        assert_regressor(cell, *vectors(cell, seed, 3))


@pytest.mark.thorough
def test_gripped_parts_free_bases_and_chosen_joints(random_cell: Any) -> None:
    cell = with_inertias(random_cell(4), 4)
    given = vectors(cell, 5, 3)
    state = cell.home.replace(q=given[0][0]).grip("part", by="arm/arm2")
    assert_regressor(cell, *given, state=state, gravity=(1.0, 2.0, 3.0))
    names = [cell.joint_names[k] for k in (3, 1)]
    assert_regressor(cell, *given[:, :, (3, 1)], joints=names)
    rng = np.random.default_rng(0)
    X = Pose.from_rpy(*rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)).matrix()
    motion = rng.uniform(-1, 1, (2, 3, 6 + len(cell.joint_names)))
    assert_regressor(cell, X[None], given[0], *motion, free_bases=["tray"])


def test_links_that_are_asked_for_have_the_columns() -> None:
    cell = heavy_example("irb2400", 2)
    given = vectors(cell, 3, 4)
    whole = cell.inertial_regressor()(*given)
    links = [link.name for link in cell.manipulators[0].links[1:]]
    phi = cell.inertial_parameters()
    np.testing.assert_array_equal(cell.inertial_parameters(links), phi)
    two = cell.inertial_regressor([links[4], links[1]])(*given)
    np.testing.assert_allclose(two[..., :10], whole[..., 40:50], atol=1e-12)
    np.testing.assert_allclose(two[..., 10:], whole[..., 10:20], atol=1e-12)
    base = cell.manipulators[0].links[0].name
    assert not cell.inertial_regressor([base])(*given).any()


def test_a_payload_is_identified_without_an_inertia() -> None:
    """The part has none in the cell: its columns are those of what it weighs."""
    body = arm.SpatialInertia.from_centre(
        2.0, (0.1, -0.2, 0.05), np.diag([0.1, 0.2, 0.25])
    )
    part = arm.Manipulator(name="part", links=[arm.Link(name="body")])
    known = part.replace(links=[part.links[0].replace(inertia=body)])
    cell = heavy_example("irb2400", 2)
    flange = list(cell.manipulators[0].links)[-1].name
    given = vectors(cell, 6, 20)
    torques = []
    for each in (part, known):
        full = cell.add(each, pose=Pose.translation(1, 2, 3), bolted=False)
        state = full.home.attach("part", flange, pose=Pose.translation(0.0, 0.1, 0.2))
        torques.append(full.inverse_dynamics(state=state)(*given))
        Y = full.inertial_regressor(["part/body"], state=state)(*given)
    found, *_ = np.linalg.lstsq(
        Y.reshape(-1, 10), (torques[1] - torques[0]).ravel(), rcond=None
    )
    np.testing.assert_allclose(found, body.parameters, rtol=1e-8, atol=1e-9)


def test_links_need_no_inertia() -> None:
    cell = arm.example("irb2400")
    cell = with_links(cell, lambda link: link.replace(inertia=None))
    Y = cell.inertial_regressor()(*vectors(cell, 0, 2))
    assert Y.shape == (2, 6, len(cell.inertial_parameters()))
    assert np.abs(Y).max() > 1.0
    assert not cell.inertial_parameters().any()


def test_other_frames_than_links_are_refused() -> None:
    cell = arm.example("irb2400")
    with pytest.raises(UnknownName, match="nowhere"):
        cell.inertial_regressor(["nowhere"])
    with pytest.raises(ModelError, match="name the link that it is fixed to"):
        cell.inertial_regressor(["tool0"])
    with pytest.raises(ModelError, match="The world has no inertia"):
        cell.inertial_parameters(["world"])
    with pytest.raises(ModelError, match="a list of names of links"):
        cell.inertial_regressor("tool0")
    with pytest.raises(ModelError, match="a list of names of links"):
        cell.inertial_regressor([])
    link = cell.manipulators[0].links[1].name
    with pytest.raises(ModelError, match="twice"):
        cell.inertial_regressor([link, link])
