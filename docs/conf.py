"""How Sphinx makes the site: the pages of a checkout and the API reference.

`make docs` writes it to site/. All that Sphinx reads is Markdown that a forge shows,
too, but for the pages of the reference, which `reference.py` writes. Warnings are
errors, among them links that lead nowhere.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
from reference import write_reference  # noqa: E402
from site_links import faults  # noqa: E402

project = "armillary"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/design/*.md", "docs/api/*.rst"]
include_patterns += ["changelog/README.md"]
exclude_patterns = [".*", "build", "site", "src", "tests"]

html_theme = "furo"
html_title = "armillary"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False

myst_heading_anchors = 4  # spelt as forges spell them
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!armillary\.).*")]  # types of others

default_role = "py:obj"
suppress_warnings = ["ref.python"]  # names such as q that several classes have
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: f"numpy.typing.{name}" for name in ("ArrayLike", "DTypeLike")
}
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def setup(app: Sphinx) -> None:
    """Connect what follows."""
    app.connect("builder-inited", lambda _: write_reference(ROOT / "docs" / "api"))
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", to_rst, priority=100)
    app.connect("doctree-read", link_folders)
    app.connect("missing-reference", resolve)
    app.connect("build-finished", finish)


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the front page the list of all pages, in the groups of its own tables."""
    if page != root_doc:
        return
    for caption, names in groups_of(source[0]).items():
        lines = "\n".join(names)
        source[0] += (
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"
        )


def groups_of(readme: str) -> dict[str, list[str]]:
    """Return the captions under the heading Documentation, and the pages of each."""
    tables = readme.partition("\n## Documentation\n")[2]
    _, *parts = re.split(r"^### (.+)$", tables, flags=re.MULTILINE)
    groups = {
        caption: re.findall(r"\]\(((?:docs/)?[\w/]+)\.md\)", text)
        for caption, text in zip(parts[::2], parts[1::2], strict=True)
    }
    groups["Reference"].append("docs/api/index")
    groups["Design"] += ["CHANGELOG", "changelog/README"]
    return groups


def to_rst(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Mark what our docstrings leave to the reader: blocks of code, and arguments.

    A paragraph that is indented more than the text above it is code. One that begins
    with the name of an argument describes arguments.
    """
    changed: list[str] = []
    text_indent, code_indent = 0, 0
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        rows = paragraph.split("\n")
        if 0 < code_indent <= indent(rows[0]):
            pass
        elif changed and indent(rows[0]) >= text_indent + 4:
            code_indent = indent(rows[0])
            changed += [" " * text_indent + "::", ""]
        else:
            code_indent, text_indent = 0, indent(rows[-1])
            rows = [row.replace("|", r"\|") for row in rows]  # no substitutions
            if what in {"function", "method"} and re.match(r"[a-z]\w*: ", rows[0]):
                rows = ["Args:", *("    " + row for row in rows)]
        changed += [*rows, ""]
    lines[:] = changed


def indent(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip())


def link_folders(app: Sphinx, page: nodes.document) -> None:
    """Let the links of a page to folders of the checkout lead to those of the site."""
    for link in list(page.findall(addnodes.pending_xref)):
        target = link["reftarget"]
        if (
            link["reftype"] == "myst"
            and (ROOT / link["refdoc"]).parent.joinpath(target).is_dir()
        ):
            link.replace_self(
                nodes.reference("", "", *link.children, refuri=f"{target}/")
            )


def resolve(app: Sphinx, env: Any, node: Any, text: nodes.Node) -> nodes.Node | None:
    """Resolve what has no page: code, and types that are ours but not public."""
    is_known = node["reftype"] == "obj" or exists(node["reftarget"])
    return text if is_known else None


def exists(name: str) -> bool:
    """Return whether a module of ours has a name."""
    module, _, member = name.rpartition(".")
    if not module.startswith("armillary"):
        return False
    try:
        return hasattr(import_module(module), member)
    except ImportError:
        return False


def finish(app: Sphinx, error: Exception | None) -> None:
    """Put the front page where browsers look for it, the examples beside it; check.

    Raises:
        ExtensionError: A link of the site leads nowhere.
    """
    if error is not None:
        return
    site = Path(app.outdir)
    shutil.copy(site / "README.html", site / "index.html")
    shutil.copytree(
        ROOT / "examples",
        site / "examples",
        ignore=shutil.ignore_patterns("__pycache__"),
        dirs_exist_ok=True,
    )
    if wrong := faults(site):
        raise ExtensionError("These links lead nowhere:\n" + "\n".join(wrong))
