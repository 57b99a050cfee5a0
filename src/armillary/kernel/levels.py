"""Several levels of x86-64 in one module, and the choice between them where it runs.

Each function is there once for each level; the one that callers see goes on in that of
the machine. The level is found by `cpuid`, and by `xgetbv`, which says whose registers
the system keeps for a process. It is stored as one number: threads that find it at the
same time store the same, so there is no lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from armillary.kernel.host import Target

__all__ = ["CHOICE", "STACK_PROBE", "WINDOWS_HINTS", "of_levels"]


def _bits(*positions: int) -> int:
    return sum(1 << k for k in positions)


V3_OF_1: Final = _bits(12, 22, 27, 28, 29)  # FMA, MOVBE, OSXSAVE, AVX, F16C
V3_OF_7: Final = _bits(3, 5, 8)  # BMI1, AVX2, BMI2
V4_OF_7: Final = V3_OF_7 | _bits(16, 17, 28, 30, 31)  # AVX512 F, DQ, CD, BW, VL
LZCNT: Final = _bits(5)
YMM_KEPT: Final = _bits(1, 2)
ZMM_KEPT: Final = YMM_KEPT | _bits(5, 6, 7)

ASSEMBLY: Final = """
define internal { i32, i32, i32, i32 } @level.cpuid(i32 %leaf) #0 {
  %found = call { i32, i32, i32, i32 } asm sideeffect "cpuid", \
"={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 0)
  ret { i32, i32, i32, i32 } %found
}
define internal i32 @level.xgetbv() #0 {
  %found = call { i32, i32 } asm sideeffect "xgetbv", \
"={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %low = extractvalue { i32, i32 } %found, 0
  ret i32 %low
}
"""

STACK_PROBE: Final = r"""
define internal void @stack_probe() #1 {
  call void asm sideeffect "pushq %rcx\0Apushq %rax\0Aleaq 24(%rsp), %rcx\0A\
1:\0Acmpq $$0x1000, %rax\0Ajbe 2f\0Asubq $$0x1000, %rcx\0Atestq %rcx, (%rcx)\0A\
subq $$0x1000, %rax\0Ajmp 1b\0A2:\0Asubq %rax, %rcx\0Atestq %rcx, (%rcx)\0A\
popq %rax\0Apopq %rcx\0Aretq", ""()
  unreachable
}
attributes #1 = { naked nounwind }
""".replace("\\\n", "")
"""Windows: the function that touches each page of a frame of %rax bytes, in turn.

LLVM calls it before a frame of more than a page, whose last page would else be behind
the one that is guarded. Runtimes have such a function under different names.
"""

WINDOWS_HINTS: Final = ("uwtable", '"probe-stack"="stack_probe"')
"""Hints of functions: tables by which debuggers walk the stack, which Windows asks of
all functions, and the function above."""

CHOICE: Final = f"""
@level.kept = internal global i32 0
define internal i32 @level() #0 {{
  %kept = load atomic i32, ptr @level.kept monotonic, align 4
  %is_known = icmp ne i32 %kept, 0
  br i1 %is_known, label %known, label %unknown, !prof !2
known:
  ret i32 %kept
unknown:
  %found = call i32 @level.found()
  store atomic i32 %found, ptr @level.kept monotonic, align 4
  ret i32 %found
}}
define internal i32 @level.found() #0 {{
  %leaf0 = call {{ i32, i32, i32, i32 }} @level.cpuid(i32 0)
  %last = extractvalue {{ i32, i32, i32, i32 }} %leaf0, 0
  %has_7 = icmp uge i32 %last, 7
  br i1 %has_7, label %processor, label %least
processor:
  %leaf1 = call {{ i32, i32, i32, i32 }} @level.cpuid(i32 1)
  %of_1 = extractvalue {{ i32, i32, i32, i32 }} %leaf1, 2
  %v3_of_1 = and i32 %of_1, {V3_OF_1}
  %has_1 = icmp eq i32 %v3_of_1, {V3_OF_1}
  %leaf7 = call {{ i32, i32, i32, i32 }} @level.cpuid(i32 7)
  %of_7 = extractvalue {{ i32, i32, i32, i32 }} %leaf7, 1
  %v3_of_7 = and i32 %of_7, {V3_OF_7}
  %has_v3_of_7 = icmp eq i32 %v3_of_7, {V3_OF_7}
  %leaf8 = call {{ i32, i32, i32, i32 }} @level.cpuid(i32 {0x8000_0001})
  %of_8 = extractvalue {{ i32, i32, i32, i32 }} %leaf8, 2
  %lzcnt = and i32 %of_8, {LZCNT}
  %has_lzcnt = icmp ne i32 %lzcnt, 0
  %both = and i1 %has_1, %has_v3_of_7
  %all = and i1 %both, %has_lzcnt
  br i1 %all, label %system, label %least
system:
  %registers = call i32 @level.xgetbv()
  %ymm = and i32 %registers, {YMM_KEPT}
  %keeps_ymm = icmp eq i32 %ymm, {YMM_KEPT}
  br i1 %keeps_ymm, label %wide, label %least
wide:
  %zmm = and i32 %registers, {ZMM_KEPT}
  %keeps_zmm = icmp eq i32 %zmm, {ZMM_KEPT}
  %v4_of_7 = and i32 %of_7, {V4_OF_7}
  %has_v4 = icmp eq i32 %v4_of_7, {V4_OF_7}
  %is_4 = and i1 %keeps_zmm, %has_v4
  %level = select i1 %is_4, i32 4, i32 3
  ret i32 %level
least:
  ret i32 2
}}
"""
"""The function `level`: 4, 3, or 2 where neither of them is there."""

_ENTRY: Final = re.compile(r"^define i32 @(\w+)\((.*)\) #0", re.MULTILINE)
_FUNCTION: Final = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"@(?!llvm\.|data_[0-9a-f]{16}\b)([\w.]+)")
"""A name of a level's own; constants are the same for the same bytes."""


def of_levels(
    modules: Mapping[int, str],
    machines: Sequence[Target],
    *,
    more: str = "",
    hints: Sequence[str] = (),
) -> str:
    """Return one module of several, with the same functions for each level.

    Args:
        modules: The IR of each level, by its number, from the least.
        machines: What LLVM must know of each, in the same order.
        more: Functions that all levels share.
        hints: Of the functions that choose.
    """
    shared: dict[str, None] = {}
    parts: list[str] = []
    heads: list[str] = []
    for (level, text), machine in zip(modules.items(), machines, strict=True):
        for line in text.splitlines():
            if line.startswith(("declare ", "@data_", "!")):
                shared[line] = None
        for found in _FUNCTION.findall(text):
            own = _NAME.sub(rf"@\1.v{level}", found).replace(" #0", f" #{level}", 1)
            parts.append(own.replace("define i32", "define internal i32", 1))
        (given,) = re.findall(r"attributes #0 = {(.*)}", text)
        heads.append(f"attributes #{level} = {{{given}{_of_machine(machine)}}}")
    entries = _ENTRY.findall(next(iter(modules.values())))
    parts += [_entry(name, given, list(modules)) for name, given in entries]
    own = " ".join(["nounwind", *hints])
    last = [f"attributes #0 = {{ {own} }}", '!2 = !{!"branch_weights", i32 100, i32 1}']
    return "\n".join([*shared, *parts, ASSEMBLY, CHOICE, more, *heads, *last])


def _of_machine(machine: Target) -> str:
    features = '"target-features"="-prefer-256-bit" '
    return f'"target-cpu"="{machine.cpu}" {features * (machine.vector_bits == 512)}'


def _entry(name: str, given: str, levels: Sequence[int]) -> str:
    """Return a function that goes on in that of the level of the machine."""

    def lines() -> Iterator[str]:
        least, *others = levels
        cases = " ".join(f"i32 {k}, label %v{k}" for k in others)
        yield f"define i32 @{name}({given}) #0 {{"
        yield "  %level = call i32 @level()"
        yield f"  switch i32 %level, label %v{least} [ {cases} ]"
        for k in levels:
            yield f"v{k}:"
            yield f"  %r{k} = tail call i32 @{name}.v{k}({given})"
            yield f"  ret i32 %r{k}"
        yield "}"

    return "\n".join(lines())
