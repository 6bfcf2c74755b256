"""Each notebook in JupyterLab, in a real browser, by keyboard: what a learner sees and gets."""

import ast
import inspect

import pytest
from lab import Control
from notebook_reading import code_cells, read, tagged
from playwright.sync_api import expect

from course_utils import exercises

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KINDS = ("Slider", "Steps", "Choice", "Switch", "TextBox")


def cells_calling(path, name):
    """(index, call) of each call of `name` in the notebook, by cell."""
    for index, cell in enumerate(read(path).cells):
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    yield index, node


def test_the_still_pictures_are_there_before_anything_runs(path, pictures_before):
    seen, trouble = pictures_before
    assert not trouble
    lives = [index for index, _ in cells_calling(path, "explore")]
    assert lives, "a chapter has a live control"
    assert [index for index in lives if not seen[index]] == []


def test_restart_and_run_all_runs_every_cell_without_an_error(path, ran):
    assert ran.counts() == list(range(1, 1 + sum(bool(cell.source.strip()) for cell in code_cells(read(path)))))
    assert ran.trouble() == []


def test_every_control_changes_the_picture_by_keyboard(path, ran):
    for number, (index, call) in enumerate(cells_calling(path, "explore")):
        live = ran.output(index)
        live.scroll_into_view_if_needed()
        ran.photograph(f"control-{number}-before", live)
        controls = Control.all(live)
        asked = [k for k in call.keywords if isinstance(k.value, ast.Call) and ast.unparse(k.value.func) in KINDS]
        assert len(controls) == len(asked)
        for place, control in enumerate(controls):
            assert control.move(), f"{control.kind} {place} of the control in cell {index} changes nothing"
            ran.photograph(f"control-{number}-after-{place}", live)
    assert ran.trouble() == []


def choose(notebook, index, option, place):
    """Choose the option at `place` and keep it, with Tab, Space and Enter."""
    output = notebook.output(index)
    radios = output.get_by_role("radio")
    radios.first.focus()
    for _ in range(place):
        notebook.page.keyboard.press("Tab")
    notebook.page.keyboard.press("Space")
    expect(radios.nth(place)).to_be_checked()
    for _ in range(radios.count() - place):
        notebook.page.keyboard.press("Tab")
    expect(output.get_by_role("button", name="Keep my answer")).to_be_focused()
    notebook.page.keyboard.press("Enter")


def test_each_option_of_a_quiz_gets_its_own_answer(path, ran):
    asked = list(cells_calling(path, "quiz"))
    assert asked, "a chapter has a quiz"
    for index, call in asked:
        feedback = ast.literal_eval(call.args[2])
        right = ast.literal_eval(next(k.value for k in call.keywords if k.arg == "right"))
        for place, (option, sentence) in enumerate(feedback.items()):
            choose(ran, index, option, place)
            expect(ran.output(index)).to_contain_text(sentence)
            expect(ran.output(index)).to_contain_text(f"{'Right' if option == right else 'Not so'}: {option}")
    ran.photograph("quiz", ran.output(asked[-1][0]))


def typed(exercise, stub, answer):
    """What a learner types for `answer`: a value, or a function under the stub's name."""
    tree = ast.parse(stub).body[0]
    if exercise.cases is None:
        return f"{tree.targets[0].id} = {answer!r}"
    return f"import math\nimport numpy as np\n\n{inspect.getsource(answer)}\n{tree.name} = {answer.__name__}"


def stands_alone(answer):
    """Whether a learner could have typed it: it calls nothing of the exercises' own file."""
    if not callable(answer):
        return True
    own = {name for name, value in vars(inspect.getmodule(answer)).items() if not inspect.ismodule(value)}
    return not own & set(answer.__code__.co_names)


def test_an_exercise_says_what_is_wrong_and_when_it_is_right(path, ran):
    notebook = read(path)
    places = {cell.id: index for index, cell in enumerate(notebook.cells)}
    checks = tagged(notebook, "check")
    stubs = tagged(notebook, "exercise")
    assert stubs, "a chapter has exercises"
    refused = 0
    for name, stub in stubs.items():
        exercise, check = exercises.find(name), places[checks[name].id]
        wrong = [(one.answer, one.message) for one in exercise.wrong if stands_alone(one.answer)][:1]
        refused += len(wrong)
        told = [*wrong, (exercise.solution, f"{name} {exercise.title}: right")]
        for answer, words in told:
            ran.write(places[stub.id], typed(exercise, stub.source, answer))
            ran.run(check)
            expect(ran.output(check)).to_contain_text(words)
        ran.photograph(f"exercise-{name}", ran.output(check))
    assert refused, "a wrong answer was typed, too"


def test_a_prediction_is_kept_also_over_a_restart(path, ran):
    index, call = next(cells_calling(path, "predict"))
    options = ast.literal_eval(call.args[2])
    choose(ran, index, options[-1], len(options) - 1)
    expect(ran.output(index)).to_contain_text(f"Kept: {options[-1]}")
    ran.restart()
    notebook = read(path)
    setup = next(i for i, cell in enumerate(notebook.cells) if "setup" in cell.metadata.get("tags", []))
    ran.run(setup)
    ran.run(index)
    expect(ran.output(index)).to_contain_text(f"Kept: {options[-1]}")
    expect(ran.output(index).get_by_role("radio").last).to_be_checked()
    ran.photograph("prediction-kept", ran.output(index))


def test_saved_and_opened_anew_it_shows_the_still_pictures(path, ran):
    """The learner's own notebook, trusted, with another kernel: there is no model left for a live view."""
    ran.restart_and_run_all()
    ran.command("docmanager:save")
    ran.command("kernelmenu:shutdown")
    ran.open()
    for index, _ in cells_calling(path, "explore"):
        expect(ran.output(index).locator(".jp-RenderedImage img")).to_be_visible()
    assert ran.trouble() == []
    ran.photograph("opened-anew")


def test_the_console_has_no_error_of_ours(ran):
    assert ran.console == []
