"""Programs to fast callables, for any formula; the layer knows no robots.

LLVM is imported when the first kernel is compiled.
"""

from __future__ import annotations

from armillary.kernel.kernel import Kernel, compile, shared_kernel
from armillary.kernel.references import interpret, vectorize

__all__ = ["Kernel", "compile", "interpret", "shared_kernel", "vectorize"]
