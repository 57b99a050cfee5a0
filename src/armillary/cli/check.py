"""`armillary check`: every diagnostic of a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from armillary.cli.explain import explanation
from armillary.cli.hints import diagnostic_text
from armillary.cli.input import add_file, read
from armillary.errors import FormatError, ModelError, printable
from armillary.formats.diagnostic import Diagnostic, Severity, explained
from armillary.model.display import plural

FAULTY = 1


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "check",
        help="every diagnostic of a file, with its location and fix",
        description="Print all diagnostics, each with its location, id and fix. The "
        "exit code is 0 if none is an error, else 1.",
    )
    add_file(parser)
    parser.add_argument(
        "--explain", action="store_true", help="also print what the ids mean"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the diagnostics and return 1 if one is an error."""
    errors = 0
    diagnostics: Sequence[Any] = ()
    try:
        cell, report = read(options)
        diagnostics = report.diagnostics
        _ = cell.limits
    except FormatError as error:
        diagnostics = error.diagnostics
        errors = sum(_severity(each) is Severity.ERROR for each in diagnostics)
    except ModelError as error:
        diagnostics = [*diagnostics, error]
        errors = 1
    for each in diagnostics:
        print(diagnostic_text(each, fix=True))
    if options.explain:
        for line in _explanations(diagnostics):
            print(line)
    warnings = sum(_severity(each) is Severity.WARNING for each in diagnostics)
    counted = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    print(f"{printable(options.file)}: {counted}")
    return FAULTY if errors else 0


def _explanations(diagnostics: Sequence[Any]) -> Iterator[str]:
    """Yield what the ids of diagnostics mean, each once."""
    codes = (each.code for each in diagnostics if isinstance(each, Diagnostic))
    for code in dict.fromkeys(codes):
        yield from explanation(code, explained(code))


def _severity(diagnostic: Any) -> Severity:
    return getattr(diagnostic, "severity", Severity.ERROR)
