"""The chapters as documents: anatomy, claims settled once from what was measured, outputs fresh, links alive."""

import ast
import inspect
import re

import pytest
from notebook_reading import LINK, NOTEBOOKS, calls, code_cells, headings, questions, read, tagged

from course_utils import exercises
from course_utils.classroom.claims import load_claims
from course_utils.classroom.figures import SHORTEST_ALT
from course_utils.delivery.keeping import source_hash

CELL_LINES = 15  # a dozen or so
CLAIMS = load_claims()
CHAPTERS = [path for path in NOTEBOOKS if not path.name.startswith("00")]
ORDER = ["Two questions to warm up", "Play", "Where it bends", "Exercises", "Recap"]

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@every_notebook
def test_one_title_and_a_promise(path):
    notebook = read(path)
    assert [line for line in headings(notebook) if line.startswith("# ")] == [notebook.cells[0].source.splitlines()[0]]
    assert "minutes" in notebook.cells[0].source and "After this" in notebook.cells[0].source


@every_chapter
def test_the_anatomy_is_there_in_order(path):
    found = headings(read(path))
    places = [next((i for i, line in enumerate(found) if line.lstrip("# ").startswith(name)), None) for name in ORDER]
    assert None not in places, f"missing: {[name for name, place in zip(ORDER, places, strict=True) if place is None]}"
    assert places == sorted(places)
    sections = [line for line in found[places[0] : places[1]] if line.startswith("## ")]
    assert 3 <= len(sections) <= 5
    assert all(line.endswith("?") for line in sections), "a section is a question"


@every_chapter
def test_the_chapter_says_what_it_builds_on_and_where_to_go(path):
    opening = read(path).cells[0].source
    for word in ("Builds on", "binder", "00_start_here.ipynb", "Next"):
        assert word in opening


@every_notebook
def test_the_setup_is_three_lines_at_most(path):
    (setup,) = [cell for cell in code_cells(read(path)) if "setup" in cell.metadata.get("tags", [])]
    assert len(ast.parse(setup.source).body) <= 3


@every_notebook
def test_code_cells_are_short_plain_and_portable(path):
    for cell in code_cells(read(path)):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        assert len(lines) <= CELL_LINES, lines[0]
        assert not re.search(r"import \*|(?<![\w.])/(?:home|root|tmp|work|content)/|[A-Z]:\\\\", cell.source), lines[0]


@every_notebook
def test_each_claim_is_settled_once_and_never_with_a_number_typed_in(path):
    settled = []
    for call in calls(read(path), "settle"):
        settled.append(ast.literal_eval(call.args[0]))
        values = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        assert values, f"{settled[-1]} is settled with nothing"
        for value in values:
            assert any(isinstance(node, ast.Name) for node in ast.walk(value)), f"{settled[-1]}: {ast.unparse(value)}"
    own = [claim.id for claim in CLAIMS.values() if claim.chapter == path.name[:2]]
    assert sorted(settled) == sorted(own)


@every_notebook
def test_every_prediction_comes_back_on_one_claims_card(path):
    notebook = read(path)
    options = questions(notebook)
    assert all(key.startswith(path.name[:2] + ".") for key in options)
    predicted = [ast.literal_eval(call.args[0]) for call in calls(notebook, "predict")]
    outcomes = [
        item for claim in CLAIMS.values() if claim.chapter == path.name[:2] for item in claim.predictions.items()
    ]
    assert sorted(key for key, _ in outcomes) == sorted(predicted)
    for key, outcome in outcomes:
        assert outcome in options[key], key


@every_notebook
def test_stored_outputs_are_those_of_the_code_that_is_there(path):
    notebook = read(path)
    cells = [cell for cell in code_cells(notebook) if cell.source.strip()]
    assert notebook.metadata["course"].get("ran") == source_hash(notebook), f"run {path.name[:2]} --save"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error" and output.get("name") != "stderr", cell.source.splitlines()[0]


@every_notebook
def test_every_picture_is_described(path):
    pictures = 0
    for cell in code_cells(read(path)):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                pictures += 1
                assert len(output.metadata["image/png"]["alt"]) >= SHORTEST_ALT
                assert output.metadata["image/png"]["alt"] in output.data["text/plain"]
    assert pictures >= 2


@every_notebook
def test_links_lead_somewhere(path):
    for cell in read(path).cells:
        for target in LINK.findall(cell.source) if cell.cell_type == "markdown" else ():
            if not target.startswith(("http://", "https://", "#")):
                assert (path.parent / target.split("#")[0]).exists(), target


@every_notebook
def test_every_exercise_has_its_stub_and_its_check(path):
    notebook, chapter = read(path), path.name[:2]
    stubs, checks = tagged(notebook, "exercise"), tagged(notebook, "check")
    expected = [exercise.id for exercise in exercises.of_chapter(chapter)]
    assert list(stubs) == list(checks) == expected
    for exercise in exercises.of_chapter(chapter):
        text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        assert f"{exercise.id} {exercise.title}" in text, f"{exercise.id}'s title is the notebook's"
        assert checks[exercise.id].source.startswith(f'check("{exercise.id}", ')


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stub_has_the_signature_and_the_words_of_its_solution(path):
    stubs = tagged(read(path), "exercise")
    for exercise in exercises.of_chapter(path.name[:2]):
        (stub,) = ast.parse(stubs[exercise.id].source).body
        if exercise.cases is None:
            assert isinstance(stub, ast.Assign) and ast.unparse(stub.value) == "..."
            continue
        (solution,) = ast.parse(inspect.getsource(exercise.solution)).body
        assert (stub.name, ast.unparse(stub.args)) == (solution.name, ast.unparse(solution.args))
        assert ast.get_docstring(stub) == ast.get_docstring(solution)
        assert ast.unparse(stub.body[-1]) == "..." and len(stub.body) == 2


@every_notebook
def test_a_questions_code_is_folded_so_that_it_does_not_give_the_answer_away(path):
    for cell in code_cells(read(path)):
        asks = any(name in cell.source for name in ("quiz(", "predict(")) and "import" not in cell.source
        assert cell.metadata.get("jupyter", {}).get("source_hidden", False) == asks, cell.source.splitlines()[0]


@every_notebook
def test_no_cell_is_left_out_of_the_comparison(path):
    excused = {"nbval-skip", "nbval-ignore-output", "NBVAL_SKIP", "NBVAL_IGNORE_OUTPUT", "raises-exception"}
    for cell in code_cells(read(path)):
        assert not excused & set(cell.metadata.get("tags", [])) and "NBVAL" not in cell.source


@every_notebook
def test_cells_carry_slide_metadata(path):
    kinds = {"slide", "subslide", "fragment", "skip", "notes", "-"}
    assert all(cell.metadata["slideshow"]["slide_type"] in kinds for cell in read(path).cells)
