"""Cells compiled to a folder: for other machines, or as source for other compilers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from armillary.errors import KernelError, ModelError, quote
from armillary.forks import IMPORT_LOCK
from armillary.kernel.native import real_type
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.portable.asked import asked_of, check_names
from armillary.portable.companions import (
    TEST_ROWS,
    build_file,
    python_example,
    self_test,
)
from armillary.portable.header import Signature, header
from armillary.replaced_file import replacing

__all__ = ["CompiledFolder", "compile_to"]

SEED: Final = 35


@final
@dataclass(frozen=True, slots=True)
class CompiledFolder:
    """What `compile_to` wrote.

    Attributes:
        path: The folder.
        sizes: The size of each file in it [bytes], by name.
        functions: The names of the functions of single rows.
    """

    path: Path
    sizes: Mapping[str, int]
    functions: tuple[str, ...]


def compile_to(
    cell: Workcell,
    folder: str | os.PathLike[str],
    *,
    ask: Iterable[str] | Mapping[str, Any],
    target: str = "host",
    state: State | None = None,
    dtype: Any = np.float64,
    name: str = "",
    overwrite: bool = False,
) -> CompiledFolder:
    """Compile questions to a library for C, which needs neither Python nor other code.

    The folder gets a header, a static library and its object, or C99 source; a program
    that tests it, a CMakeLists.txt and a script that calls it through ctypes. The code
    has no licence but yours.

    Args:
        cell: What is compiled.
        folder: Where to write; it is made where it does not exist.
        ask: Texts such as `fk:tool0`, `jacobian:tool0`, `ik:tool0` (a closed form, all
            branches), `inverse_dynamics`, `check` and `clearance`, with a name of your
            own in front where C does not allow that of the frame, as in
            `pose=fk:arm/tool0`; or a mapping of names to such texts, to kernels such as
            `cell.fk("tool0")`, to solvers, controllers, collision checks, or pairs of
            a controller and as many obstacles as its steps are given.
        target: `host`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4`, `x86-64` for these
            three in one library, `x86-64-windows` for the same there, `aarch64`,
            `armv7em` (float32), `armv7em-dp`, `wasm32`, `c99` for source, or `ptx` for
            GPUs, which is one file of kernels.
        state: Where other joints and bases are; by default as built.
        dtype: float64 or float32, the type that is computed in.
        name: What names begin with; by default the name of the cell.
        overwrite: Whether files of the same names are replaced.

    Returns:
        The names and sizes of the files.

    Raises:
        UnknownName: No target, question or frame has this name.
        ModelError: C or CMake does not allow a name, `folder` is not a path, or files
            are in the way.
        KernelError: The target lacks the type, or a question cannot be compiled.
    """
    with IMPORT_LOCK:  # what makes code
        from armillary.kernel.targets import GPU
        from armillary.portable.code import code_files

    path = _folder(folder)
    kind = real_type(dtype)
    bits = kind.itemsize * 8
    name = name or cell.name
    check_names(name, ())
    asked = asked_of(cell, ask, state=state, dtype=kind)
    check_names(name, asked)
    for each in asked:
        if each.kernel.dtype != kind:
            raise KernelError(
                f"'{each.name}' computes in {each.kernel.dtype}, and the library in "
                f"{kind}; compile it with dtype={each.kernel.dtype}."
            )
    files, signatures = code_files(name, asked, bits, target)
    if target != GPU:
        files |= _companions(name, cell, signatures, target)
    _write(path, files, overwrite=overwrite)
    sizes = {key: len(data) for key, data in files.items()}
    return CompiledFolder(path, sizes, tuple(each.name for each in signatures))


def _companions(
    name: str, cell: Workcell, signatures: Sequence[Signature], target: str
) -> dict[str, bytes]:
    """Return what stands beside code for C."""
    with IMPORT_LOCK:
        from armillary.kernel.targets import SOURCE, platform_of

    generator = np.random.default_rng(SEED)
    # Functions have no empty arrays, such as the joint positions of cells without any.
    tests: dict[Signature, list[Any]] = {
        each: [
            rows
            for rows in each.asked.samples(generator, TEST_ROWS, cell.limits)
            if rows.size
        ]
        for each in signatures
    }
    kind = signatures[0].asked.kernel.dtype
    made = f"target {target}, {kind}."
    platform = None if target == SOURCE else platform_of(target)
    has_levels = platform is not None and platform.levels
    kept = "one number, the level of the machine" if has_levels else "nothing"
    texts = {
        f"{name}.h": header(name, cell, signatures, made, kept),
        f"{name}_test.c": self_test(name, list(tests.items())),
        "CMakeLists.txt": build_file(
            name,
            is_source=platform is None,
            is_windows=platform is not None and platform.is_windows,
        ),
        f"{name}_example.py": python_example(name, tests),
    }
    return {key: text.encode() for key, text in texts.items()}


def _folder(folder: Any) -> Path:
    try:
        return Path(folder)
    except TypeError as error:
        raise ModelError(f"A folder is a path, not {quote(folder)}.") from error


def _write(path: Path, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write files to a folder, those of another time only where that is allowed."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"The folder {quote(str(path))} cannot be made: {error}."
        ) from error
    taken = sorted(key for key in files if (path / key).exists())
    if taken and not overwrite:
        raise ModelError(
            f"The folder {quote(str(path))} has {', '.join(taken)} already; name "
            "another folder, or pass overwrite=True."
        )
    try:
        for key, data in files.items():
            with replacing(path / key) as file:
                file.write(data)
    except OSError as error:
        raise ModelError(
            f"The folder {quote(str(path))} cannot be written to: {error}."
        ) from error
