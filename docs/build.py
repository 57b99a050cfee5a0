"""Write the documentation as HTML: the pages of a checkout and the API reference.

    python docs/build.py FOLDER

`make docs` calls this. It needs the extra `docs`, and nothing from a network.
"""

from __future__ import annotations

import re
import shutil
import sys
from html import escape
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import GenericAlias
from typing import Final, get_type_hints

import numpy.typing as npt

ROOT: Final = Path(__file__).resolve().parents[1]

# The public modules, each with the classes to show: all that are public if None.
# Those with a list hold classes that users receive from a cell and do not make.
REFERENCE: Final[dict[str, tuple[str, ...] | None]] = {
    "armillary": None,
    "armillary.errors": None,
    "armillary.model.joints": None,
    "armillary.shapes": None,
    "armillary.testing": None,
    "armillary.cell.device": ("Device",),
    "armillary.cell.differential_drive": ("DifferentialDrive",),
    "armillary.collision.check": ("CollisionCheck", "Contact"),
    "armillary.dynamics.trajectory": ("Trajectory",),
    "armillary.formats.diagnostic": ("Diagnostic", "Report", "Severity"),
    "armillary.ik.differential": ("DifferentialSolver", "Rates"),
    "armillary.ik.inverse_kinematics": ("InverseKinematics",),
    "armillary.ik.path": ("Path",),
    "armillary.ik.solution": ("Answers", "Solution"),
    "armillary.kernel.kernel": ("Kernel",),
    "armillary.kinematics.all_frames": ("Poses",),
    "armillary.kinematics.closing.reasons": ("LoopReason",),
    "armillary.kinematics.loops": ("ClosedLoops", "Mobility"),
    "armillary.kinematics.relative_pose": ("Between",),
    "armillary.kinematics.violations": ("Violation",),
    "armillary.model.group": ("Group",),
    "armillary.model.link_pairs": ("PairDecision", "Pairs"),
    "armillary.model.posture": ("Posture",),
    "armillary.model.property": ("Property",),
    "armillary.model.rules": ("Rule", "Touch"),
    "armillary.model.shape": ("Shape",),
    "armillary.model.unit": ("Unit",),
    "armillary.model.wheels": ("Wheels",),
    "armillary.model.workcell": ("Workcell",),
}

PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ max-width: 50rem; margin: 1rem auto; padding: 0 1rem;
       font-family: system-ui, sans-serif; line-height: 1.5; }}
pre, code {{ background: #f4f4f4; font-size: 0.9em; }}
pre {{ padding: 0.6rem; overflow-x: auto; }}
table {{ border-collapse: collapse; }}
td, th {{ border: 1px solid #ccc; padding: 0.2rem 0.5rem; vertical-align: top; }}
img {{ max-width: 100%; }}
</style>
</head>
<body>
<nav><a href="{up}index.html">armillary</a> ·
<a href="{up}api/index.html">API reference</a></nav>
{body}
</body>
</html>
"""


def main(folder: Path) -> None:
    """Write pages and reference below a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in pages():
        target = folder / html_name(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_html(page), "utf-8")
    shutil.copy(ROOT / "LICENSE", folder)
    for name in ("docs/figures", "docs/schema", "examples"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    write_reference(folder / "api")


def pages() -> list[Path]:
    """Return the Markdown pages that readers of the project may want."""
    folders = "*.md", "docs/**/*.md", "changelog/README.md"
    return sorted(page for folder in folders for page in ROOT.glob(folder))


def html_name(page: Path) -> Path:
    """Return where a page is in the output; README.md of a folder is its index."""
    name = page.relative_to(ROOT).with_suffix(".html")
    return name.with_stem("index") if name.stem == "README" else name


def page_html(page: Path) -> str:
    """Return a Markdown page as HTML."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("gfm-like", {"linkify": False})
    tokens = parser.parse(page.read_text("utf-8"))
    title = page.stem
    for tag, content in pairwise(tokens):
        if tag.type == "heading_open":
            tag.attrSet("id", anchor(content.content))
            title = content.content if tag.tag == "h1" else title
        for part in content.children or ():
            if part.type == "link_open":
                part.attrSet("href", _link(str(part.attrGet("href"))))
    body = parser.renderer.render(tokens, parser.options, {})
    up = "../" * (len(html_name(page).parts) - 1)
    return PAGE.format(title=escape(title), up=up, body=body)


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as links on the pages spell it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _link(link: str) -> str:
    """Return where a link of a page leads in the output."""
    if re.match(r"\w+:", link):
        return link
    page, mark, heading = link.partition("#")
    page = re.sub(r"\.md$", ".html", re.sub(r"\bREADME\.md$", "index.md", page))
    return page + mark + heading


def write_reference(folder: Path) -> None:
    """Write the API reference, made from the docstrings of the public modules."""
    import pdoc

    _shorten_array_types()
    for name, classes in REFERENCE.items():
        module = import_module(name)
        if classes is not None:
            module.__all__ = list(classes)
        for public in getattr(module, "__all__", ()):
            thing = getattr(module, public)  # some are imported on first use
            if hasattr(thing, "_fields"):  # pdoc looks up its types elsewhere
                thing.__new__.__annotations__ = get_type_hints(thing)
    pdoc.render.configure(
        docformat="google", show_source=False, footer_text="armillary"
    )
    # Each module, and none of those within it.
    wanted = [each for name in REFERENCE for each in (name, f"!{re.escape(name)}\\.")]
    pdoc.pdoc(*wanted, output_directory=folder)
    body = "<h1>API reference</h1>\n<ul>\n" + "".join(map(_entry, REFERENCE)) + "</ul>"
    index = PAGE.format(title="API reference", up="../", body=body)
    (folder / "index.html").write_text(index, "utf-8")


def _shorten_array_types() -> None:
    """Let signatures say `numpy.typing.ArrayLike`, not the dozen types it means."""
    module = {"__module__": npt.__name__}
    for name in ("ArrayLike", "DTypeLike"):
        setattr(npt, name, type(name, (), module))
    subscript = {"__class_getitem__": classmethod(GenericAlias)}
    npt.NDArray = type("NDArray", (), module | subscript)


def _entry(name: str) -> str:
    """Return the entry of a public module in the list of all."""
    module = import_module(name)
    link = f'<a href="{name.replace(".", "/")}.html"><code>{name}</code></a>'
    classes = ", ".join(f"<code>{each}</code>" for each in REFERENCE[name] or ())
    text = classes or escape((module.__doc__ or "").partition("\n")[0])
    return f"<li>{link}: {text}</li>\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
