"""Predictions and quizzes: one question with options, an answer that is kept, and (in a quiz) a sentence on each option.

predict() asks before an experiment; the claim's card later shows the answer beside the measurement.
quiz() has a right option, and says of every wrong one which belief it is and where the course tests it.
"""

import re
from collections.abc import Mapping, Sequence

import ipywidgets as widgets
from IPython.display import display

from course_utils.classroom import progress
from course_utils.classroom.cards import bundle

KEY = re.compile(r"(\d\d)\.[a-z0-9-]+")


def predict(key: str, question: str, options: Sequence[str]) -> None:
    """Ask for a prediction and keep it. key is 'NN.name', NN the chapter.

    Raises ValueError for a malformed key, fewer than two options, or one option twice.
    """
    _check(key, question, options)
    _ask(key, question, {option: "" for option in options}, right=None)


def quiz(key: str, question: str, feedback: Mapping[str, str], right: str) -> None:
    """Ask a question with a right answer. feedback holds a sentence for each option; right is one of the options.

    Raises ValueError as predict() does, and where right is no option or an option has no feedback.
    """
    _check(key, question, list(feedback))
    if right not in feedback:
        raise ValueError(f"quiz {key}: the right answer {right!r} is none of the options")
    if not all(sentence.strip() for sentence in feedback.values()):
        raise ValueError(f"quiz {key}: each option needs its sentence of feedback")
    _ask(key, question, feedback, right)


def answer(key: str) -> str | None:
    """The option kept for a prediction or quiz, None if there is none yet."""
    return progress.read(_chapter(key))["predictions"].get(key)


def _ask(key: str, question: str, feedback: Mapping[str, str], right: str | None) -> None:
    kept = answer(key)
    kept = kept if kept in feedback else None
    options = widgets.RadioButtons(options=list(feedback), value=kept, layout={"width": "auto"})
    button = widgets.Button(description="Keep my answer", layout={"width": "auto"})
    said = widgets.HTML(_reply(feedback, right, kept)["text/html"])

    def keep(_: widgets.Button) -> None:
        if options.value is None:
            said.value = bundle("open", "Choose an answer first", [])["text/html"]
            return
        progress.note(_chapter(key), "predictions", key, options.value)
        said.value = _reply(feedback, right, options.value)["text/html"]

    button.on_click(keep)
    kind = "Predict" if right is None else "Question"
    title = widgets.HTML(bundle("note", f"{kind}: {question}", [])["text/html"])
    _display(widgets.VBox([title, options, button, said]), kind, question, feedback, right, kept)


def _display(box: widgets.Widget, kind: str, question: str, feedback: Mapping, right: str | None, kept: str | None) -> None:
    """The live box where a kernel runs; the same question as still text where none does."""
    lines = [f"( ) {option}" for option in feedback] + _reply(feedback, right, kept)["text/plain"].split("\n")
    still = bundle("note", f"{kind}: {question}", lines)
    display({**box._repr_mimebundle_(), **still}, raw=True)


def _reply(feedback: Mapping[str, str], right: str | None, kept: str | None) -> dict[str, str]:
    if kept is None:
        return bundle("open", "Not answered yet", [])
    if right is None:
        return bundle("note", f"Kept: {kept}", [])
    return bundle("good" if kept == right else "bad", f"{'Right' if kept == right else 'Not so'}: {kept}", [feedback[kept]])


def _chapter(key: str) -> str:
    return KEY.fullmatch(key)[1]


def _check(key: str, question: str, options: Sequence[str]) -> None:
    if not KEY.fullmatch(key):
        raise ValueError(f"key {key!r}: write the chapter's two digits, a dot and a name, such as '10.word-at-32'")
    if not question.strip():
        raise ValueError(f"{key}: the question is empty")
    if isinstance(options, str) or len(options) < 2 or len(set(options)) < len(options):
        raise ValueError(f"{key}: give two or more different options, given {options!r}")
