"""Run the quick tests with the lowest and the newest version of every dependency.

    python .ci/versions.py [--install-only] [arguments of pytest]

The lowest Python that pyproject.toml allows is tried with the lowest versions that it
declares, and every Python from there on with the newest. Each environment is in
build/versions/; uv resolves the lowest versions, from an environment of its own there.
Pythons that are not installed are named and left out. The last lines say what passed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "versions"
EXTRAS = "test,exact"
SHOWN = ("numpy", "llvmlite", "msgspec", "scipy", "trimesh")


def main(arguments: list[str]) -> int:
    """Try all environments, and return how many failed."""
    is_install_only = "--install-only" in arguments
    arguments = [each for each in arguments if each != "--install-only"]
    lowest, *others = pythons()
    uv = uv_command()
    said, failures = [], 0
    for version, resolution in [
        (lowest, "lowest-direct"),
        *((version, "highest") for version in (lowest, *others)),
    ]:
        name = f"Python {version}, {resolution.partition('-')[0]} versions"
        python = interpreter(version)
        if python is None:
            said.append(f"{name}: SKIPPED, this Python is not installed")
            continue
        place = FOLDER / f"{version}-{resolution.partition('-')[0]}" / "bin" / "python"
        print(f"== {name}", flush=True)
        is_good = install(uv, python, place, resolution) and (
            is_install_only or has_passed(place, arguments)
        )
        failures += not is_good
        said.append(f"{name}: {'passed' if is_good else 'FAILED'} ({versions(place)})")
    print("", *said, sep="\n")
    return failures


def pythons() -> list[str]:
    """Return the versions of Python that pyproject.toml names, the lowest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return sorted(found, key=lambda version: int(version.partition(".")[2]))


def interpreter(version: str) -> Path | None:
    """Return an interpreter of this version that runs, None if there is none."""
    for path in candidates(version):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            done = subprocess.run([path, "-c", code], capture_output=True, text=True)
        except OSError:
            continue
        if done.stdout.strip() == version:
            return path
    return None


def candidates(version: str) -> Iterator[Path]:
    """Return where the interpreter of a version may be: on PATH, or of pyenv and uv."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield Path(folder) / f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    uv = Path.home() / ".local" / "share" / "uv" / "python"
    for folder in (pyenv, uv):
        yield from sorted(folder.glob(f"*{version}.*/bin/python{version}"))


def uv_command() -> list[str | Path]:
    """Return the command of uv, installed where it is not yet."""
    python = FOLDER / "uv" / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", "--clear", FOLDER / "uv"])
        run([python, "-m", "pip", "install", "--quiet", "uv"])
    return [python, "-m", "uv"]


def install(uv: list[str | Path], python: Path, place: Path, resolution: str) -> bool:
    """Make an environment anew, and return whether all could be installed."""
    folder = place.parent.parent
    if not run([*uv, "venv", "--quiet", "--clear", "--python", python, folder]):
        return False
    chosen = ["--python", place, "--resolution", resolution]
    package = f"{ROOT}[{EXTRAS}]"
    return run([*uv, "pip", "install", "--quiet", *chosen, "--editable", package])


def has_passed(python: Path, arguments: list[str]) -> bool:
    """Return whether the quick tests pass."""
    quick = ["-n", "2", "--dist", "worksteal", "-m", "not peers and not thorough"]
    return run([python, "-m", "pytest", "-q", *quick, *arguments])


def versions(python: Path) -> str:
    """Return the versions of the packages that matter most, for people to read."""
    code = (
        "import importlib.metadata as m\n"
        f"print(*(f'{{n}} {{m.version(n)}}' for n in {SHOWN}), sep=', ')"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip()


def run(command: list[str | Path]) -> bool:
    """Run a command in the checkout, and return whether it ended well."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
