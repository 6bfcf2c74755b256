"""Submissions as they really come back: right, wrong, half done, broken on purpose or by accident.

Each kind is a function that gets the released notebook and a folder, and writes what a student hands in.
"""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from course_utils import exercises

SUBMISSIONS: dict[str, Callable[[Path, Path], None]] = {}  # by kind
ENDLESS = "def decode(sums, words):\n    while True:\n        pass"
STUBBORN = "import time\nwhile True:\n    try:\n        time.sleep(0.1)\n    except BaseException:\n        pass"


def cell(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    """The cell of that grade id."""
    return next(one for one in notebook.cells if one.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def solved(release: Path, **changed: str | None) -> NotebookNode:
    """The released notebook with the reference solutions, or other code where it is given as _10_1="..."."""
    notebook = nbformat.read(release, as_version=4)
    for one in notebook.cells:
        grade_id = one.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id.endswith("-answer"):
            exercise = exercises.find(grade_id.removesuffix("-answer").replace("-", "."))
            code = changed.get("_" + exercise.id.replace(".", "_"), solution(exercise, one.source))
            one.source = one.source if code is None else code
    return notebook


def solution(exercise: exercises.Exercise, stub: str) -> str:
    """The reference solution as a student would write it into the stub."""
    return (
        stub.replace("...", repr(exercise.solution)) if exercise.cases is None else inspect.getsource(exercise.solution)
    )


def wrong(release: Path, number: int) -> NotebookNode:
    """The released notebook with each exercise's known wrong answer of that number; the last where it has fewer."""
    notebook = nbformat.read(release, as_version=4)
    for one in notebook.cells:
        grade_id = one.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id.endswith("-answer"):
            exercise = exercises.find(grade_id.removesuffix("-answer").replace("-", "."))
            name = re.search(r"(\w+)(?:\(.*\):| =)", one.source)[1]
            place = min(number, len(exercise.wrong) - 1)
            one.source = (
                f"from course_utils.exercises import find\n{name} = find('{exercise.id}').wrong[{place}].answer"
            )
    return notebook


def write(notebook: NotebookNode, folder: Path, name: str = "") -> None:
    """Hand in a notebook under the assignment's name, or another."""
    folder.mkdir(parents=True)
    path = folder / (name or f"{folder.name}.ipynb")
    path.write_text(nbformat.writes(notebook), encoding="utf-8", newline="\n")


def kind(function: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
    """Register a kind of submission under the function's name."""
    SUBMISSIONS[function.__name__] = function
    return function


OTHER_ANSWERS = {  # kinds that differ from full marks in what they answer to 10.1, and in nothing else
    "syntax_error": "def decode(sums, words)\n    return 0",
    "infinite_loop": ENDLESS,
    "stubborn_loop": STUBBORN,
    "memory_hog": "def decode(sums, words):\n    return [np.ones(2**27) for _ in range(64)]",  # 64 GiB
    "memory_hog_outside": "hoard = [np.ones(2**27) for _ in range(64)]",
    "sys_exit": "import sys\nsys.exit()",
    "plain_exit": "exit()",
    "os_exit": "import os\nos._exit(0)",
    "output_of_50_mb": "import sys\nfor _ in range(50):\n    sys.stdout.write('x' * 1_000_000)",  # 50 MB in one line
    "endless_lines": "while True:\n    print('still running')",
    "asks_for_input": "answer = input('Which axis? ')",
    "recursion_without_end": "def decode(sums, words):\n    return decode(words, sums)",
}


def answering(code: str) -> Callable[[Path, Path], None]:
    """A kind of submission with this code as its answer to 10.1."""
    return lambda release, folder: write(solved(release, _10_1=code), folder)


SUBMISSIONS.update({name: answering(code) for name, code in OTHER_ANSWERS.items()})


@kind
def full_marks(release, folder):
    write(solved(release), folder)


@kind
def half_done(release, folder):
    write(solved(release, _10_2=None, _10_4=None, _15_3=None), folder)


@kind
def blank(release, folder):
    write(nbformat.read(release, as_version=4), folder)


@kind
def output_of_many_lines(release, folder):
    lines = "for i in range(200_000):\n    print(i, 'lines')\n\n\n"
    write(solved(release, _10_1=lines + solution(exercises.find("10.1"), "")), folder)


@kind
def prints_inside(release, folder):
    code = solution(exercises.find("10.1"), "").replace("    scores", "    print('x' * 10_000_000)\n    scores", 1)
    write(solved(release, _10_1="import sys\n" + code), folder)


@kind
def warns_inside(release, folder):
    noisy = "    import sys, warnings\n    print('hm', file=sys.stderr)\n    warnings.warn('hm')\n    scores"
    write(solved(release, _10_1=solution(exercises.find("10.1"), "").replace("    scores", noisy, 1)), folder)


@kind
def edited_test(release, folder):
    notebook = solved(release, _10_1=None)
    cell(notebook, "10-1-test").source = "assert True"
    write(notebook, folder)


@kind
def points_raised(release, folder):
    notebook = solved(release)
    cell(notebook, "10-1-test").metadata.nbgrader.points = 1000
    write(notebook, folder)


@kind
def deleted_test(release, folder):
    notebook = solved(release, _10_1=None)
    notebook.cells.remove(cell(notebook, "10-1-test"))
    write(notebook, folder)


@kind
def deleted_test_of_a_right_answer(release, folder):
    notebook = solved(release)
    notebook.cells.remove(cell(notebook, "10-2-test"))
    write(notebook, folder)


@kind
def deleted_answer(release, folder):
    notebook = solved(release)
    notebook.cells.remove(cell(notebook, "10-2-answer"))
    write(notebook, folder)


@kind
def deleted_exercise(release, folder):
    notebook = solved(release)
    notebook.cells.remove(cell(notebook, "10-2-answer"))
    notebook.cells.remove(cell(notebook, "10-2-test"))
    write(notebook, folder)


@kind
def answer_turned_to_text(release, folder):
    notebook = solved(release)
    answer = cell(notebook, "10-1-answer")
    index = notebook.cells.index(answer)
    notebook.cells[index] = v4.new_markdown_cell(answer.source, metadata=answer.metadata)
    write(notebook, folder)


@kind
def test_turned_to_text(release, folder):
    notebook = solved(release, _10_1=None)
    test = cell(notebook, "10-1-test")
    notebook.cells[notebook.cells.index(test)] = v4.new_markdown_cell(test.source, metadata=test.metadata)
    write(notebook, folder)


@kind
def invalid_json(release, folder):
    write(solved(release), folder)
    path = folder / f"{folder.name}.ipynb"
    path.write_text(path.read_text(encoding="utf-8")[:-200], encoding="utf-8")


@kind
def not_a_notebook(release, folder):
    folder.mkdir(parents=True)
    (folder / f"{folder.name}.ipynb").write_text('{"answer": 42}', encoding="utf-8")


@kind
def a_script(release, folder):
    folder.mkdir(parents=True)
    (folder / f"{folder.name}.ipynb").write_text("def decode(sums, words):\n    return 0\n", encoding="utf-8")


@kind
def copied_results(release, folder):
    table = "from course_utils.exercises import find\nknown = find('10.1')\n"
    table += "known = {repr(case): known.solution(*case) for case in known.cases()}\n\n\n"
    write(solved(release, _10_1=table + "def decode(*case):\n    return known[repr(case)]"), folder)


@kind
def duplicate_grade_id(release, folder):
    notebook = solved(release)
    answer = cell(notebook, "10-1-answer")
    copy = v4.new_code_cell("decode = None", metadata=answer.metadata)
    notebook.cells.insert(notebook.cells.index(answer), copy)
    write(notebook, folder)


@kind
def stripped_metadata(release, folder):
    notebook = solved(release)
    for one in notebook.cells:
        one.metadata.pop("nbgrader", None)
    write(notebook, folder)


@kind
def old_metadata(release, folder):
    notebook = solved(release)
    for one in notebook.cells:
        if "nbgrader" in one.metadata:
            one.metadata.nbgrader.schema_version = 1
    write(notebook, folder)


@kind
def damaged_metadata(release, folder):
    notebook = solved(release)
    del cell(notebook, "10-1-test").metadata.nbgrader["points"]
    write(notebook, folder)


@kind
def renamed_notebook(release, folder):
    write(solved(release), folder, "week3 (final) (2).ipynb")


@kind
def empty_folder(release, folder):
    folder.mkdir(parents=True)


@kind
def out_of_order(release, folder):
    notebook = solved(release)
    answer = cell(notebook, "10-2-answer")
    answer.source = "top = 3\n" + answer.source.replace("[:3]", "[:last]")
    notebook.cells.append(v4.new_code_cell("last = top", execution_count=1))  # was run before the answer's cell
    test = cell(notebook, "10-1-test")
    test.execution_count = 99
    write(notebook, folder)


@kind
def moved_cells(release, folder):
    notebook = solved(release)
    test = cell(notebook, "10-1-test")
    notebook.cells.remove(test)
    notebook.cells.append(test)
    write(notebook, folder)


@kind
def windows_line_endings(release, folder):
    notebook = solved(release)
    for one in notebook.cells:
        one.source = one.source.replace("\n", "\r\n")
    write(notebook, folder)
    path = folder / f"{folder.name}.ipynb"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@kind
def with_a_bom(release, folder):
    write(solved(release), folder)
    path = folder / f"{folder.name}.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


@kind
def own_course_package(release, folder):
    write(solved(release, _10_1=None), folder)
    (folder / "course_utils").mkdir()
    (folder / "course_utils" / "__init__.py").write_text("raise SystemExit", encoding="utf-8")


@kind
def stored_output_of_50_mb(release, folder):
    notebook = solved(release)
    cell(notebook, "10-1-answer").outputs = [v4.new_output("stream", text="x" * 50_000_000)]
    write(notebook, folder)


@kind
def metadata_of_another_kind(release, folder):
    notebook = solved(release)
    cell(notebook, "10-1-test").metadata["nbgrader"] = "a text"
    write(notebook, folder)


@kind
def nested_too_deep(release, folder):
    folder.mkdir(parents=True)
    (folder / f"{folder.name}.ipynb").write_text("[" * 200_000, encoding="utf-8")


@kind
def forks_and_threads(release, folder):
    code = solution(exercises.find("10.1"), "")
    more = (
        "import os, threading, time\nthreading.Thread(target=time.sleep, args=(10_000,)).start()\nif not os.fork():\n"
    )
    write(solved(release, _10_1=f"{more}    time.sleep(30)\n    os._exit(0)\n\n\n{code}"), folder)


def stdout_closed(release, folder):
    code = solution(exercises.find("10.1"), "")
    write(solved(release, _10_1=f"import sys\nsys.stdout.close()\nsys.stdout = sys.stderr = None\n\n\n{code}"), folder)


@kind
def another_notebook_beside_it(release, folder):
    write(solved(release), folder)
    (folder / "notes.ipynb").write_text("no notebook", encoding="utf-8")
    (folder / "a folder" / "b").mkdir(parents=True)
    (folder / "a folder" / "b" / "data.csv").write_text("1,2", encoding="utf-8")


@kind
def notebook_is_a_folder(release, folder):
    (folder / f"{folder.name}.ipynb").mkdir(parents=True)
    (folder / f"{folder.name}.ipynb" / "x.txt").write_text("x", encoding="utf-8")


def student(kind: str) -> str:
    """The name of the folder of a kind's student. Some have what names really have, and patterns, too."""
    return {"full_marks": "Nguyễn Thị Ánh", "half_done": "O'Brien, Zoë-Ann"}.get(kind, kind)
