"""`armillary completion`: scripts that the shells accept, and what they complete."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from armillary.cli.verbs import all_verbs

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_verb_and_option_is_in_the_script(run, shell: str):
    result = run("completion", shell)
    assert (result.code, result.err) == (0, "")
    for verb in all_verbs():
        assert verb.name in result.out
        for option in verb.options:
            if option.name.startswith("--"):
                flag = f"-l {option.name[2:]}" if shell == "fish" else option.name
                assert flag in result.out


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_its_script(run, tmp_path: Path, shell: str):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "script"
    script.write_text(run("completion", shell).out)
    done = subprocess.run(
        [shell, "-n", str(script)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("armillary tra", ["track"]),
        ("armillary fk --rel", ["--relative-to"]),
        ("armillary fk robot.urdf --no-", ["--no-self-collision"]),
        ("armillary show robot.urdf --stage ", ["model", "program", "llvm", "asm"]),
        ("armillary completion ", ["bash", "zsh", "fish"]),
        ("armillary trust sh", ["show"]),
        ("armillary fk rob", []),
    ],
)
def test_bash_completes(run, tmp_path: Path, line: str, expected: list[str]):
    script = tmp_path / "script"
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script.write_text(
        run("completion", "bash").out
        + f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}\n"
        + '_armillary; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", str(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == expected
