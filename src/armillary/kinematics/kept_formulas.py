"""Formulas that earlier processes have traced: a tenth of the time of tracing them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from armillary import disk_cache
from armillary.disk_cache import FORMULAS, source_digest
from armillary.kinematics.identity import digest
from armillary.paused_collector import collector_paused
from armillary.trace import Program

__all__ = ["LAYERS_BELOW", "kept_formula"]

if TYPE_CHECKING:
    from armillary.kernel.pipeline import Pipeline

Formula = TypeVar("Formula", bound="Program | Pipeline")

LAYERS_BELOW: Final = (
    "armillary.trace",
    "armillary.spatial",
    "armillary.kernel",
    "armillary.model",
    "armillary.model.geometry",
    "armillary.model.shapes",
)
"""Packages on which most formulas depend."""


def kept_formula(
    what: str,
    parts: tuple[Any, ...],
    make: Callable[[], Formula],
    *,
    made_by: tuple[str, ...],
) -> Formula:
    """Return a formula that an earlier process has traced, or else what `make` traces.

    Args:
        what: What it is, for the key.
        parts: All that decides it. What has classes or functions of others is traced
            each time, since they may do something else next time.
        make: Traces it; what it raises is raised.
        made_by: The modules and packages whose source decides it.
    """
    source = source_digest(made_by)
    key = None
    if source is not None and disk_cache.folder() is not None:
        python = sys.version_info[:2]
        key = digest((what, made_by, source, python, parts), is_ours=True)
    if key is None:
        return make()
    content = disk_cache.load(key, FORMULAS)
    if content is not None:
        with collector_paused():
            return pickle.loads(content)  # as trusted as machine code
    made = make()
    made.fingerprint  # noqa: B018  # is kept with it
    disk_cache.store(key, pickle.dumps(made, 5), FORMULAS)
    return made
