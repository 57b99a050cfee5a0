"""The IR of a scalar module as C99, for toolchains that want source text.

Each instruction becomes a statement with the same roundings, so that results agree with
machine code made of the same module. A product that a sum may take up without rounding
(`contract`) becomes `FUSED`, which is a fused multiply-add where the processor has one.
Memory is read and written through `memcpy` of single numbers, which compilers make one
instruction of; numbers stand in it as little-endian machines keep them.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from armillary.errors import KernelError
from armillary.kernel.intrinsics.ieee import WHOLE

__all__ = ["Prototype", "c_source"]

TYPES: Final = {
    "double": "double",
    "float": "float",
    "ptr": "char *",
    "i1": "int",
    "i8": "uint8_t",
    "i16": "uint16_t",
    "i32": "uint32_t",
    "i64": "uint64_t",
    "void": "void",
}
BITS: Final = {"double": 64, "float": 32, "i1": 8, "i8": 8, "i16": 16, "i32": 32} | {
    "i64": 64
}
ARITHMETIC: Final = {
    "fadd": "+",
    "fsub": "-",
    "fmul": "*",
    "fdiv": "/",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "lshr": ">>",
}
RELATIONS: Final = {
    "oeq": "==",
    "une": "!=",
    "olt": "<",
    "ole": "<=",
    "ogt": ">",
    "oge": ">=",
    "eq": "==",
    "ne": "!=",
    "slt": "<",
    "sle": "<=",
    "sgt": ">",
    "sge": ">=",
    "ult": "<",
    "ule": "<=",
}
SPECIAL: Final = {
    "uno": "({0} != {0}) | ({1} != {1})",
    "ord": "({0} == {0}) & ({1} == {1})",
    "one": "({0} < {1}) | ({0} > {1})",
    "ugt": "!({0} <= {1})",
}
"""Relations of numbers that may be NaN."""

LIBRARY: Final = {
    "fma": "EXACT_FMA",
    "fmuladd": "FUSED",
    "sqrt": "sqrt",
    "floor": "floor",
    "rint": "rint",
    "trunc": "trunc",
    "fabs": "fabs",
    "copysign": "copysign",
}
"""Functions of LLVM as those of C, all of them exact or rounded once."""

HEAD: Final = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sums of products keep their roundings but where FUSED says that they need not. The
   other options make the code of gcc twice as fast. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off", "no-tree-vectorize", "schedule-insns")
#else
#pragma STDC FP_CONTRACT OFF
#endif

"""
FUSED: Final = """\
#ifdef FP_FAST_FMA{f}
#define FUSED{f}(x, y, z) fma{f}(x, y, z)
#define EXACT_FMA{f}(x, y, z) fma{f}(x, y, z)
#else
#define FUSED{f}(x, y, z) ((x) * (y) + (z))
#define EXACT_FMA{f}(x, y, z) exact_fma{f}(x, y, z)
{software}
#endif
"""

ASSIGNED: Final = re.compile(r"  (?:%(\w+) = )?(\w+) (.*)$")
FUNCTION: Final = re.compile(r"define (internal )?(.+?) @([\w.]+)\((.*?)\) .*\{$")
CONSTANT: Final = re.compile(r'@(\w+) = internal constant \[\d+ x i8\] c"(.*)", align')
DEFINED: Final = re.compile(r"(\w+)\(")
BYTE: Final = re.compile(r"\\([0-9A-F]{2})")


@final
@dataclass(frozen=True, slots=True)
class Prototype:
    """How C sees a function that a module exports.

    Attributes:
        head: Its declaration, without a semicolon.
        names: The names of its parameters.
    """

    head: str
    names: tuple[str, ...]


def c_source(
    module: str, prototypes: Mapping[str, Prototype], fused: Mapping[str, str]
) -> str:
    """Return a module as the text of a C99 file.

    Args:
        module: Its IR, of scalars.
        prototypes: Of the functions that it exports, by name.
        fused: The IR of a function `exact_fma`, or `exact_fmaf` of floats, for machines
            without the instruction.

    Raises:
        KernelError: An instruction has no form in C.
    """
    lines = module.splitlines()
    body = "\n".join([*_constants(lines), *_functions(lines, prototypes), ""])
    for name, text in fused.items():
        software = ""
        if f"{name.replace('exact_fma', 'EXACT_FMA')}(" in body:
            software = "\n".join(_functions(text.splitlines(), {}))
        made = FUSED.format(f=name.removeprefix("exact_fma"), software=software)
        body = f"{made}\n{body}"
    # Compilers warn of functions that nothing calls; later ones call earlier ones.
    for text in reversed([*_memory_functions()]):
        name = DEFINED.findall(text)[0]
        if f"{name}(" in body:
            body = f"{text}\n{body}"
    return f"{HEAD}\n{body}"


def _memory_functions() -> Iterator[str]:
    """Yield functions that read and write numbers, and the bits of reals."""
    for kind, c in TYPES.items():
        if kind in ("i1", "void"):
            continue
        size = f"sizeof({c.strip()})"
        yield (
            f"static inline {c} load_{kind}(const char *p) "
            f"{{ {c} v; memcpy(&v, p, {size}); return v; }}"
        )
        yield (
            f"static inline void store_{kind}(char *p, {c} v) "
            f"{{ memcpy(p, &v, {size}); }}"
        )
    for real, bits in (("double", 64), ("float", 32)):
        for to, kind in ((f"uint{bits}_t", real), (real, f"uint{bits}_t")):
            yield (
                f"static inline {to} {kind}_as_{to}({kind} x) "
                f"{{ {to} v; memcpy(&v, &x, {bits // 8}); return v; }}"
            )
        # Compilers would branch, and processors guess half of the signs wrong.
        word = f"uint{bits}_t"
        yield (
            f"static inline {real} select_{real}(int truth, {real} x, {real} y) {{\n"
            f"  const {word} mask = -({word})truth;\n"
            f"  return {word}_as_{real}(({real}_as_{word}(x) & mask)\n"
            f"    | ({real}_as_{word}(y) & ~mask));\n}}"
        )


def _constants(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        found = CONSTANT.match(line)
        if found is None:
            continue
        data = bytes(int(byte, 16) for byte in BYTE.findall(found[2]))
        data += bytes(-len(data) % 8)
        words = struct.unpack(f"<{len(data) // 8}Q", data)
        listed = ",\n  ".join(
            ", ".join(f"0x{word:x}u" for word in words[k : k + 6])
            for k in range(0, len(words), 6)
        )
        yield f"static const uint64_t {found[1]}[{len(words)}] = {{\n  {listed}}};"


def _functions(
    lines: Sequence[str], prototypes: Mapping[str, Prototype]
) -> Iterator[str]:
    begin = -1
    for k, line in enumerate(lines):
        if line.startswith("define "):
            begin = k
        elif line == "}":
            yield _Function(lines[begin], lines[begin + 1 : k], prototypes).text


@dataclass(slots=True)
class _Phi:
    """A counter of a loop: where it comes from, by the label before."""

    name: str
    kind: str
    sources: dict[str, str]


@dataclass
class _Function:
    """A function being printed.

    Attributes:
        head: The line of the IR that begins it.
        body: Those in it.
        prototypes: Of exported functions.
        kinds: The type of each value.
        uses: How often each value is used.
        users: The last line that uses it.
        contracted: Products that may be rounded with what they go into.
        products: Products that a sum takes up, by name: their factors.
        cells: Variables in memory that only whole loads and stores reach.
    """

    head: str
    body: Sequence[str]
    prototypes: Mapping[str, Prototype]
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    uses: Counter[str] = field(default_factory=Counter[str])
    users: dict[str, str] = field(default_factory=dict[str, str])
    contracted: set[str] = field(default_factory=set[str])
    products: dict[str, tuple[str, str]] = field(
        default_factory=dict[str, tuple[str, str]]
    )
    cells: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def text(self) -> str:
        """Return the function in C."""
        found = FUNCTION.match(self.head)
        assert found is not None, self.head
        internal, result, name, parameters = found.groups()
        self._find_uses()
        self._find_cells()
        phis = self._phis()
        lines: list[str] = []
        label = "entry"
        for line in self.body:
            if line.endswith(":"):
                label = line[:-1]
                lines.append(f"{label}:" if label != "entry" else "")
                continue
            lines += self._statement(line, label, phis)
        # Of straight code each value is declared where it is made.
        declared: list[str] = []
        if any(line.endswith(":") for line in self.body):
            declared = [
                f"  {_declared(kind, name)};"
                for name, kind in self.kinds.items()
                if name not in self.products
            ]
        else:
            lines = [self._with_type(line) for line in lines]
        used = {label for line in lines for label in re.findall(r"goto (\w+);", line)}
        # A label that nothing goes to is left out.
        lines = [x for x in lines if x and (x[-1] != ":" or x[:-1] in used)]
        head, given = self._begun(result, name, _split(parameters))
        storage = "static " if internal else ""
        unused = [
            f"  (void){own};"
            for own in (x.rpartition("%")[2] for x in _split(parameters))
            if not self.uses[f"%{own}"]
        ]
        body = [*given, *declared, *unused, *lines]
        return "\n".join([f"{storage}{head} {{", *body, "}"])

    def _find_uses(self) -> None:
        """Note what uses values, and leave out those that nothing uses."""
        self.body = [line.removesuffix(WHOLE) for line in self.body]
        for line in self.body:
            used = re.findall(r"%\w+", line.partition(" = ")[2] or line)
            self.uses.update(used)
            self.users.update(dict.fromkeys(used, line))
            if " = fmul contract" in line:
                self.contracted.add(line.split()[0])
        # Backwards, so that what only they use goes, too.
        kept: list[str] = []
        for line in reversed(self.body):
            name, equals, rest = line.strip().partition(" = ")
            if equals and not self.uses[name] and " @" not in rest.replace("@llvm", ""):
                self.uses.subtract(re.findall(r"%\w+", rest))
            else:
                kept.append(line)
        self.body = kept[::-1]

    def _with_type(self, line: str) -> str:
        """Return an assignment as a declaration."""
        name, equals, rest = line.strip().partition(" = ")
        kind = self.kinds.get(name)
        if not equals or kind is None:
            return line
        storage = "" if name in self.cells else "const "
        if kind == "ptr":
            storage = ""
        return f"  {storage}{_declared(kind, name)} = {rest}"

    def _begun(
        self, result: str, name: str, parameters: Sequence[str]
    ) -> tuple[str, list[str]]:
        """Return the head of the function, and what its parameters are in it."""
        listed: list[str] = []
        kinds: list[str] = []
        for each in parameters:
            kind, _, own = each.replace(" noalias", "").rpartition(" ")
            kinds.append(kind)
            listed.append(_declared(kind, own[1:]))
        seen = self.prototypes.get(name)
        if seen is None:
            return f"{_declared(result, name)}({', '.join(listed)})", []
        given = zip(listed, kinds, seen.names, strict=True)
        return seen.head, [
            f"  {own} = ({TYPES[kind]}){theirs};"
            for own, kind, theirs in given
            if not own.endswith(f" {theirs}")
        ]

    def _find_cells(self) -> None:
        """Find memory of one number whose address goes nowhere."""
        for line in self.body:
            found = re.match(r"  %(m\d+) = alloca (\w+)$", line)
            if found is None:
                continue
            name, kind = found.groups()
            direct = sum(
                bool(re.search(rf"(load {kind}|store {kind} .*), ptr %{name}\b", each))
                for each in self.body
            )
            if direct == self.uses[f"%{name}"]:
                self.cells[name] = kind

    def _phis(self) -> dict[str, list[_Phi]]:
        """Return the counters of loops by the label of the block that has them."""
        found: dict[str, list[_Phi]] = {}
        label = "entry"
        for line in self.body:
            if line.endswith(":"):
                label = line[:-1]
            elif " = phi " in line:
                name, _, rest = line.strip().partition(" = phi ")
                kind, _, pairs = rest.partition(" ")
                sources = {
                    before: value
                    for value, before in re.findall(r"\[ (\S+), %(\w+) \]", pairs)
                }
                found.setdefault(label, []).append(_Phi(name[1:], kind, sources))
        return found

    def _go(self, target: str, label: str, phis: Mapping[str, list[_Phi]]) -> str:
        moves = "".join(
            f"{phi.name} = {self._value(phi.sources[label], phi.kind)}; "
            for phi in phis.get(target, ())
        )
        return f"{{ {moves}goto {target}; }}" if moves else f"goto {target};"

    def _statement(
        self, line: str, label: str, phis: Mapping[str, list[_Phi]]
    ) -> Iterator[str]:
        found = ASSIGNED.match(line)
        assert found is not None, line
        name, operation, rest = found.groups()
        # A jump first assigns the phis of the block that it leads to.
        if operation == "br":
            rest = rest.partition(", !prof")[0]
            parts = rest.split(", ")
            labels = [part.split("%")[1] for part in parts if "label" in part]
            goes = [self._go(target, label, phis) for target in labels]
            if len(goes) == 2:
                yield f"  if ({self._value(parts[0].split()[1], 'i1')}) {goes[0]}"
            yield f"  {goes[-1]}"
        elif operation == "ret":
            kind, _, value = rest.rpartition(" ")
            yield f"  return {self._value(value, kind)};" if kind else "  return;"
        elif operation == "store":
            value, _, where = rest.partition(", ptr ")
            kind, _, value = value.partition(" ")
            if kind not in TYPES:  # a vector
                raise _unknown(line)
            place = where.partition(",")[0]
            text = self._value(value, kind)
            if place[1:] in self.cells:
                yield f"  {place[1:]} = {text};"
            else:
                yield f"  store_{kind}({self._value(place, 'ptr')}, {text});"
        elif operation == "phi":
            self.kinds[name] = rest.partition(" ")[0]
        elif operation == "alloca":
            yield from self._alloca(name, rest)
        elif operation == "call" and name is None:
            yield f"  {self._call(operation, rest)[1]};"
        # Written by the sum that takes it up.
        elif operation == "fmul" and self._is_taken_up(name, rest):
            left, right = self._operands(rest)[1]
            self.kinds[name] = self._operands(rest)[0]
            self.products[name] = left, right
        else:
            kind, text = self._expression(operation, rest, line)
            self.kinds[name] = kind
            yield f"  {name} = {text};"

    def _alloca(self, name: str, rest: str) -> Iterator[str]:
        size = re.match(r"\[(\d+) x i8\]", rest)
        if size is not None:
            words = -(-int(size[1]) // 8)
            self.kinds[name] = "ptr"
            yield f"  uint64_t {name}_room[{words}];"
            yield f"  {name} = (char *){name}_room;"
        elif name in self.cells:
            self.kinds[name] = self.cells[name]
        else:
            self.kinds[name] = "ptr"
            yield f"  uint64_t {name}_room[1];"
            yield f"  {name} = (char *){name}_room;"

    def _operands(self, rest: str) -> tuple[str, tuple[str, str]]:
        """Return the type and the two operands of an operation."""
        words = rest.replace("contract nsz ", "").split(" ", 1)
        left, right = words[1].split(", ")
        return words[0], (left, right)

    def _is_taken_up(self, name: str, rest: str) -> bool:
        """Tell whether the only use of a product is a sum that may be fused with it."""
        if not rest.startswith("contract") or self.uses[f"%{name}"] != 1:
            return False
        found = ASSIGNED.match(self.users[f"%{name}"])
        assert found is not None
        if found[2] not in ("fadd", "fsub") or not found[3].startswith("contract"):
            return False
        # Of two products the first is taken up, as LLVM does.
        first = self._operands(found[3])[1][0]
        return first == f"%{name}" or not self._may_be_taken_up(first)

    def _may_be_taken_up(self, value: str) -> bool:
        return value in self.contracted and self.uses[value] == 1

    def _expression(self, operation: str, rest: str, line: str) -> tuple[str, str]:
        """Return the type and the C expression of an operation."""
        make = {
            **dict.fromkeys(ARITHMETIC, self._arithmetic),
            **dict.fromkeys(("fadd", "fsub"), self._sum),
            **dict.fromkeys(("fcmp", "icmp"), self._comparison),
            "ashr": self._shift,
            "select": self._selection,
            "fneg": self._negative,
            "call": self._call,
            "load": self._load,
            "getelementptr": self._address,
        }.get(operation)
        if make is not None:
            return make(operation, rest)
        if " to " in rest:
            return self._converted(operation, rest, line)
        raise _unknown(line)

    def _arithmetic(self, operation: str, rest: str) -> tuple[str, str]:
        kind, (left, right) = self._operands(rest)
        sign = ARITHMETIC[operation]
        text = f"{self._value(left, kind)} {sign} {self._value(right, kind)}"
        # What is narrower than an int would be widened.
        return kind, f"({TYPES[kind]})({text})" if kind in ("i8", "i16") else text

    def _shift(self, _: str, rest: str) -> tuple[str, str]:
        kind, (left, right) = self._operands(rest)
        signed = TYPES[kind].replace("uint", "int")
        return kind, f"({TYPES[kind]})(({signed}){self._value(left, kind)} >> {right})"

    def _selection(self, _: str, rest: str) -> tuple[str, str]:
        parts = [each.split(" ", 1) for each in rest.split(", ")]
        kind = parts[1][0]
        truth, yes, no = (self._value(value, of) for of, value in parts)
        if kind in ("double", "float"):
            return kind, f"select_{kind}({truth}, {yes}, {no})"
        return kind, f"{truth} ? {yes} : {no}"

    def _negative(self, _: str, rest: str) -> tuple[str, str]:
        kind, value = rest.split(" ")
        return kind, f"-{self._value(value, kind)}"

    def _load(self, _: str, rest: str) -> tuple[str, str]:
        kind, _, place = rest.partition(", ptr ")
        place = place.partition(",")[0]
        if place[1:] in self.cells:
            return kind, place[1:]
        return kind, f"load_{kind}({self._value(place, 'ptr')})"

    def _sum(self, operation: str, rest: str) -> tuple[str, str]:
        kind, (left, right) = self._operands(rest)
        f = "f" if kind == "float" else ""
        is_sum = operation == "fadd"
        # x y + z, x y - z = x y + (-z), z - x y = (-x) y + z, each rounded once.
        if left[1:] in self.products:
            x, y = (self._value(each, kind) for each in self.products[left[1:]])
            z = self._value(right, kind)
            return kind, f"FUSED{f}({x}, {y}, {z if is_sum else f'-{z}'})"
        if right[1:] in self.products:
            x, y = (self._value(each, kind) for each in self.products[right[1:]])
            z = self._value(left, kind)
            return kind, f"FUSED{f}({x if is_sum else f'-{x}'}, {y}, {z})"
        sign = ARITHMETIC[operation]
        return kind, f"{self._value(left, kind)} {sign} {self._value(right, kind)}"

    def _comparison(self, _: str, rest: str) -> tuple[str, str]:
        relation, kind, operands = rest.split(" ", 2)
        left, right = (self._value(x, kind) for x in operands.split(", "))
        if relation in SPECIAL:
            return "i1", SPECIAL[relation].format(left, right)
        if relation not in RELATIONS:
            raise _unknown(f"  compare {rest}")
        if relation[0] == "s":
            signed = f"({TYPES[kind].replace('uint', 'int')})"
            left, right = signed + left, signed + right
        return "i1", f"{left} {RELATIONS[relation]} {right}"

    def _address(self, _: str, rest: str) -> tuple[str, str]:
        kind, base, index = rest.split(", ")
        start = self._value(base.removeprefix("ptr "), "ptr")
        if kind not in BITS:
            raise _unknown(f"  getelementptr {kind}")
        size, at = BITS[kind] // 8, index.split(" ")[1]
        if at.startswith("%"):
            number = f"(ptrdiff_t){self._value(at, 'i64')}"
            return "ptr", f"{start} + {number}{f' * {size}' if size > 1 else ''}"
        return "ptr", f"{start} + {int(at) * size}"

    def _converted(self, operation: str, rest: str, line: str) -> tuple[str, str]:
        source, to = rest.split(" to ")
        kind, value = source.split(" ")
        text = self._value(value, kind)
        if operation == "bitcast":
            if kind == to:
                return to, text
            return to, f"{TYPES[kind]}_as_{TYPES[to]}({text})"
        # C has unsigned numbers alone here: signed ones are made of them where an
        # instruction means them. A bit is 0 or 1 in C, and 0 or -1 as a signed number.
        if operation in ("sext", "sitofp"):
            if kind == "i1":
                return to, f"({TYPES[to]})-{text}"
            signed = TYPES[kind].replace("uint", "int")
            wide = TYPES[to].replace("uint", "int")
            return to, f"({TYPES[to]})({wide})({signed}){text}"
        if operation == "fptosi":
            return to, f"({TYPES[to]})({TYPES[to].replace('uint', 'int')}){text}"
        if operation == "trunc" and to == "i1":
            return to, f"(int)({text} & 1)"
        if operation in ("zext", "trunc", "uitofp", "fptrunc", "fpext", "ptrtoint"):
            middle = "(uintptr_t)" if operation == "ptrtoint" else ""
            return to, f"({TYPES[to]}){middle}{text}"
        raise _unknown(line)

    def _call(self, _: str, rest: str) -> tuple[str, str]:
        found = re.match(r"(\w+) @([\w.]+)\((.*)\)$", rest)
        if found is None:
            raise _unknown(f"  call {rest}")
        kind, name, listed = found.groups()
        arguments = [each.rsplit(" ", 1) for each in _split(listed)]
        values = [self._value(value, of) for of, value in arguments]
        if name.startswith("llvm."):
            key = name.split(".")[1]
            if key in ("memcpy", "memset"):
                if key == "memset":
                    values[1] = f"(int){values[1]}"
                return "void", f"{key}({', '.join(values[:2])}, (size_t){values[2]})"
            if key not in LIBRARY:
                raise _unknown(f"  call {rest}")
            name = LIBRARY[key] + ("f" if kind == "float" else "")
        return kind, f"{name}({', '.join(values)})"

    def _value(self, text: str, kind: str) -> str:
        """Return a name or a number in C."""
        if text.startswith("%"):
            return text[1:]
        if text.startswith("@"):
            return f"(char *){text[1:]}"
        if kind in ("double", "float"):
            return _real(text, kind)
        if text in ("true", "false"):
            return "1" if text == "true" else "0"
        if kind == "ptr":
            return "(char *)0"
        number = int(text) % 2 ** BITS[kind]
        return f"({TYPES[kind]}){number}u" if kind != "i64" else f"UINT64_C({number})"


def _real(text: str, kind: str) -> str:
    """Return a real of the IR, the bits of a double, as C writes it exactly."""
    (value,) = struct.unpack(">d", bytes.fromhex(text[2:]))
    suffix = "f" if kind == "float" else ""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    shown = repr(value) if kind == "double" else value.hex()
    return f"{shown}{suffix}" if text[2] < "8" else f"({shown}{suffix})"


def _declared(kind: str, name: str) -> str:
    text = TYPES.get(kind)
    if text is None:
        raise _unknown(f"  {kind} {name}")
    return f"{text}{'' if text.endswith('*') else ' '}{name}"


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(", ")] if text else []


def _unknown(line: str) -> KernelError:
    return KernelError(
        f"The code has the instruction '{line.strip()}', which has no form in C; "
        "compile to an object for the target in place of source."
    )
