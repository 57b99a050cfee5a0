"""Functions put together as a module of LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.kernel.builder import Function

__all__ = ["module_text"]

METADATA = """
attributes #0 = { "probe-stack"="inline-asm" "stackrealign" }
!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{i32 1}
"""
"""What functions, unlikely branches and streamed stores refer to.

LLVM touches each page of a large frame in turn, so that a stack that is too small ends
in its guard page and never beyond it. It also aligns the frame, without which spilled
registers of 64 bytes cross cache lines.
"""


def module_text(functions: Sequence[Function], *others: str) -> str:
    """Return the IR of a module: functions, and other code that they call.

    others: Text that may declare functions of LLVM, too.
    """
    present = "\n".join(others)
    declared = {text: None for f in functions for text in f.declared.values()}
    missing = [text for text in declared if text not in present]
    return "\n".join([present, *missing, *(f.text for f in functions), METADATA])
