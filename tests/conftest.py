"""What every test may use: golden texts, and the reference data beside a checkout."""

from __future__ import annotations

import contextlib
import difflib
import gc
import importlib
import random
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import hypothesis
import llvmlite.binding
import pytest

from armillary.kernel import compiler
from armillary.kernel.pipeline import Pipeline
from armillary.trace import Program
from random_cells import random_cell

with contextlib.suppress(ImportError):  # an older one, which draws no constants
    from hypothesis.internal.conjecture import providers

    # It draws constants of the source of all that is imported: what a test tries would
    # depend on the tests before it, and to read all source takes seconds.
    providers._get_local_constants = lambda: providers._local_constants

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["random_cell"]

ROOT = Path(__file__).resolve().parents[1]
LEVEL_OF = compiler.level_of

OPTIMISED_OF = 32
"""Of so many kernels, one is compiled as for users."""

# The same examples in every run; a busy machine is no failure.
hypothesis.settings.register_profile(
    "armillary", derandomize=True, deadline=None, database=None
)
hypothesis.settings.load_profile("armillary")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="accept what differs from tests/golden"
    )
    parser.addoption(
        "--seed", type=int, default=0, help="draws which cases are tried of many"
    )
    parser.addoption(
        "--optimise",
        action="store_true",
        help="compile every kernel as for users, not only some",
    )
    parser.addoption(
        "--part",
        metavar="K/N",
        help="of the cases that `sampled` leaves to thorough tests, try the K-th of N "
        "parts only: 0/5 to 4/5 together try all",
    )


def pytest_configure() -> None:
    gc.set_threshold(100_000, 20, 20)  # most that a test makes lasts as long as it does
    # Shells ignore Ctrl-C for what runs in the background; tests send it to programs.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> str:
    part = config.getoption("part")
    return f"cases drawn by: --seed={config.getoption('seed')}" + (
        f" --part={part}" if part else ""
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out, where no peers are asked for, the folder that imports them."""
    is_asked = not str(config.option.markexpr).startswith("not peers")
    return None if is_asked or collection_path != ROOT / "tests" / "peers" else True


def worker_of(config: pytest.Config) -> int | None:
    """Return the number of a worker of pytest-xdist; None in a run without."""
    values = getattr(config, "workerinput", None)
    return None if values is None else int(values["workerid"].removeprefix("gw"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let two workers begin at both ends.

    To compile the asserts of all tests takes half the time of collecting them. Each
    worker does so for the files that it comes to first, and loads those of the other.
    """
    report = yield
    if isinstance(collector, pytest.Directory) and worker_of(collector.config) == 1:
        report.result.reverse()
    return report


def part_of(config: pytest.Config) -> tuple[int, int]:
    """Return which part `--part` asks for, and of how many; without it all is one."""
    asked = config.getoption("part") or "0/1"
    numbers = re.fullmatch(r"(\d+)/(\d+)", asked)
    if numbers is None or int(numbers[1]) >= int(numbers[2]):
        raise pytest.UsageError(f"--part={asked}: not K/N with 0 <= K < N, as in 0/5")
    return int(numbers[1]), int(numbers[2])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark as `thorough` all but the drawn cases of tests marked `sampled(count)`.

    `--part` leaves out most of these.
    """
    if worker_of(config) is not None:  # all workers have one order
        items.sort(key=lambda item: item.path)
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    part, parts = part_of(config)
    left_out = set[pytest.Item]()
    for of_one in cases.values():
        mark = of_one[0].get_closest_marker("sampled")
        assert mark is not None
        (count,) = mark.args
        # Tests of the same cases draw the same ones, so that they share kernels.
        # Folders begin with different parts: else all second cases would be in one.
        draw = random.Random(f"{config.getoption('seed')} {len(of_one)}")
        shuffled = draw.sample(of_one, len(of_one))
        first = random.Random(of_one[0].path.parent.name).randrange(parts)
        for place, item in enumerate(shuffled[count:], start=first + count):
            item.add_marker("thorough")
            if place % parts != part:
                left_out.add(item)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    # Thousands of tests stay until the end: no collection of garbage looks at them.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    # So do kernels, programs and modules that a file leaves behind: without this, a
    # collection takes a second or two in the end, and some tests ask for many.
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    """The number that draws cases, of which there are too many to try all."""
    return int(pytestconfig.getoption("seed"))


@pytest.fixture(scope="session", autouse=True)
def cache(pytestconfig: pytest.Config) -> Iterator[Path]:
    """The folder of compiled code: away from the user's, shared by workers and runs.

    Keys hold the fingerprint of the compiler, so code of an older one is never loaded.
    `pytest --cache-clear` empties it.
    """
    is_optimised = pytestconfig.getoption("optimise")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARMILLARY_CONFIG", "off")  # the user's own allows no plug-in here
        patch.setenv("ARMILLARY_BACKGROUND", "off")  # tests compile all that they start
        if not is_optimised:
            for choice in ("-fast-isel=false", "-global-isel=false"):
                llvmlite.binding.set_option("", choice)  # others round otherwise
            patch.setattr(compiler, "level_of", quick_level)
        yield use_cache(pytestconfig, patch, is_optimised=is_optimised)


def use_cache(
    config: pytest.Config, patch: pytest.MonkeyPatch, *, is_optimised: bool
) -> Path:
    """Keep compiled code in a folder of its own, and return it."""
    assert config.cache is not None
    folder = config.cache.mkdir("armillary-optimised" if is_optimised else "armillary")
    patch.setenv("ARMILLARY_CACHE", str(folder))
    return folder


def quick_level(program: Program | Pipeline) -> int:
    """Let LLVM optimise a few kernels as for users, and the others not at all.

    To allocate registers well and to schedule take three quarters of the time to
    compile. Without it the instructions are chosen by the same rules, which decide what
    is rounded: results are the same, bit for bit. `--optimise` optimises all.
    """
    chosen = int(program.fingerprint[:8], 16) % OPTIMISED_OF == 0
    return LEVEL_OF(program) if chosen else 0


@pytest.fixture(scope="module")
def optimised(pytestconfig: pytest.Config) -> Iterator[None]:
    """Compile as for users: in tests of kernels and of examples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "level_of", LEVEL_OF)
        use_cache(pytestconfig, patch, is_optimised=True)
        yield


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration file of a user who has written none yet."""
    path = tmp_path / "armillary" / "config.toml"
    path.parent.mkdir()
    monkeypatch.delenv("ARMILLARY_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")  # elsewhere it is elsewhere
    return path


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data beside the checkout."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"no reference data: {folder} is absent")
    return folder


@pytest.fixture
def install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    """Lay out a package that offers things, as an installer would, and its modules."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    before = set(sys.modules)

    def install(
        package: str,
        joints: Mapping[str, str],
        modules: Mapping[str, str] = MappingProxyType({}),
        version: str = "1.2",
        group: str = "armillary.joints",
    ) -> None:
        info = site / f"{package.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )
        lines = [f"{tag} = {target}" for tag, target in joints.items()]
        text = "\n".join([f"[{group}]", *lines, ""])
        (info / "entry_points.txt").write_text(text)
        for name, source in modules.items():
            (site / f"{name}.py").write_text(source)
        importlib.invalidate_caches()

    yield install
    for name in set(sys.modules) - before:
        if str(site) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The chromium of this machine, without a window."""
    from armillary.errors import ViewError
    from armillary.view.shot import browser_flags, browser_path

    try:
        path = browser_path()
    except ViewError as error:
        pytest.skip(str(error))
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=browser_flags())
        yield found
        found.close()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with ``tests/golden/<name>``, or rewrite it under ``--update``."""
    update = bool(request.config.getoption("--update"))

    def compare(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(f"{path} is missing; write it with --update", pytrace=False)
        old = path.read_text(encoding="utf-8")
        if old != text:
            lines = difflib.unified_diff(
                old.splitlines(), text.splitlines(), name, "now", lineterm=""
            )
            # Texts that differ in their last line end alone have an empty diff.
            diff = "\n".join(lines) or f"{len(old)} and {len(text)} characters"
            pytest.fail(f"{diff}\naccept it with --update", pytrace=False)

    return compare
