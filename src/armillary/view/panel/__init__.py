"""The panel beside the scene: a file for each of its parts; `parts.py` lists them."""

from __future__ import annotations
