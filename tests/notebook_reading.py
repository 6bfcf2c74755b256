"""Reading a chapter's notebook: its cells, the calls in its code, its headings and its links."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_utils.delivery.chapters import chapters

NOTEBOOKS = list(chapters().values())
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tagged(notebook: NotebookNode, tag: str) -> dict[str, NotebookNode]:
    """The cells tagged 'tag:NAME', by NAME."""
    found = {}
    for cell in notebook.cells:
        for name in cell.metadata.get("tags", []):
            if name.startswith(f"{tag}:"):
                found[name.split(":", 1)[1]] = cell
    return found


def headings(notebook: NotebookNode) -> list[str]:
    """The headings of all text cells, in order, with their number signs."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return re.findall(r"^#{1,4} .+$", text, re.M)


def calls(notebook: NotebookNode, *names: str) -> Iterator[ast.Call]:
    """The calls of functions of these names in the code cells, in order."""
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield node


def questions(notebook: NotebookNode) -> dict[str, list[str]]:
    """Each prediction's and quiz's options, by its key."""
    asked = {}
    for call in calls(notebook, "predict", "quiz"):
        key, _, options = (ast.literal_eval(argument) for argument in call.args[:3])
        assert key not in asked, f"{key} is asked twice"
        asked[key] = list(options)
    return asked
