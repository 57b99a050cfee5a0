"""A user's own closed form as a program: a target to the numbers of every branch."""

from __future__ import annotations

import math
from typing import Any

from armillary.errors import ModelError
from armillary.model.closed_form import ClosedForm
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, number
from armillary.trace import Program, trace


def own_program(form: ClosedForm, n: int) -> Program:
    """Return the program target (4, 4) -> q (b, n), NaN where a branch is None.

    Raises:
        Exception: What the user's code raises where it cannot be traced.
    """

    def equations(matrix: Any) -> Any:
        return branch_numbers(form, Pose.from_matrix(matrix), n)

    return trace(equations, name="own_inverse", outputs=("q",), target=(4, 4))


def branch_numbers(form: ClosedForm, pose: Pose, n: int) -> list[list[Number]]:
    """Return n numbers for each branch of a pose, NaN where it does not exist.

    Raises:
        ModelError: There are not as many branches or numbers as there should be.
    """
    count, name = len(form.branches), type(form).__name__
    found = form.inverse(pose)
    if found is None:
        return [[math.nan] * n for _ in range(count)]
    if len(found) != count:
        raise ModelError(
            f"{name}.inverse returned {len(found)} branches; its branches are "
            f"{', '.join('/'.join(words) for words in form.names)}. Return None for "
            "those that do not exist."
        )
    rows: list[list[Number]] = []
    for words, q in zip(form.names, found, strict=True):
        if q is not None and len(q) != n:
            raise ModelError(
                f"{name}.inverse returned {len(q)} numbers for the branch "
                f"'{'/'.join(words)}'; {n} joints move the frame."
            )
        rows.append([math.nan] * n if q is None else [number(x) for x in q])
    return rows
