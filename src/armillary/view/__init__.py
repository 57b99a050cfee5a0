"""See a cell: in a browser, in one file, in a picture."""

from __future__ import annotations
