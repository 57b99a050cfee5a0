"""`armillary plugins`: which installed packages offer joints, and which are allowed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from armillary.cli.input import PLUGIN
from armillary.cli.table import table
from armillary.cli.verb import verb
from armillary.errors import PluginError, printable
from armillary.formats.joint_types import PluginJoints
from armillary.model.joints import JOINT_TYPES
from armillary.plugins import Offer, config_path, configured, normal, offers

BROKEN = 1
COLUMNS = ("package", "version", "joint type", "allowed", "state")


@verb(
    "plugins",
    (PLUGIN,),
    description="List the joints that installed packages offer. Those that are "
    "allowed are imported to see whether they work; no other is. The exit code is "
    "1 where one that is allowed does not work.",
)
def run(options: argparse.Namespace) -> int:
    """Print what is offered, and what is wrong with what is allowed."""
    joints = PluginJoints(options.plugin)
    by_user = {normal(name): name for name in configured()}
    allowed = dict.fromkeys(by_user, "by the configuration")
    allowed |= dict.fromkeys(map(normal, options.plugin), "by --plugin")
    faults: list[str] = []
    rows = [_row(offer, joints, allowed, faults) for offer in offers()]
    if rows:
        for line in table(COLUMNS, rows):
            print(line)
    else:
        print("No installed package offers joints.")
    for line in (*faults, *_absent(by_user)):
        print(line)
    path = config_path()
    absent = "" if path is None or path.exists() else " (there is no such file)"
    print(f"configuration: {printable(str(path or 'none'))}{absent}")
    return BROKEN if faults else 0


def _row(
    offer: Offer, joints: PluginJoints, allowed: dict[str, str], faults: list[str]
) -> tuple[str, ...]:
    by = allowed.get(normal(offer.package))
    if offer.tag in JOINT_TYPES:
        state = "never used: the type is built in"
    elif by is None:
        state = "not imported"
    else:
        state = _state(offer, joints, faults)
    return offer.package, offer.version, offer.tag, by or "no", state


def _state(offer: Offer, joints: PluginJoints, faults: list[str]) -> str:
    """Import a joint, which is allowed; add what is wrong with it."""
    try:
        joints[offer.tag]
    except PluginError as error:
        if str(error) not in faults:
            faults.append(str(error))
        return "broken"
    return "works"


def _absent(by_user: dict[str, str]) -> Iterator[str]:
    """Report packages that the configuration allows, but that offer nothing."""
    installed = {normal(offer.package) for offer in offers()}
    for name, spelled in by_user.items():
        if name not in installed:
            yield (
                f"{printable(spelled)} is allowed by the configuration, but is not "
                "installed or offers no joints."
            )
