"""Lines of LLVM IR for the plumbing of a kernel: branches, pointers, counters."""

from __future__ import annotations


class Text:
    """The lines of a function under construction, with numbered names."""

    def __init__(self) -> None:
        """Start without lines."""
        self.lines: list[str] = []
        self._count = 0
        self._allocas = 0

    def name(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        self._count += 1
        self.lines.append(f"  %x{self._count} = {text}")
        return f"%x{self._count}"

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def alloca(self, text: str) -> str:
        """Allocate on the stack, once, at the start of the function."""
        name = self.name(f"alloca {text}")
        self.lines.insert(self._allocas, self.lines.pop())
        self._allocas += 1
        return name

    def branch(self, truth: str, *, otherwise: str) -> None:
        """Go on here where `truth` holds, else at a label."""
        label = f"ok{len(self.lines)}"
        self.do(f"br i1 {truth}, label %{label}, label %{otherwise}")
        self.label(label)

    def label(self, name: str) -> None:
        """Start a block of instructions."""
        self.lines.append(f"{name}:")

    def load_at(self, base: str, index: int, kind: str = "i64") -> str:
        """Return element `index` of an array of a type."""
        address = self.name(f"getelementptr {kind}, ptr {base}, i64 {index}")
        return self.name(f"load {kind}, ptr {address}")

    def load_field(self, base: str, offset: int, kind: str) -> str:
        """Return the field of a structure at an offset in bytes."""
        address = self.name(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.name(f"load {kind}, ptr {address}")
