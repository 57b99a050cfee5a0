"""The example plug-in: really built and installed, then used as its users would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import armillary

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "examples" / "armillary-lifts"
SOURCE = Path(armillary.__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the package is installed, by pip from its sources alone."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling, which builds the package, is not installed")
    folder = tmp_path_factory.mktemp("plug-in")
    shutil.copytree(PACKAGE, folder / "source")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index"),
            *("--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-compile"),
            *("--disable-pip-version-check", "--target", folder / "site"),
            folder / "source",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder of the sources, with the package installed."""
    path = os.pathsep.join([str(site), str(SOURCE)])
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=site.parent / "source",
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.thorough
def test_its_own_tests_pass(site: Path):
    done = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
def test_the_command_line_uses_it_where_it_is_allowed(site: Path):
    command = ("-m", "armillary", "fk", "dock.cell.json", "--frame", "table")
    kept = run(site, *command)
    assert kept.returncode == 2
    assert "Plug-in armillary-lifts 1.0.0 offers it" in kept.stderr
    moved = run(site, *command, "--q", "0.7,0", "--plugin", "armillary-lifts")
    assert moved.returncode == 0, moved.stderr
    assert moved.stdout.splitlines()[2].split()[3] == "2.400000000000"
