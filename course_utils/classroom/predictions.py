"""Predictions and quizzes: a question with options, an answer that is kept, in a quiz a sentence on each option.

predict() asks before an experiment; the claim's card later shows the answer beside the measurement.
quiz() has a right option, and says of every wrong one which belief it is and where the course tests it.
"""

import re
from collections.abc import Mapping, Sequence

import ipywidgets as widgets
from IPython.display import display

from course_utils.classroom import progress
from course_utils.classroom.cards import Card

KEY = re.compile(r"(\d\d)\.[a-z0-9-]+")


def predict(key: str, question: str, options: Sequence[str]) -> None:
    """Ask for a prediction and keep it. key is 'NN.name', NN the chapter.

    Raises ValueError for a malformed key, fewer than two options, or one option twice.
    """
    _check(key, question, options)
    display(Question("Predict", key, question, dict.fromkeys(options, ""), right=None))


def quiz(key: str, question: str, feedback: Mapping[str, str], right: str) -> None:
    """Ask a question with a right answer. feedback holds a sentence for each option; right is one of the options.

    Raises ValueError as predict() does, and where right is no option or an option has no feedback.
    """
    _check(key, question, list(feedback))
    if right not in feedback:
        raise ValueError(f"quiz {key}: the right answer {right!r} is none of the options")
    if not all(sentence.strip() for sentence in feedback.values()):
        raise ValueError(f"quiz {key}: each option needs its sentence of feedback")
    display(Question("Question", key, question, feedback, right))


def answer(key: str) -> str | None:
    """The option kept for a prediction or quiz, None if there is none yet."""
    return progress.read(_chapter(key))["predictions"].get(key)


class Question:
    """A question on the page: live where a kernel runs, still text where none does."""

    def __init__(self, kind: str, key: str, question: str, feedback: Mapping[str, str], right: str | None):
        self.key, self.feedback, self.right = key, feedback, right
        kept = answer(key)
        self.kept = kept if kept in feedback else None
        self.title = f"{kind}: {question}"
        self.options = widgets.RadioButtons(options=list(feedback), value=self.kept, layout={"width": "auto"})
        self.button = widgets.Button(description="Keep my answer", layout={"width": "max-content"})
        self.button.on_click(self.keep)
        self.said = widgets.HTML(self.reply().html)
        title = widgets.HTML(Card("note", self.title).html)
        self.box = widgets.VBox([title, self.options, self.button, self.said])

    def keep(self, _: object = None) -> None:
        """Keep the option that is chosen now, and answer it."""
        if self.options.value is None:
            self.said.value = Card("open", "Choose an answer first").html
            return
        self.kept = self.options.value
        progress.note(_chapter(self.key), "predictions", self.key, self.kept)
        self.said.value = self.reply().html

    def reply(self) -> Card:
        """What is said to the answer that is kept."""
        if self.kept is None:
            return Card("open", "Not answered yet")
        if self.right is None:
            return Card("note", f"Kept: {self.kept}")
        if self.kept == self.right:
            return Card("good", f"Right: {self.kept}", [self.feedback[self.kept]])
        return Card("bad", f"Not so: {self.kept}", [self.feedback[self.kept]])

    def still(self) -> Card:
        """The question as a card, without a kernel."""
        return Card(
            "note", self.title, [*(f"( ) {option}" for option in self.feedback), *self.reply().text.split("\n")]
        )

    def __repr__(self) -> str:
        return self.still().text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {**self.box._repr_mimebundle_(), **self.still()._repr_mimebundle_()}


def _chapter(key: str) -> str:
    return KEY.fullmatch(key)[1]


def _check(key: str, question: str, options: Sequence[str]) -> None:
    if not KEY.fullmatch(key):
        raise ValueError(f"key {key!r}: write the chapter's two digits, a dot and a name, such as '10.word-at-32'")
    if not question.strip():
        raise ValueError(f"{key}: the question is empty")
    if isinstance(options, str) or len(options) < 2 or len(set(options)) < len(options):
        raise ValueError(f"{key}: give two or more different options, given {options!r}")
