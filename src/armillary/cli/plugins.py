"""`armillary plugins`: what installed packages offer, and which are allowed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from armillary.cli.input import PLUGIN
from armillary.cli.table import table
from armillary.cli.verb import verb
from armillary.errors import PluginError, printable
from armillary.formats.joint_types import PluginJoints
from armillary.model.joints import JOINT_TYPES
from armillary.plugins import (
    POST_PROCESSORS,
    Offer,
    config_path,
    configured,
    normal,
    offers,
)
from armillary.plugins.offers import GROUPS, JOINTS
from armillary.programs.post_processors.registry import offered_post_processor

BROKEN = 1
JOINT = GROUPS[JOINTS]
COLUMNS = ("package", "version", "offers", "allowed", "state")


@verb(
    "plugins",
    (PLUGIN,),
    description="List the joints and post-processors that installed packages offer. "
    "Those that are allowed are imported to see whether they work; no other is. The "
    "exit code is 1 where one that is allowed does not work.",
)
def run(options: argparse.Namespace) -> int:
    """Print what is offered, and what is wrong with what is allowed."""
    post_processors = offers(POST_PROCESSORS)
    others = {normal(offer.package) for offer in post_processors}
    joints = PluginJoints(name for name in options.plugin if normal(name) not in others)
    by_user = {normal(name): name for name in configured()}
    allowed = dict.fromkeys(by_user, "by the configuration")
    allowed |= dict.fromkeys(map(normal, options.plugin), "by --plugin")
    faults: list[str] = []
    rows = [
        _row(offer, joints, allowed, faults) for offer in (*offers(), *post_processors)
    ]
    if rows:
        for line in table(COLUMNS, rows):
            print(line)
    else:
        print("No installed package offers joints or post-processors.")
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
    if offer.tag in JOINT_TYPES and offer.kind == JOINT:
        state = "never used: the type is built in"
    elif by is None:
        state = "not imported"
    else:
        state = _state(offer, joints, faults)
    if offer.kind != JOINT:
        state += f" ({offer.kind})"
    return offer.package, offer.version, offer.tag, by or "no", state


def _state(offer: Offer, joints: PluginJoints, faults: list[str]) -> str:
    """Import what is allowed; add what is wrong with it."""
    try:
        if offer.kind == JOINT:
            joints[offer.tag]
        else:
            offered_post_processor(offer)
    except PluginError as error:
        if str(error) not in faults:
            faults.append(str(error))
        return "broken"
    return "works"


def _absent(by_user: dict[str, str]) -> Iterator[str]:
    """Report packages that the configuration allows, but that offer nothing."""
    found = (*offers(), *offers(POST_PROCESSORS))
    installed = {normal(offer.package) for offer in found}
    for name, spelled in by_user.items():
        if name not in installed:
            yield (
                f"{printable(spelled)} is allowed by the configuration, but is not "
                "installed or offers nothing."
            )
