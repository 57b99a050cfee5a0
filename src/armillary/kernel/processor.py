"""The processor of this machine as LLVM names it, and the release of LLVM."""

from __future__ import annotations

import llvmlite.binding as llvm

__all__ = ["this_machine"]


def this_machine() -> tuple[str, str, str, str]:
    """Return triple, processor and features of this machine, and LLVM's version."""
    return (
        str(llvm.get_default_triple()),
        str(llvm.get_host_cpu_name()),
        str(llvm.get_host_cpu_features().flatten()),
        str(llvm.llvm_version_info),
    )
