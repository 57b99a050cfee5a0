"""Plug-ins: what installed packages offer, what the user allows, what is imported.

Nothing here knows robots, and nothing is imported unless `load` is called.
"""

from __future__ import annotations

from armillary.plugins.advice import advice
from armillary.plugins.configuration import config_path, configured, own_content
from armillary.plugins.load import load
from armillary.plugins.offers import GROUP, Offer, normal, offers

__all__ = [
    "GROUP",
    "Offer",
    "advice",
    "config_path",
    "configured",
    "load",
    "normal",
    "offers",
    "own_content",
]
