"""The command line: python3 -m course_utils VERB.

Standard library only; what a verb needs more it imports itself, once it runs inside the environment.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.delivery import CourseError, bootstrap
from course_utils.delivery.environment import become, course_environment

START = ("py" if os.name == "nt" else "python3") + " -m course_utils"
ABOUT = """Commands of the course. Each works from the system's Python (3.11 or newer); what the course
needs is installed into the folder .venv of this clone, or into the one that COURSE_VENV names.
All may be stopped and repeated. pip's settings (proxy, certificate, index) are respected."""
EXAMPLES = f"""examples:
  {START} lab            open the first notebook, setting up if need be
  {START} lab 10         open chapter 10
  {START} test --quick   the tests for every day
  {START} run 10         run chapter 10 without a browser, every claim checked

'{START} VERB --help' says more about a verb."""


def main(arguments: Sequence[str]) -> int:
    """Carry out one command. Returns the status: 1 after a failure told in a sentence, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a console that can't show a letter of a path shows "?"
    os.environ.pop("PYTHONHOME", None)  # an environment's interpreter finds its own home
    try:
        return _carry_out(arguments)
    except CourseError as error:
        print(f"course: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("course_utils"):
            raise
        folder = course_environment().folder
        said = f"course: {error.name} is missing from {folder}: remove that folder and run '{START} setup'."
        print(said, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130


def _carry_out(arguments: Sequence[str]) -> int:
    arguments = list(arguments)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = _parser()
    options, rest = parser.parse_known_args(arguments[:split])
    if options.verb is None:
        parser.print_help()
        return 2
    options.extra = [*rest, *arguments[split + 1 :]]
    if options.extra and options.verb not in ("lab", "test") or rest and options.verb == "lab":
        parser.error(f"{options.verb} does not know {' '.join(options.extra)}")
    return options.carry_out(options, arguments)


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=START, description=ABOUT, epilog=EXAMPLES, formatter_class=plain)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    added = {}
    for name, (carry_out, says, more, example) in VERBS.items():
        epilog = f"example:\n  {START} {example}"
        about = f"{says} {more}".strip()
        added[name] = verbs.add_parser(name, help=says, description=about, epilog=epilog, formatter_class=plain)
        added[name].set_defaults(carry_out=carry_out)
    _add_options(**added)
    return parser


def _add_options(lab, setup, test, run, claims, train, assign, grade) -> None:
    lab.add_argument("chapter", nargs="?", default="00", metavar="NN", help="the chapter (default: 00, the start)")
    scope = test.add_mutually_exclusive_group()
    scope.set_defaults(scope="usual")
    quick, full = "leave out notebooks, browser and slow tests", "add the heavy tests"
    scope.add_argument("--quick", dest="scope", action="store_const", const="quick", help=quick)
    scope.add_argument("--full", dest="scope", action="store_const", const="full", help=full)
    run.add_argument("chapters", nargs="*", metavar="NN", help="chapters (default: all)")
    run.add_argument("--save", action="store_true", help="write the outputs into the notebook")
    run.add_argument("--record", action="store_true", help="write the measured values to data/measured")
    rows = "which rows of the register are covered, left out or open"
    claims.add_argument("--rows", action="store_true", help=rows)
    train.add_argument("models", nargs="*", metavar="NAME", help="models of data/lab.toml (default: all)")
    train.add_argument("--seeds", nargs="+", type=int, default=[], metavar="N", help="default: 0 1 2")
    train.add_argument("--device", default="cpu", help="cpu (default), cuda or mps")
    train.add_argument("--again", action="store_true", help="also those that are there already")
    _add_options_for_instructors(assign, grade)


def _add_options_for_instructors(assign, grade) -> None:
    assign.add_argument("--list", action="store_true", help="only list the exercises: id, minutes, points, title")
    assign.add_argument("--name", help="the assignment's name, such as week3")
    picked = assign.add_mutually_exclusive_group()
    picked.add_argument("--exercises", nargs="+", default=[], metavar="ID", help="exercises by id, in order")
    picked.add_argument("--chapter", metavar="NN", help="all exercises of a chapter")
    own = "one number an exercise (default: the exercises' own)"
    assign.add_argument("--points", nargs="+", type=float, default=[], metavar="N", help=own)
    assign.add_argument("--out", type=Path, metavar="FOLDER", help="the nbgrader course: new, or made by assign")
    grade.add_argument("name", help="the assignment's name")
    grade.add_argument(
        "--course", type=Path, default=Path(), metavar="FOLDER", help="the nbgrader course (default: here)"
    )
    grade.add_argument("--csv", type=Path, metavar="FILE", help="where the marks go (default: NAME_marks.csv there)")
    grade.add_argument("--again", action="store_true", help="grade all again, not only what changed")


def _setup(options: argparse.Namespace, arguments: list[str]) -> int:
    done = "Ready" if bootstrap.set_up() else "Nothing to do"
    print(f"{done}. Next: {START} lab")
    return 0


def _lab(options: argparse.Namespace, arguments: list[str]) -> int:
    from course_utils.delivery.chapters import find

    find(options.chapter)  # an unknown chapter is told before the minutes of a set-up
    bootstrap.set_up()
    _go_inside(arguments)
    from course_utils.delivery.lab import open_lab

    open_lab(options.chapter, options.extra)


def _test(options: argparse.Namespace, arguments: list[str]) -> int:
    bootstrap.set_up(tests=True)
    _go_inside(arguments)
    from course_utils.delivery.testing import run_tests

    return run_tests(options.scope, options.extra)


def _run(options: argparse.Namespace, arguments: list[str]) -> int:
    _go_inside(arguments)
    from course_utils.delivery.running import run_chapters

    return run_chapters(options.chapters, save=options.save, record=options.record)


def _claims(options: argparse.Namespace, arguments: list[str]) -> int:
    _go_inside(arguments)
    from course_utils.delivery.ledger import claims_table, rows_table

    print(rows_table() if options.rows else claims_table())
    return 0


def _train(options: argparse.Namespace, arguments: list[str]) -> int:
    _go_inside(arguments)
    from course_utils.delivery.train import train_models

    return train_models(options.models, options.seeds, options.device, options.again)


def _assign(options: argparse.Namespace, arguments: list[str]) -> int:
    if not options.list and (options.name is None or options.out is None):
        raise CourseError("assign needs --name and --out: what the assignment is called, and in which folder it goes.")
    _set_up_grading()
    _go_inside(arguments)
    from course_utils.delivery import assignments

    if options.list:
        print(assignments.listing())
        return 0
    picked = assignments.pick(options.exercises, options.chapter)
    print(assignments.report(assignments.assign(options.name, picked, options.points, options.out), picked))
    return 0


def _grade(options: argparse.Namespace, arguments: list[str]) -> int:
    _set_up_grading()
    _go_inside(arguments)
    from course_utils.delivery.marks import grade

    return 1 if grade(options.name, options.course, options.csv, options.again) else 0


def _set_up_grading() -> None:
    """nbgrader on first use; nothing where this is the environment that has it."""
    environment = course_environment()
    if not (environment.is_current() and environment.has("nbgrader", "")):
        bootstrap.set_up(grading=True)


def _go_inside(arguments: list[str]) -> None:
    """Go on with the environment's interpreter. Raises CourseError, naming setup, where there is none."""
    environment = course_environment()
    if environment.is_current():
        return
    if not bootstrap.was_set_up(environment):
        raise CourseError(f"the course is not set up in {environment.folder} yet: run '{START} setup' first.")
    become([str(environment.python), "-m", "course_utils", *arguments])


VERBS = {  # what carries it out, what the help says, what its own help adds, an example
    "lab": (
        _lab,
        "Open JupyterLab at a chapter, setting up if need be.",
        "What follows -- goes to JupyterLab.",
        "lab 10 -- --no-browser",
    ),
    "setup": (_setup, "Create .venv and install the course into it; repeat it at will.", "", "setup"),
    "test": (
        _test,
        "Run the tests, setting up if need be.",
        "Options that are not listed here go to pytest.",
        "test --quick -k pip",
    ),
    "run": (
        _run,
        "Run chapters without a browser and tell seconds and peak memory.",
        "A claim outside its range is an error.",
        "run 10 --save --record",
    ),
    "claims": (_claims, "Print the ledger: each claim, its verdict, what was measured.", "", "claims --rows"),
    "train": (
        _train,
        "Train the small models that chapters read, where they are missing.",
        "A stopped run goes on from where it was.",
        "train length_rope --seeds 0",
    ),
    "assign": (
        _assign,
        "Make an nbgrader assignment out of exercises (for instructors).",
        "notebooks/guide_instructors.md leads from here to the marks.",
        "assign --name week3 --exercises 10.1 10.2 15.3 --points 2 3 5 --out course",
    ),
    "grade": (
        _grade,
        "Grade submissions and write the marks as CSV (for instructors).",
        "Only what is new or changed is graded. The status is 1 if a submission could not be graded.",
        "grade week3 --course course",
    ),
}
