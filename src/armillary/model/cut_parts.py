"""Convex parts of a body by the library CoACD, in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.geometry.triangles import Triangles

__all__ = ["cut_parts"]

LONGEST: Final = 600.0
"""Seconds that it may take."""

# It ends the process on bodies that it cannot cut, and prints.
PROGRAM: Final = """
import sys
import coacd
import numpy as np

given = np.load(sys.argv[1])
coacd.set_log_level("off")
mesh = coacd.Mesh(given["vertices"], given["faces"])
parts = coacd.run_coacd(
    mesh, threshold=float(given["concavity"]), real_metric=True, seed=0
)
np.savez(sys.argv[2], *[part[0] for part in parts])
"""


def cut_parts(body: Triangles, concavity: float) -> list[npt.NDArray[np.float64]]:
    """Return the corners of convex parts that are nearly a body, shapes (n, 3).

    concavity: How concave a part may be [m].

    Raises:
        ModelError: CoACD is not installed, or cannot cut the body.
    """
    try:
        found = importlib.util.find_spec("coacd")
    except ValueError:
        found = None
    if found is None:
        raise ModelError("Convex parts need CoACD: pip install 'armillary[parts]'.")
    with tempfile.TemporaryDirectory() as folder:
        given, parts = Path(folder, "given.npz"), Path(folder, "parts.npz")
        numbers: dict[str, Any] = {
            "vertices": body.vertices,
            "faces": body.faces.astype(np.int32),
            "concavity": concavity,
        }
        np.savez(given, **numbers)
        command = [sys.executable, "-c", PROGRAM, str(given), str(parts)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise ModelError(
                f"CoACD cannot cut the body of {len(body.faces)} triangles: {error}. "
                "Take its hull, or repair it."
            ) from error
        with np.load(parts) as arrays:
            return [np.asarray(arrays[name], np.float64) for name in arrays.files]
