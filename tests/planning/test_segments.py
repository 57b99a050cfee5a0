"""Segments: what they take, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError


def test_segments_keep_read_only_copies():
    to = np.eye(4)
    line = arm.Line(to)
    to[0, 3] = 1.0
    assert line.to[0, 3] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        line.to[0, 3] = 2.0
    through = np.eye(4)
    through[:3, 3] = [0.1, 0.2, 0.3]
    arc = arm.Arc(to=[1.0, 0.0, 0.0], through=through)
    assert arc.through.tolist() == [0.1, 0.2, 0.3]


BAD: list[tuple[type, dict[str, Any], type[Exception], str]] = [
    (arm.Line, {"to": [1.0, 2.0]}, ShapeError, "to= is a pose of shape (4, 4)"),
    (arm.Line, {"to": np.diag([1, 1, -1, 1])}, ModelError, "not a rigid pose"),
    (arm.Line, {"to": [np.inf, 0, 0]}, ModelError, "not finite"),
    (arm.Line, {"to": [0, 0, 0], "blend": "a"}, ModelError, "blend= is a length"),
    (arm.Line, {"to": np.eye(4), "orientation": "x"}, ModelError, "shortest, fixed"),
    (
        arm.Line,
        {"to": [0, 0, 0], "orientation": "shortest"},
        ModelError,
        "no orientation to turn to",
    ),
    (arm.Arc, {}, ModelError, "An arc needs a point and an end"),
    (arm.Arc, {"to": [1, 0, 0]}, ModelError, "An arc needs a point and an end"),
    (
        arm.Arc,
        {"to": [1, 0, 0], "through": [0, 1, 0], "angle": 1.0},
        ModelError,
        "An arc needs a point and an end",
    ),
]
ABOUT = {"axis": [0, 0, 1], "angle": 1.0, "centre": [0, 0, 0]}
BAD += [
    (arm.Arc, {**ABOUT, "axis": [0, 0, 0]}, ModelError, "length above 0"),
    (arm.Arc, {**ABOUT, "axis": [0, 1]}, ModelError, "three finite numbers"),
    (arm.Arc, {**ABOUT, "angle": 0.0}, ModelError, "angle= is a finite number"),
    (arm.Arc, {**ABOUT, "angle": "x"}, ModelError, "angle= is a finite number"),
    (arm.Arc, {**ABOUT, "centre": [np.nan, 0, 0]}, ModelError, "three finite numbers"),
    (arm.Arc, {**ABOUT, "orientation": "shortest"}, ModelError, "'tangent'"),
]


@pytest.mark.parametrize(("kind", "given", "error", "message"), BAD)
def test_what_makes_no_segment_is_refused(
    kind: type, given: dict[str, Any], error: type[Exception], message: str
):
    with pytest.raises(error) as caught:
        kind(**given)
    assert message in str(caught.value)
