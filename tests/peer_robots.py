"""Robots of example-robot-data here and in Pinocchio, for the tests beside peers."""

from __future__ import annotations

import importlib.metadata
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.model.joint_dynamics import NO_DYNAMICS
from masses import with_links


def robot_file(path: str) -> Path:
    """Return a file of example-robot-data."""
    for file in importlib.metadata.files("example-robot-data") or ():
        if str(file).endswith(path):
            return Path(str(file.locate())).resolve()
    pytest.fail(f"example-robot-data has no {path}")


def as_pinocchio(
    cell: arm.Cell, model: Any, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Pinocchio's q, and the rates of its joints per unit of ours."""
    manipulator = cell.manipulators[0]
    q_pin, rates = np.zeros(model.nq), np.zeros((model.nv, len(q)))
    for link, drives in zip(manipulator.links, manipulator.drives, strict=True):
        if not drives:
            continue
        (drive,) = drives
        joint = model.joints[model.getJointId(link.coordinate)]
        value = drive.multiplier * q[drive.of] + drive.offset
        rates[joint.idx_v, drive.of] = drive.multiplier
        if joint.nq == 1:
            q_pin[joint.idx_q] = value
        else:
            q_pin[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
    return q_pin, rates


def without_joint_dynamics(cell: arm.Cell) -> arm.Cell:
    """Return a cell without friction and motors, which Pinocchio leaves out too."""
    return with_links(cell, lambda link: link.replace(dynamics=NO_DYNAMICS))


def robot_pair(name: str, caplog: Any) -> tuple[arm.Cell, Any, Any]:
    """Return a robot here, Pinocchio, and the robot there."""
    pin = pytest.importorskip("pinocchio")
    caplog.set_level(logging.ERROR, logger="armillary")
    path = robot_file(name)
    cell = without_joint_dynamics(arm.load(path))
    return cell, pin, pin.buildModelFromUrdf(str(path))


def symmetric(upper: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix from its upper half, as Pinocchio's `crba` fills it."""
    return np.triu(upper) + np.triu(upper, 1).T
