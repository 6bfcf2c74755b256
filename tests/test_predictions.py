"""Predictions and quizzes: kept, shown again, answered option by option."""

import pytest

from course_utils.classroom import predictions, progress
from course_utils.classroom.predictions import answer, predict, quiz

FEEDBACK = {"one": "Too few: see chapter 02.", "two": "Right, both."}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path))


@pytest.fixture
def asked(monkeypatch):
    """Asks for the last question that was displayed."""
    shown = []
    monkeypatch.setattr(predictions, "display", shown.append)
    return lambda: shown[-1]


def test_a_prediction_is_kept_and_shown_again(asked):
    predict("10.a", "How many?", ["one", "two"])
    question = asked()
    assert question.options.value is None and "Not answered yet" in repr(question)
    question.options.value = "two"
    question.button.click()
    assert "Kept: two" in question.said.value
    assert answer("10.a") == "two"
    predict("10.a", "How many?", ["one", "two"])
    assert asked().options.value == "two" and "Kept: two" in repr(asked())


def test_pressing_the_button_first_asks_for_a_choice(asked):
    predict("10.a", "How many?", ["one", "two"])
    asked().button.click()
    assert "Choose an answer first" in asked().said.value
    assert answer("10.a") is None


ANSWERS = [
    ("one", ("✗", "Not so: one", "Too few: see chapter 02.")),
    ("two", ("✓", "Right: two", "Right, both.")),
]


@pytest.mark.parametrize(("chosen", "words"), ANSWERS)
def test_a_quiz_answers_each_option_in_words(asked, chosen, words):
    quiz("10.q", "How many?", FEEDBACK, right="two")
    asked().options.value = chosen
    asked().button.click()
    assert all(word in asked().said.value for word in words)


def test_an_answer_that_is_no_longer_offered_is_not_shown(asked):
    progress.note("10", "predictions", "10.a", "seven")
    predict("10.a", "How many?", ["one", "two"])
    assert asked().options.value is None and "Not answered yet" in repr(asked())


def test_the_output_holds_a_live_view_and_the_same_in_plain_text(asked):
    predict("10.a", "How <many>?", ["one", "two"])
    bundle = asked()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    lines = ["• Predict: How <many>?", "  ( ) one", "  ( ) two", "  ○ Not answered yet"]
    assert bundle["text/plain"].splitlines() == lines
    assert "How &lt;many&gt;?" in bundle["text/html"]


def test_without_a_page_it_says_so_and_goes_on(capsys):
    predict("10.a", "How many?", ["one", "two"])
    assert capsys.readouterr().out.endswith("Not answered yet\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("word", "How many?", ["a", "b"]), "write the chapter's two digits"),
        (("10.a", "  ", ["a", "b"]), "the question is empty"),
        (("10.a", "How many?", ["a"]), "two or more different options"),
        (("10.a", "How many?", ["a", "a"]), "two or more different options"),
        (("10.a", "How many?", "ab"), "two or more different options"),
    ],
)
def test_a_malformed_question_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        predict(*arguments)


def test_a_quiz_needs_its_right_answer_and_every_feedback():
    with pytest.raises(ValueError, match="'three' is none of the options"):
        quiz("10.q", "How many?", FEEDBACK, right="three")
    with pytest.raises(ValueError, match="each option needs its sentence"):
        quiz("10.q", "How many?", {"one": "", "two": "x"}, right="two")
