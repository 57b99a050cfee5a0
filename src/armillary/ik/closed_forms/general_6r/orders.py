"""The kernels of an arm's order: which of its joints is hidden, which drops out.

Roots are those of the arm if all joints turn, if two slide, and in one or both orders
if one does (`one_slide.py`). Else they are those of an arm with far axes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.general_6r.first_search import (
    first_search_kernel,
    search_kernel,
)
from armillary.ik.closed_forms.general_6r.found_solutions import APART
from armillary.ik.closed_forms.general_6r.geometry import SixAxes, inverse
from armillary.ik.closed_forms.general_6r.one_slide import (
    PLACES,
    compiled_one_slide,
    order_of_slide,
    place_of_slide,
)
from armillary.ik.closed_forms.general_6r.stages import (
    mixed_chain,
    near_kernel,
    roots_kernel,
)
from armillary.ik.closed_forms.general_6r.two_slides import (
    compiled_two_slides,
    order_of_slides,
)
from armillary.kernel import Kernel

__all__ = ["ERROR", "MISSED", "SEARCHES", "Order", "called"]

Array = npt.NDArray[np.float64]

MISSED = 0.09
"""Square of what may miss before Newton's method: nothing worse has led anywhere."""

ERROR = 1e-9
"""Largest error of a solution, of the pose in units of the arm."""

SEARCHES = (
    {"passes": 1, "count": 1},
    {"passes": 1, "count": 2},
    {"passes": 2, "count": 2},
)
"""Looks near a root, each from where the one before saw the nearest solution, and how
many solutions are sought."""

POSES = 12
"""Targets at which roots are looked at that all have in common."""

TWO_SLIDES = 2

MOST_TURN = 0.6
"""Largest turn about a far axis that stands for a slide [rad]."""


class Order:
    """The kernels of one order of an arm: the first search, roots, and `SEARCHES`.

    Of arms that slide, roots and searches are those of turns about far axes.
    """

    def __init__(self, arm: SixAxes, poses: Array, *, hides_five: bool) -> None:
        """Prepare the kernels.

        Args:
            arm: The axes.
            poses: Some targets, shape (k, 4, 4).
            hides_five: Whether joint 5 is hidden, else joint 2.
        """
        self._poses = poses[:POSES]
        self._constants, *self._around = arm.order(hides_five=hides_five)
        self._links, self._slides = arm.scaled, arm.slides
        self._sliding, self._far = arm.sliding, arm.far
        self._from_end = hides_five

    @cached_property
    def is_exact(self) -> bool:
        """Return whether roots can be those of the arm, not of one with far axes."""
        if len(self._sliding) != 1:
            return len(self._sliding) in {0, TWO_SLIDES}
        return self._place in PLACES

    @property
    def _place(self) -> int:
        return place_of_slide(self._sliding[0], from_end=self._from_end)

    @cached_property
    def first(self) -> Kernel:
        """Return the kernel of `first_search.py`, where roots are those of the arm."""
        limits = {"missed": MISSED, "error": ERROR, "apart": APART}
        if not self._sliding:
            return first_search_kernel(self._constants, self._links[:, :3], **limits)
        L = inverse(self._links[::-1]) if self._from_end else self._links
        if len(self._sliding) == TWO_SLIDES:
            slides = self._slides[::-1] if self._from_end else self._slides
            back = self._from_end
            order = order_of_slides(L, slides, self._poses, from_end=back)
            compiled = compiled_two_slides(**limits)
        else:
            place, back = self._place, self._from_end
            order = order_of_slide(L, place, self._poses, from_end=back)
            compiled = compiled_one_slide(**limits)
        return search_kernel(
            compiled, order, mixed_chain(self._links[:, :3], self._slides)
        )

    @cached_property
    def _roots(self) -> Kernel:
        return roots_kernel(self._constants)

    @cached_property
    def _near(self) -> tuple[Kernel, ...]:
        return tuple(near_kernel(self._constants, **how) for how in SEARCHES)

    def roots(self, inner: Array, *, threads: int | None = None) -> tuple[Array, ...]:
        """Return `angles`, `marks`, `root_error` and `most` of the kernel of roots."""
        return called(self._roots, threads, self._seen(inner))

    def near(
        self, how: int, inner: Array, angles: Array, *, threads: int | None = None
    ) -> tuple[Array, Array]:
        """Return `found` and `missed` of the kernel of a search.

        Turns about far axes become slides; where they are large there is no answer.
        """
        found, missed = called(self._near[how], threads, self._seen(inner), angles)
        if self._sliding:
            turns = found[..., self._sliding]
            missed = np.where((np.abs(turns) < MOST_TURN).all(-1), missed, np.inf)
            found[..., self._sliding] = self._far * np.sin(turns)
        return found, missed

    def _seen(self, inner: Array) -> Array:
        """Return targets for the axes that the order is about."""
        if not self._sliding:
            return inner
        front, back = self._around
        return np.ascontiguousarray(front @ inner @ back)


def called(kernel: Kernel, threads: int | None, *inputs: Array) -> Any:
    """Return what a kernel does; it has a quick way in where no threads are given."""
    return kernel(*inputs) if threads is None else kernel(*inputs, threads=threads)
