"""Looking at a submission before nbgrader does: what would keep it from being graded, in a sentence.

nbgrader too refuses what is refused here, but it leaves a 0 in its export that looks like a real one.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.nbgraderformat import MetadataValidator

NOT_HANDED_IN = {".ipynb_checkpoints", "__pycache__"}  # folders that programs make


@dataclass(frozen=True)
class Expected:
    """A notebook of the assignment: its name, the grade ids of its cells in order, and which of them are tests."""

    name: str
    cells: tuple[str, ...]
    tests: frozenset[str]


class Ungradable(Exception):
    """Why a submission can't be graded, and by which file one sees it."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(reason)
        self.file, self.reason = file, reason


def inspect(folder: Path, expected: Sequence[Expected]) -> None:
    """Look at all that a student handed in. Raises Ungradable for what nbgrader could not grade."""
    there = sorted(file.name for file in files(folder))
    if not there:
        raise Ungradable(folder, "the folder is empty")
    for one in expected:
        path = folder / f"{one.name}.ipynb"
        if not path.is_file():
            raise Ungradable(folder, f"there is no {path.name}, but {', '.join(map(repr, there[:5]))}: renamed?")
        _inspect_cells(path, _read(path), one)


def files(folder: Path) -> Iterator[Path]:
    """The files in a folder and below, in order, without what programs put there by themselves."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not NOT_HANDED_IN & set(path.parts))


def fingerprint(*folders: Path) -> str:
    """sha256 of all names and contents: tells whether anything changed."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in [folder] if folder.is_file() else files(folder):
            name = file.relative_to(folder).as_posix().encode()
            digest.update(b"%d %s %d " % (len(name), name, file.stat().st_size))
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> NotebookNode:
    try:
        text = path.read_text(encoding="utf-8")
        if text.startswith("\ufeff"):
            raise Ungradable(path, "the file begins with a byte order mark, which an editor on Windows put there")
        json.loads(text)
        return nbformat.reads(text, as_version=4)
    except UnicodeDecodeError:
        raise Ungradable(path, "the file is no UTF-8 text, so it is not a notebook") from None
    except json.JSONDecodeError as error:
        if error.pos == 0:
            raise Ungradable(path, "the file is not a notebook") from None
        raise Ungradable(path, f"the file is damaged: no valid JSON from line {error.lineno} on") from None
    except Ungradable:
        raise
    except Exception:  # nbformat says in a dozen ways that something is no notebook
        raise Ungradable(path, "the file is not a notebook") from None


def _inspect_cells(path: Path, notebook: NotebookNode, expected: Expected) -> None:
    with_mark = [cell for cell in notebook.cells if cell.metadata.get("nbgrader")]
    marked = [cell.metadata.nbgrader for cell in with_mark]
    if not all(isinstance(one, dict) for one in marked):
        raise Ungradable(path, "nbgrader's metadata are damaged: what should be a table is something else")
    ids = [one.get("grade_id") for one in marked]
    known = set(ids) & set(expected.cells)
    if not known:
        raise Ungradable(
            path, "nbgrader's metadata are gone from all cells: they were stripped, or copied to a new file"
        )
    twice = sorted(one for one, count in Counter(ids).items() if count > 1 and one)
    if twice:
        raise Ungradable(path, f"duplicate grade id {', '.join(twice)}: a cell was copied; delete the copy")
    placeable = {one.get("grade_id") for one in marked if one.get("grade") or one.get("solution")}
    lost = list(_lost(expected, placeable))
    if lost:
        raise Ungradable(path, f"cells are missing, or lost their metadata: {', '.join(lost)}")
    for cell, mark in zip(with_mark, marked, strict=True):
        cell.cell_type = mark.get("cell_type", cell.cell_type)  # nbgrader turns a code cell that became text back
    try:
        MetadataValidator().validate_nb(notebook)
    except Exception as error:  # its own errors, jsonschema's, and KeyErrors for keys that it takes for granted
        raise Ungradable(path, f"nbgrader's metadata are damaged: {str(error).splitlines()[0][:150]}") from None


def _lost(expected: Expected, placeable: set[str]) -> Iterator[str]:
    """The tests that nbgrader can't put back, because the cell before them is missing too, and that cell."""
    placeable = set(placeable)
    for before, one in zip(("", *expected.cells), expected.cells, strict=False):
        if one in expected.tests and one not in placeable:
            if before and before not in placeable:
                yield from (before, one)
            placeable.add(one)
