"""What to do about an unknown joint type."""

from __future__ import annotations

from armillary.errors import PluginError, quote
from armillary.plugins.configuration import config_path
from armillary.plugins.offers import Offer, offers

__all__ = ["advice"]

GIVE = "Give its class when the cell is loaded: joints=[...]."


def advice(tag: str) -> str:
    """Return a sentence: which plug-in offers a joint type, and how to allow it.

    Formats differ in capitals and underscores; here they count for nothing.
    """
    matching = [offer for offer in offers() if _folded(offer.tag) == _folded(tag)]
    return _of_offers(matching) if matching else GIVE


def _of_offers(found: list[Offer]) -> str:
    """Return the advice to allow one of these plug-ins."""
    named = " and ".join(offer.label for offer in found)
    who = (
        f"Plug-in {named} offers it, but was not allowed"
        if len(found) == 1
        else f"Plug-ins {named} offer it, but none was allowed"
    )
    package = quote(found[0].package)
    return (
        f"{who}. If you trust it, load the cell with plugins=[{package}], or allow it "
        f"for good{_in_configuration(package)}."
    )


def _in_configuration(package: str) -> str:
    try:
        path = config_path()
    except PluginError:
        path = None
    where = f" {path}" if path else ""
    return f" in the configuration file{where}: plugins = [{package}]"


def _folded(tag: str) -> str:
    return tag.replace("_", "").casefold()
