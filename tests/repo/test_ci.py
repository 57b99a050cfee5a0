"""The script that makes every check ends as its checks do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAKE = """#!/bin/sh
case "$*" in
    lint) exit $LINT ;;
    test-all*--last-failed-no-failures=none*) echo "1 passed"; exit $AGAIN ;;
    test-all*) echo "1 failed, 9 passed"; exit $TESTS ;;
esac
"""


@pytest.mark.skipif(os.name != "posix", reason="it is a script of a shell")
@pytest.mark.parametrize(
    ("lint", "tests", "again", "status"),
    [(0, 0, 0, 0), (0, 2, 0, 2), (0, 2, 2, 2), (3, 0, 0, 3), (3, 2, 0, 3)],
)
def test_it_ends_as_lint_and_all_tests_do(
    lint: int, tests: int, again: int, status: int, tmp_path: Path
):
    """Tests that fail, and pass when they run once more, have failed."""
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    for name, text in (("make", MAKE), ("chromium", "#!/bin/sh\n")):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
    numbers = {"LINT": lint, "TESTS": tests, "AGAIN": again}
    given = {name: str(value) for name, value in numbers.items()}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", script],
        env={**os.environ, **given, "PATH": path, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "1 failed, 9 passed"
    assert lines.count("1 passed") == (tests != 0)
