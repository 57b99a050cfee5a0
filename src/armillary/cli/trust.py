"""`armillary trust`: which kinematics scripts of files may run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from armillary.cli.verb import option, verb
from armillary.errors import ScriptError, printable
from armillary.formats import registry
from armillary.scripts import trust
from armillary.scripts.mechanism import scripts_of
from armillary.scripts.source import digest, readable, script_text

FOUND, NOT_APPROVED = 0, 1
SUFFIX = ".py"


@verb(
    "trust",
    (
        option("action", choices=("show", "approve", "revoke")),
        option("file", "a cell file, or a script: FILE.py", is_input=True, nargs="?"),
    ),
    description="Kinematics scripts in cell files run only if you approved their "
    "text. show prints them, and whether they are approved; without a file, what "
    "is approved. The exit code of show is 1 where one is not.",
)
def run(options: argparse.Namespace) -> int:
    """Show, approve or revoke the scripts of a file."""
    if options.file is None:
        if options.action != "show":
            raise ScriptError(f"trust {options.action} needs a file.")
        for key, name in trust.approved().items():
            print(f"{key}  {printable(name)}")
        return FOUND
    scripts = list(_scripts(options.file))
    if not scripts:
        raise ScriptError(f"{options.file}: no link is moved by a kinematics script.")
    actions = {"show": _show, "approve": _approve, "revoke": _revoke}
    return max(actions[options.action](name, source) for name, source in scripts)


def _scripts(file: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each script of a file once; nothing runs."""
    if file.endswith(SUFFIX):
        yield Path(file).name, script_text(Path(file))
        return
    workcell, _ = registry.read(file)
    names = {each.source: each.file for each in scripts_of(workcell)}
    for source, name in names.items():
        yield name, source


def _show(name: str, source: str) -> int:
    is_approved = digest(source) in trust.approved()
    state = "approved" if is_approved else "not approved"
    print(f"{printable(name)}: {state}, {digest(source)}")
    for line in readable(source):
        print(f"    {printable(line)}".rstrip())
    return FOUND if is_approved else NOT_APPROVED


def _approve(name: str, source: str) -> int:
    print(f"{printable(name)}: approved, {trust.approve(source, name)}")
    return FOUND


def _revoke(name: str, source: str) -> int:
    was = trust.revoke(digest(source))
    print(f"{printable(name)}: {'no longer approved' if was else 'was not approved'}")
    return FOUND
