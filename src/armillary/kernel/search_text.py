"""The text of a search: `search.ll`, its holes filled, beside the programs it calls."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import numpy as np

from armillary.kernel.block import Shape
from armillary.kernel.emit import emit_columns
from armillary.kernel.start_table import levels_of, pairs_of
from armillary.trace import Program

# The words of a job: first those of a plan, in the order of `make_plan`;
PLAN_WORDS = (
    "FEATURES",
    "STARTS",
    "OFFSETS",
    "GRID",
    "COLUMNS",
    "FACTORS",
    "AXES",
    "VOID",
    "TOLERANCES",
    "LOWER",
    "SPAN",
    "SALT",
    "CONSTANTS",  # what all problems share
    "MOST_STEPS",
    "STALE_FROM",
    "PATIENT_AFTER",
    "PATIENT_STEPS",
    "MOST_STARTS",
    "TABLE_STARTS",
    "STALENESS",  # the address of stale_factor, stale_floor
)
# then those of a call.
CALL_WORDS = (
    "COUNT",
    "PROBLEMS",
    "STRIDE",
    "SEEDS",
    "ANSWERS",
    "RESIDUALS",
    "ENDINGS",
    "TOGETHER",  # whether all lanes work on one problem
    "LANES_USED",  # how many lanes work
    "CHAINED",  # whether each problem starts where the one before was solved
    "DEADLINE",  # when to stop [ns], 0 for never
    "CLOCK",  # clock_gettime
    "CLOCK_ID",
)
# How a problem ends that the deadline stopped.
STOPPED = 6
# The fields of %State.
STATE = (
    "HERE",
    "THERE",
    "PARAMETERS",
    "SHARED",
    "ERRORS",
    "AGE",
    "WORKS",
    "LAST_ERROR",
    "PROBLEM",
    "TRIES",
    "STEPS",
    "LEAST_ERROR",
    "VERDICT",
    "TAKEN",
    "DISTANCES",
    "PACKS",
    "NEXT",
    "LEFT",
    "FAILURES",
)

# Squares of numbers, added two by two; LLVM does not find the instruction by itself.
PAIRED_SQUARES = {
    True: """
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
define internal <8 x i32> @squares(<16 x i16> %a) alwaysinline {
  %sum = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %a, <16 x i16> %a)
  ret <8 x i32> %sum
}""",
    False: """
define internal <8 x i32> @squares(<16 x i16> %a) alwaysinline {
  %pairs = bitcast <16 x i16> %a to <8 x i32>
  %up = shl <8 x i32> %pairs, splat (i32 16)
  %even = ashr <8 x i32> %up, splat (i32 16)
  %odd = ashr <8 x i32> %pairs, splat (i32 16)
  %even2 = mul <8 x i32> %even, %even
  %odd2 = mul <8 x i32> %odd, %odd
  %sum = add <8 x i32> %even2, %odd2
  ret <8 x i32> %sum
}""",
}


def search_text(
    step: Program,
    guard: Program,
    scales: tuple[float, ...],
    shape: Shape,
    *,
    with_avx2: bool,
) -> str:
    """Return the LLVM IR of a search."""
    n, m, c = (*(port.size for port in step.inputs), 0)[:3]
    inputs = ("%now", "%parameters", "%shared")[: len(step.inputs)]
    k, w = step.outputs[1].size, shape.lanes
    job = (*PLAN_WORDS, *CALL_WORDS)
    holes = {
        "LANES": w,
        "MASK": f"i{w}",
        "NW": n * w,
        "MW": m * w,
        "KW": k * w,
        "N": n,
        "NBYTES": 8 * n,
        "M": m,
        "C": c,
        "CW": c * w,
        "STEP_INPUTS": ", ".join(f"ptr {name}" for name in inputs),
        "STOPPED": STOPPED,
        "K": k,
        "PAIRS": pairs_of(np.array(scales)),
        "LEVELS": levels_of(np.array(scales)),
        "PLAN_WORDS": len(PLAN_WORDS),
        "JOB_WORDS": len(job),
        "PLAN_BYTES": 8 * len(PLAN_WORDS),
        "CALL_BYTES": 8 * len(CALL_WORDS),
        **{word: place for place, word in enumerate(job)},
        **{field: place for place, field in enumerate(STATE)},
    }
    text = files("armillary.kernel").joinpath("search.ll").read_text(encoding="utf-8")
    filled = re.sub(r"\b[A-Z_]+\b", lambda hole: _filled(hole, holes), text)
    code = "\n".join(line.split(";")[0].rstrip() for line in filled.splitlines())
    programs = emit_columns({"step": step, "guard": guard}, shape)
    return "\n".join([programs, PAIRED_SQUARES[with_avx2], code])


def _filled(hole: re.Match[str], holes: dict[str, Any]) -> str:
    return str(holes.get(hole.group(), hole.group()))
