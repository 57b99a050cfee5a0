"""`armillary check`: everything that is wrong or doubtful in a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from armillary.cli.explain import explanation
from armillary.cli.hints import with_fix
from armillary.cli.input import add_file, read
from armillary.cli.table import plural
from armillary.errors import FormatError, ModelError, printable
from armillary.formats.diagnostic import Diagnostic, Severity, explained

FAULTY = 1


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "check",
        help="everything that is wrong or doubtful in a file",
        description="Print all findings, each with its location, id and fix. The "
        "exit code is 0 where none is an error, else 1.",
    )
    add_file(parser)
    parser.add_argument(
        "--explain", action="store_true", help="tell what the ids mean, too"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings and return 1 where one is an error."""
    errors = 0
    findings: Sequence[Any] = ()
    try:
        cell, report = read(options)
        findings = report.diagnostics
        _ = cell.limits
    except FormatError as error:
        findings = error.diagnostics
        errors = sum(_severity(each) is Severity.ERROR for each in findings)
    except ModelError as error:
        findings = [*findings, error]
        errors = 1
    for found in findings:
        print(with_fix(found))
    if options.explain:
        for line in _explanations(findings):
            print(line)
    warnings = sum(_severity(each) is Severity.WARNING for each in findings)
    counted = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    print(f"{printable(options.file)}: {counted}")
    return FAULTY if errors else 0


def _explanations(findings: Sequence[Any]) -> Iterator[str]:
    """Yield what the ids among findings mean, each once."""
    codes = (found.code for found in findings if isinstance(found, Diagnostic))
    for code in dict.fromkeys(codes):
        yield from explanation(code, explained(code))


def _severity(finding: Any) -> Severity:
    return getattr(finding, "severity", Severity.ERROR)
