"""What the documentation shows is what happens.

Each ``python`` block of README.md and docs/ runs, in order, one namespace per file;
one marked ``python no-run`` is only compiled. Of each ``console`` block the commands
``$ armillary ...`` run. All happens in a fresh folder that holds a copy of examples/.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import armillary as arm
from armillary.cell.device import Device
from armillary.cli import bench
from armillary.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A misspelt language would not run and nobody would know.
LANGUAGES = {"python", "console", "text", "json", "xml", "toml", "yaml", "csv", "llvm"}


class Block(NamedTuple):
    language: str
    runs: bool
    text: str
    line: int  # of its first line of text


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text."""
    lines = enumerate(text.splitlines(), start=1)
    for line, start in lines:
        fence = re.fullmatch(r"(\s*)(```+|~~~+)\s*(\S*)\s*(.*)", start)
        if not fence:
            continue
        indent, ticks, language, mark = fence.groups()
        assert mark in {"", "no-run"}, f"line {line}: {mark!r} is not 'no-run'"
        inside: list[str] = []
        for _, each in lines:
            if each.strip() == ticks:
                break
            inside.append(each.removeprefix(indent))
        else:
            raise AssertionError(f"line {line}: the block never ends")
        yield Block(language, not mark, "\n".join(inside) + "\n", line + 1)


def commands(text: str) -> list[str]:
    """The armillary commands of a console block, continued lines joined."""
    joined = text.replace("\\\n", " ")
    return re.findall(r"^\$ (armillary\b.*)$", joined, re.MULTILINE)


def run_python(block: Block, page: Path, module: ModuleType) -> None:
    """Run a block in a module, its lines numbered as in the page."""
    # The class of a user's joint may be asked for its source: keep the real place.
    padded = "\n" * (block.line - 1) + block.text
    code = compile(padded, str(page), "exec", dont_inherit=True)
    if block.runs:
        exec(code, vars(module))


def run_console(block: Block, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the commands of a console block, in this process, which spares their start.

    What the block shows below a command is what that prints.
    """
    for command in commands(block.text) if block.runs else []:
        _, *arguments = shlex.split(command)
        where = f"{page.name}:{block.line}: {command}"
        capsys.readouterr()
        code, said = main(arguments), capsys.readouterr()
        assert code == 0, f"{where}\n{said.out}{said.err}"
        if shown := shown_below(block.text, command):
            assert said.out.rstrip() == shown, where


def shown_below(text: str, command: str) -> str:
    """The lines of a console block between a command and the next one."""
    joined = text.replace("\\\n", " ")
    below = joined.partition(f"$ {command}\n")[2]
    return re.split(r"^\$ ", below, flags=re.MULTILINE)[0].rstrip()


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with the examples."""
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("workplace")
def test_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    run_page(PAGES[0], monkeypatch, capsys)


@pytest.mark.sampled(8)
@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    "page", PAGES[1:], ids=lambda page: str(page.relative_to(ROOT))
)
def test_page_runs(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    run_page(page, monkeypatch, capsys)


def run_page(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run all blocks of a page."""
    module = ModuleType(f"page_{page.stem.lower().replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(bench, "DURATION", 0.0)  # nobody reads what it prints of time
    for block in blocks(page.read_text("utf-8")):
        if block.language == "python":
            run_python(block, page, module)
        elif block.language == "console":
            run_console(block, page, capsys)


def test_readme_begins_with_code():
    found = blocks((ROOT / "README.md").read_text("utf-8"))
    assert any(block.language == "python" and block.runs for block in found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_languages_are_known(page: Path):
    found = {block.language for block in blocks(page.read_text("utf-8"))} - {""}
    assert found <= LANGUAGES


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *PAGES[1:]]), ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path):
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text("utf-8"))
    local = [link for link in links if not re.match(r"\w+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_readme_leads_to_every_page():
    links = set(re.findall(r"\]\((docs/[^)#]+)", PAGES[0].read_text("utf-8")))
    assert [
        page for page in PAGES[1:] if page.relative_to(ROOT).as_posix() not in links
    ] == []


def test_the_site_has_each_page_once_in_a_group(monkeypatch: pytest.MonkeyPatch):
    """The sidebar follows the tables of README.md, which have captions."""
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(ROOT / "docs")
    groups = import_module("conf").groups_of(PAGES[0].read_text("utf-8"))
    listed = [page for pages in groups.values() for page in pages]
    assert len(set(listed)) == len(listed)
    pages = {str(page.relative_to(ROOT).with_suffix("")) for page in PAGES[1:]}
    assert pages <= set(listed)
    assert len(groups) == 8
    assert max(len(each) for name, each in groups.items() if name != "Design") < 10


# What these words stand for on the pages, in code between backticks.
WORDS = {
    "arm": arm,
    "cell": arm.Cell,
    "state": arm.State,
    "device": Device,
    "ik": arm.example("pan_tilt").ik("tool0", position=""),
    "check": arm.example("pan_tilt").collision(),
}


def unknown_calls(text: str) -> list[str]:
    """The code between backticks that names what a cell, a state, ... does not have."""
    codes = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    return [
        code
        for code in codes
        for word, member in re.findall(r"(?<![\w./])(\w+)\.([a-z]\w*)", code)
        if word in WORDS and not hasattr(WORDS[word], member)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_calls_exist(page: Path):
    text = page.read_text("utf-8")
    if page.stem == "coming_from":  # first columns are of other systems
        text = re.sub(r"^\|.*?(?<!\\)\|", "", text, flags=re.MULTILINE)
    assert unknown_calls(text) == []


def test_unknown_calls_are_found():
    assert unknown_calls("`cell.fk(x)`, `cell.solve(x)`, `arm.lod(p)`") == [
        "cell.solve(x)",
        "arm.lod(p)",
    ]


SAMPLE = """
```python
a = 1
```
text
```console
$ ls
$ armillary info x \\
    --long
output
```
```python no-run
a = undefined
```
"""


def test_blocks_are_found():
    first, console, last = blocks(SAMPLE)
    assert first == Block("python", True, "a = 1\n", 3)
    assert [each.split() for each in commands(console.text)] == [
        ["armillary", "info", "x", "--long"]
    ]
    assert not last.runs


def test_a_failing_block_fails_at_its_line():
    module = ModuleType("sample")
    page = ROOT / "sample.md"
    run_python(Block("python", False, "1 / 0\n", 7), page, module)
    with pytest.raises(ZeroDivisionError) as caught:
        run_python(Block("python", True, "1 / 0\n", 7), page, module)
    assert caught.traceback[-1].lineno == 6  # counted from 0


@pytest.mark.usefixtures("workplace")
def test_a_failing_command_fails(capsys: pytest.CaptureFixture[str]):
    block = Block("console", True, "$ armillary no-such-verb\n", 1)
    with pytest.raises(AssertionError, match=r"sample\.md:1: armillary no-such-verb"):
        run_console(block, Path("sample.md"), capsys)


def test_output_that_a_page_shows_is_compared(capsys: pytest.CaptureFixture[str]):
    shown = "two-roots:\n    Something that it does not say.\n"
    text = f"$ armillary --help\n$ armillary explain two-roots\n{shown}"
    assert shown_below(text, "armillary --help") == ""
    with pytest.raises(AssertionError, match="explain two-roots"):
        run_console(Block("console", True, text, 1), Path("sample.md"), capsys)
