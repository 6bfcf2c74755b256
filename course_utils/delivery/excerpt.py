"""Cutting an exercise out of its chapter: its text, its stub, and the code of the chapter that it leans on."""

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from symtable import symtable

import nbformat
from nbformat import NotebookNode

from course_utils.delivery import CourseError
from course_utils.exercises import Exercise, of_chapter

IN_BACKTICKS = re.compile(r"`([A-Za-z_]\w*)")
RELATIVE_LINK = re.compile(r"!?\[([^\]]*)\]\((?!https?://)[^)\s]*\)")
NOT_GIVEN = ("exercise:", "check:", "colab")  # tags of cells whose code is no part of what a chapter explains
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
DISPLAY = "course_utils.classroom"  # what an assignment has no use for


@dataclass(frozen=True)
class Excerpt:
    """An exercise as its chapter's notebook poses it."""

    exercise: Exercise
    text: str  # Markdown, without the title
    stub: str  # the cell that the learner fills in
    name: str  # of the function or value that it defines
    given: tuple[tuple[str, str], ...]  # what the exercise needs of the chapter: names, and the code that defines them
    refers_to: tuple[str, ...]  # the ids of other exercises that the text mentions


def cut_out(exercise: Exercise, path: Path) -> Excerpt:
    """The exercise's excerpt from its chapter's notebook. Raises CourseError where the notebook lacks it."""
    cells = nbformat.read(path, as_version=4).cells
    place = _tagged(cells, f"exercise:{exercise.id}")
    if place is None:
        raise CourseError(f"{path.name} has no cell tagged exercise:{exercise.id}: it can't be assigned.")
    stub = cells[place].source
    (statement,) = ast.parse(stub).body
    name = statement.name if exercise.cases is not None else ast.unparse(statement.targets[0])
    text, between = _pose(cells[:place], exercise)
    prose = "\n".join([text, stub, *exercise.hints])
    given = [*_given(exercise, cells[:place], prose, between), *((code, code) for code in between)]
    others = [one.id for one in of_chapter(exercise.chapter) if one.id != exercise.id]
    refers_to = tuple(one for one in others if re.search(rf"\b{re.escape(one)}\b", text))
    return Excerpt(exercise, RELATIVE_LINK.sub(r"\1", text), stub, name, tuple(given), refers_to)


def with_solution(excerpt: Excerpt) -> str:
    """The stub, and after it the reference solution between nbgrader's markers."""
    exercise = excerpt.exercise
    if exercise.cases is None:
        return f"{excerpt.stub}\n{BEGIN}\n{excerpt.name} = {exercise.solution!r}\n{END}"
    source = inspect.getsource(exercise.solution)
    (function,) = ast.parse(source).body
    docstring = function.body[0].end_lineno if ast.get_docstring(function) else function.body[0].lineno - 1
    body = textwrap.dedent("\n".join(source.splitlines()[docstring:])).rstrip()
    marked = f"{BEGIN}\n{body}\n{END}"
    return f"{excerpt.stub}\n{textwrap.indent(marked, '    ')}"


def _tagged(cells: Sequence[NotebookNode], tag: str) -> int | None:
    return next((i for i, cell in enumerate(cells) if tag in cell.metadata.get("tags", [])), None)


def _pose(before: Sequence[NotebookNode], exercise: Exercise) -> tuple[str, list[str]]:
    """The exercise's text, and the code cells that stand between it and its stub."""
    title = re.compile(rf"^(?:#+ |\*\*){re.escape(exercise.id)} {re.escape(exercise.title)}(?:\*\*\W*|.*)", re.M)
    texts, code = [], []
    for cell in reversed(before):
        if cell.cell_type == "code":
            code.insert(0, cell.source)
            continue
        found = title.search(cell.source)
        texts.insert(0, cell.source[found.end() :] if found else cell.source)
        if found:
            return "\n\n".join(texts).strip(), code
    raise CourseError(f"The chapter's text has no title '{exercise.id} {exercise.title}': it can't be assigned.")


def _given(exercise: Exercise, chapter: Sequence[NotebookNode], prose: str, between: Sequence[str]) -> list:
    """The chapter's functions that the prose quotes, what solution and code in between read, and what those need."""
    defined = {name: entry for entry in _statements(chapter) for name in entry.names}  # the last definition wins
    code = [inspect.getsource(exercise.solution)] if exercise.cases is not None else []
    read = {name for source in (*code, *between) for name in _names_read(source)}
    quoted = {name for name in IN_BACKTICKS.findall(prose) if name in defined and defined[name].is_function}
    needed, open_names = set(), ["np", *read, *quoted]
    while open_names:
        entry = defined.get(open_names.pop())
        if entry is not None and entry not in needed:
            needed.add(entry)
            open_names += _names_read(entry.code)
    return [(", ".join(entry.names), entry.code) for entry in sorted(needed, key=lambda entry: entry.number)]


def _names_read(source: str) -> set[str]:
    """The names that code takes from outside itself, builtins excepted."""
    tables, read = [symtable(source, "cell", "exec")], set()
    while tables:
        table = tables.pop()
        outermost = table.get_type() == "module"
        read |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (outermost or s.is_global())}
        tables += table.get_children()
    return {name for name in read if not hasattr(builtins, name)}


@dataclass(frozen=True)
class _Statement:
    """A definition in a chapter: where it stands, what it defines, its source."""

    number: int
    names: tuple[str, ...]
    is_function: bool
    code: str


def _statements(cells: Sequence[NotebookNode]) -> Iterator[_Statement]:
    """The chapter's definitions in order. Imports of what only displays are left out."""
    number = 0
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or any(tag.startswith(NOT_GIVEN) for tag in tags):
            continue
        for node in ast.parse(cell.source).body:
            names, number = _names_defined(node), number + 1
            shows = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(DISPLAY)
            if names and not shows:
                is_function = isinstance(node, ast.FunctionDef | ast.ClassDef)
                yield _Statement(number, names, is_function, ast.get_source_segment(cell.source, node))


def _names_defined(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return (node.name,)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return tuple(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        inside = (part for target in targets for part in ast.walk(target))
        return tuple(part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    return ()
