"""Pinocchio's checks of a model of shapes, with its broad phase and without."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np


class PeerChecks:
    """What Pinocchio and coal answer about the pairs of a model.

    Attributes:
        found: The results of the latest question, which stay inside.
    """

    def __init__(self, model: Any, geometry: Any) -> None:
        """Prepare for a model whose shapes and pairs do not change any more."""
        self._pin: Any = import_module("pinocchio")
        self.model, self.geometry = model, geometry
        self.data, self.found = model.createData(), geometry.createData()
        manager = self._pin.BroadPhaseManager_DynamicAABBTreeCollisionManager
        self._manager = manager(model, geometry, self.found)
        self._given = model, self.data, geometry, self.found

    def touches(self, q: np.ndarray) -> bool:
        """Return whether anything touches, by a tree of boxes around all shapes."""
        ask = self._pin.computeCollisions
        return bool(ask(self.model, self.data, self._manager, q, True))

    def touches_by_pairs(self, q: np.ndarray) -> bool:
        """Return whether anything touches, pair after pair until one does."""
        return bool(self._pin.computeCollisions(*self._given, q, True))

    def contacts(self, q: np.ndarray) -> bool:
        """Compute the contacts of all pairs that touch, and leave them there."""
        ask = self._pin.computeCollisions
        return bool(ask(self.model, self.data, self._manager, q, False))

    def distances(self, q: np.ndarray) -> Any:
        """Compute the distances of all pairs of shapes, and leave them there."""
        self._pin.computeDistances(*self._given, q)
        return self.found.distanceResults

    def distances_and_jacobians(self, q: np.ndarray) -> None:
        """Compute distances and joints' Jacobians, without slopes of pairs."""
        self._pin.computeDistances(*self._given, q)
        self._pin.computeJointJacobians(self.model, self.data, q)
