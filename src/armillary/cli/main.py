"""The command `armillary`: verbs in, exit codes out, errors as one readable text."""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from armillary.cli.verbs import HELP, verb_of
from armillary.errors import ArmillaryError, FormatError, ShapeError, printable

DONE, FAILED, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; the epilog of the help lists them.

    Args:
        arguments: What follows the name of the program; by default that of the process.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None:
        # The process ends behind this: its memory goes back as a whole, and is not
        # searched for circles by the three collections with which Python ends.
        atexit.register(gc.freeze)
    _accept_any_text()
    as_json = False
    try:
        options = parsed(given)
        as_json = getattr(options, "json", False)
        code = _run(options)
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
        return _failed(_text(error), error, as_json=as_json)
    except MemoryError as error:
        return _failed("There is not enough memory for this.", error, as_json=as_json)
    except OSError as error:
        where = f"{printable(str(error.filename))}: " if error.filename else ""
        text = f"{where}{error.strerror or error}"
        return _failed(text, error, as_json=as_json)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the verb and the options of a command line.

    Only the verb that is named is loaded: the help of all and the version need none.

    Raises:
        SystemExit: Help or the version was asked for, or the usage is wrong.
    """
    whole = argparse.ArgumentParser(
        prog="armillary",
        description="Robot workcells: look at them, check, convert and compute them.",
        epilog="Exit codes: 0 success, 1 'check' or 'plugins' found errors, "
        "'fk' found poses that are not finite, 'ik' missed a pose, 'plan' found no "
        "way, 'track' could not keep limits or distances, 'collide' found links that "
        "touch, or 'dynamics' efforts beyond limits, 2 failure, also where 'collide' "
        "has no pair of links to test, 130 interrupted.",
    )
    whole.add_argument(
        "--version",
        action=_PrintVersion,
        nargs=0,
        help="show program's version number and exit",
    )
    verbs = whole.add_subparsers(metavar="VERB", required=True)
    parsers = {name: verbs.add_parser(name, help=text) for name, text in HELP.items()}
    # Options before the verb take no values, so the first other argument is the verb.
    name = next((each for each in arguments if not each.startswith("-")), "")
    if name not in parsers:
        return whole.parse_args(arguments)
    from armillary.cli.vectors import join_numbers

    verb = verb_of(name)
    verb.add_to(parsers[name])
    numbered = {option.name for option in verb.options if option.has_numbers}
    return whole.parse_args(join_numbers(arguments, numbered))


class _PrintVersion(argparse.Action):
    """The option `--version`."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the version and end the process."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"armillary {version('armillary')}")
        except PackageNotFoundError:
            print("armillary, not installed")
        parser.exit()


def _run(options: argparse.Namespace) -> int:
    """Run the verb with its options; return its exit code."""
    import warnings

    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        with stdin_as_file(options):
            return options.verb.run(options)


@contextmanager
def stdin_as_file(options: argparse.Namespace) -> Generator[None, None, None]:
    """Let an option that is `-` name a file with the content of stdin.

    The file is deleted when the block ends. Other files to which it refers are looked
    for beside it, so only in the folders that options name.

    Raises:
        ShapeError: Two options are `-`.
    """
    inputs = [each.dest for each in options.verb.options if each.is_input]
    waiting = [name for name in inputs if getattr(options, name) == "-"]
    if not waiting:
        yield
        return
    if len(waiting) > 1:
        names = " and ".join(name.replace("_", "-") for name in waiting)
        raise ShapeError(f"Only one of {names} can be '-', which is stdin.")
    import shutil
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="armillary-") as folder:
        path = os.path.join(folder, "stdin")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        setattr(options, waiting[0], path)
        yield


def _print_warning(message: Warning | str, *_: object) -> None:
    """Print a warning of the library as the command line prints its own."""
    from armillary.cli.hints import with_options

    print(f"warning: {with_options(str(message))}", file=sys.stderr)


def _text(error: Exception) -> str:
    from armillary.cli.hints import error_text

    return error_text(error)


def _failed(text: str, error: Exception, *, as_json: bool) -> int:
    """Print an error to stderr, and with `--json` as an object to stdout, too."""
    print(f"armillary: {text}", file=sys.stderr)
    if as_json:
        import json

        from armillary.cli.check import diagnostic_object

        about: dict[str, Any] = {"kind": type(error).__name__, "message": text}
        if isinstance(error, FormatError):
            about["diagnostics"] = list(map(diagnostic_object, error.diagnostics))
        print(json.dumps({"error": about}))
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
