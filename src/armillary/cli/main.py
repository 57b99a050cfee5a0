"""The command `armillary`: verbs in, exit codes out, errors as one readable text."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from armillary.cli import (
    bench,
    check,
    collide,
    convert,
    dynamics,
    explain,
    export,
    fk,
    ik,
    info,
    plugins,
    rules,
    shot,
    show,
    sweep,
    track,
    tree,
    trust,
    view,
)
from armillary.cli.hints import error_text, with_options
from armillary.cli.stdin import stdin_as_file
from armillary.cli.vectors import join_numbers
from armillary.errors import ArmillaryError, printable

VERBS = (
    info, tree, check, explain, view, shot, fk, ik, track, collide, rules, dynamics,
    sweep, convert, export, show, bench, plugins, trust,
)  # fmt: skip

DONE, FAILED, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; the epilog of the help lists them.

    Args:
        arguments: What follows the name of the program; by default that of the process.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    _accept_any_text()
    try:
        options = parser().parse_args(join_numbers(given))
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            with stdin_as_file(options):
                code: int = options.run(options)
        sys.stdout.flush()
        return code
    except SystemExit as end:  # of argparse, which has said why
        return end.code if isinstance(end.code, int) else FAILED
    except BrokenPipeError:  # the reader has seen enough
        _discard_output()
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except ArmillaryError as error:
        return _failed(error_text(error))
    except MemoryError:
        return _failed("There is not enough memory for this.")
    except OSError as error:
        where = f"{printable(str(error.filename))}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs."""
    found = argparse.ArgumentParser(
        prog="armillary",
        description="Robot workcells: look at them, check, convert and compute them.",
        epilog="Exit codes: 0 success, 1 'check' or 'plugins' found errors, "
        "'fk' found poses that are not finite, 'ik' missed a pose, 'track' could not "
        "keep limits or distances, 'collide' found links that touch, or 'dynamics' "
        "efforts beyond limits, 2 failure, also where 'collide' has no pair of links "
        "to test, 130 interrupted.",
    )
    found.add_argument("--version", action="version", version=_version())
    verbs = found.add_subparsers(metavar="VERB", required=True)
    for verb in VERBS:
        verb.add(verbs)
    return found


def _version() -> str:
    try:
        return f"armillary {version('armillary')}"
    except PackageNotFoundError:
        return "armillary, not installed"


def _print_warning(message: Warning | str, *_: object) -> None:
    """Print a warning of the library as the command line prints its own."""
    print(f"warning: {with_options(str(message))}", file=sys.stderr)


def _failed(text: str) -> int:
    print(f"armillary: {text}", file=sys.stderr)
    return FAILED


def _accept_any_text() -> None:
    """Let terminals that lack a character show another one instead."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that the end of the process is quiet."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # no such descriptor, so nothing to discard
        return
