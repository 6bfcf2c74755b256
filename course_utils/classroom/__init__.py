"""How it is taught: what a chapter calls around its experiments."""

from course_utils.classroom.claims import settle
from course_utils.classroom.exercises import check, hint, solution
from course_utils.classroom.explore import Choice, Slider, Steps, Switch, TextBox, explore
from course_utils.classroom.figures import chance, figure, measured, show, theory
from course_utils.classroom.predictions import predict, quiz

__all__ = [
    "Choice",
    "Slider",
    "Steps",
    "Switch",
    "TextBox",
    "chance",
    "check",
    "explore",
    "figure",
    "hint",
    "measured",
    "predict",
    "quiz",
    "settle",
    "show",
    "solution",
    "theory",
]
