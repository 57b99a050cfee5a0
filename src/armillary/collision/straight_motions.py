"""Straight motions of any cell: which of several proofs answers for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from armillary.collision.motion import MotionProver, MotionReason, sampled
from armillary.forks import IMPORT_LOCK

if TYPE_CHECKING:
    from armillary.collision.pair_spans import PairsCheck

    class MotionCheck(PairsCheck, Protocol):
        """What is asked of a `CollisionCheck`."""

        def __call__(self, q: Array, /) -> npt.NDArray[np.bool_]:
            """Return whether links touch: (n, joints) -> (n,)."""
            ...


__all__ = ["motions_of"]

Array = npt.NDArray[np.float64]


def motions_of(
    check: MotionCheck,
    prover: MotionProver,
    ends: tuple[Array, Array],
    step: Any,
    *,
    may_be_free: bool,
) -> tuple[Array, npt.NDArray[np.int8]]:
    """Return how far motions are free, and why: (n,) twice; see `check.motion`.

    Args:
        check: What is asked.
        prover: Its prover.
        ends: Where motions begin and end, shape (k, joints) each.
        step: How far joints move between samples at most; None for a proof.
        may_be_free: Whether no shapes that move together touch.
    """
    Q0, Q1 = ends
    # Three cases need no kernel: shapes that move together touch, samples are asked
    # for, or nothing moves against anything.
    if not may_be_free:
        fraction = np.zeros(len(Q0))
        reason = np.full(len(Q0), MotionReason.CONTACT, np.int8)
    elif step is not None:
        fraction, reason = sampled(check, Q0, Q1, step)
    elif not len(prover.pairs.tables.links):
        fraction = np.ones(len(Q0))
        reason = np.full(len(Q0), MotionReason.FREE, np.int8)
    elif check.state.passive.size and prover.pairs.moving.is_compiled:
        with IMPORT_LOCK:
            from armillary.collision.closed_motion import closed_motions
        fraction, reason = closed_motions(check, Q0, Q1, prover.rounding)
    else:
        prover.check()
        fraction, reason = prover(Q0, Q1)
    is_invalid = ~(np.isfinite(Q0) & np.isfinite(Q1)).all(axis=1)
    fraction[is_invalid], reason[is_invalid] = np.nan, MotionReason.INVALID
    return fraction, reason
