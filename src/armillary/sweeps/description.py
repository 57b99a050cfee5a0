"""The description of a sweep in the attributes of its file."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from types import FunctionType
from typing import Any, Final

import numpy as np

from armillary.collision.check import CollisionCheck
from armillary.errors import SweepError
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.sweeps.chunk import Job
from armillary.sweeps.identity import digest
from armillary.sweeps.questions import Question
from armillary.sweeps.samples import Uniform

__all__ = ["description"]

ADDRESS: Final = re.compile(" at 0x[0-9a-fA-F]+")


def description(job: Job) -> dict[str, Any]:
    """Return the description of a sweep, as JSON has it.

    Raises:
        SweepError: A question cannot be identified, since it has no pickle.
    """
    try:
        version_of_ours = version("armillary")
    except PackageNotFoundError:
        version_of_ours = "not installed"
    questions = {each.name: repr(each.ask) for each in job.questions}
    return {
        "question": _addressless(questions),
        "reductions": {name: _described(each) for name, each in job.reductions.items()},
        "question_digest": _digest_of(job),
        "cells": sorted({*_cells(job)}),
        "samples": job.samples.described(),
        "samples_digest": job.samples.digest,
        "rows": job.count,
        "chunk": job.chunk,
        "units": "SI: m, rad, s, kg, N; poses map coordinates in the frame to those in "
        "the frame it is relative to; quaternions are w x y z",
        "versions": {
            "armillary": version_of_ours,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def _digest_of(job: Job) -> str | None:
    asked = [(each.name, each.ask, _call_of(each)) for each in job.questions]
    try:
        return digest((asked, sorted(job.reductions.items())))
    except Exception as error:
        raise SweepError(
            "A sweep to a file identifies its question by its "
            f"pickle, which cannot be made: {error}. Define functions at the top of "
            "a module, or sweep into memory."
        ) from error


def _call_of(question: Question) -> FunctionType | None:
    """Return the code of an object of the user's that is called, as functions are."""
    call: Any = type(question.core).__call__
    return call if type(call) is FunctionType and not question.is_native else None


def _described(reduction: Any) -> Any:
    """Return the kind and the fields of a reduction as JSON has them."""
    if not is_dataclass(reduction) or isinstance(reduction, type):
        return repr(reduction)
    fields = {"kind": type(reduction).__name__, **asdict(reduction)}
    return json.loads(json.dumps(fields, default=lambda each: np.array(each).tolist()))


def _cells(job: Job) -> Iterator[str]:
    """Yield the names and digests of the cells of samples, checks and solvers."""
    if isinstance(job.samples, Uniform):
        yield _cell_text(job.samples.cell, job.samples.cell_digest)
    for question in job.questions:
        core = question.core
        if isinstance(core, CollisionCheck | InverseKinematics):
            yield _cell_text(core.cell.name, digest(core.cell))


def _cell_text(name: str, key: str | None) -> str:
    return name if key is None else f"{name} {key}"


def _addressless(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts without the addresses of objects, which differ in every process."""
    return {name: ADDRESS.sub("", text) for name, text in texts.items()}
