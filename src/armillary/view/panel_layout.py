"""The layout of the panel in the window of a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import viser

__all__ = ["lay_out"]

WIDTH: Final = 384.0
"""Of the panel [pixels]."""
STYLE: Final = """\
<style>
/* Number boxes beside sliders: wide enough for -3.14159, where the client has 3rem. */
.mantine-Slider-root + .mantine-NumberInput-root { width: 4.75rem !important; }
/* Labels break at blanks before they break within a name or a number. */
label wbr { display: none; }
</style>
"""


def lay_out(server: viser.ViserServer) -> None:
    """Dock the panel beside the scene, with number boxes wide enough to read."""
    server.gui.main_panel.dock_right()
    server.gui.main_panel.set_width(WIDTH)
    server.gui.add_html(STYLE)
