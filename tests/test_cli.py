"""The command line: what it says, with which Python it starts, and how it ends."""

import ast
import importlib.util
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import tokenize
import urllib.request
from pathlib import Path

import pytest
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from nbformat import v4
from traitlets.config import Config

from course_utils.delivery import CourseError, cli
from course_utils.delivery.chapters import find
from course_utils.delivery.lab import settle_in
from course_utils.delivery.testing import command
from course_utils.places import ROOT

FIRST_READ = ["course_utils/__init__.py", "course_utils/__main__.py"]  # by Pythons that are too old, too
TOO_OLD = ["2.7", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "3.10"]


def course(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess:
    """Run a command, in the environment that runs this test."""
    settings = os.environ | {"COURSE_VENV": sys.prefix, "PYTHONDONTWRITEBYTECODE": "1"}
    settings.pop("PYTHONUTF8", None)
    start = [python, "-m", "course_utils", *arguments]
    return subprocess.run(start, cwd=ROOT, env=settings, capture_output=True, text=True, encoding="utf-8")


def old_pythons() -> dict[str, str]:
    """The interpreters on this machine that are too old for the course, by version."""
    found = {}
    for version in TOO_OLD:
        places = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
        for python in filter(None, places):
            told = subprocess.run([python, "-c", "print('it runs')"], capture_output=True, text=True)
            if told.stdout.strip() == "it runs":
                found[version] = str(python)
    return found


@pytest.mark.platform
def test_old_pythons_are_told_so_in_one_sentence():
    pythons = old_pythons()
    if not pythons:
        pytest.skip("no Python older than 3.11 on this machine")
    for version, python in pythons.items():
        done = course("lab", python=python)
        said = f"course: Python 3.11 or newer is needed, this is {version} ("
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), (version, done.stderr)
        assert done.stderr.startswith(said), (version, done.stderr)


@pytest.mark.parametrize("name", FIRST_READ)
def test_what_old_pythons_read_has_no_new_grammar(name):
    source = (ROOT / name).read_text(encoding="utf-8")
    source.encode("ascii")  # Python 2 refuses other letters where no encoding is named
    tree = ast.parse(source, feature_version=(3, 4))
    new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal, ast.Starred, ast.YieldFrom)
    for node in ast.walk(tree):
        assert not isinstance(node, new), (name, node.lineno)
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            assert not (node.returns or arguments.kwonlyargs or arguments.posonlyargs), (name, node.lineno)
            assert not any(argument.annotation for argument in arguments.args), (name, node.lineno)


@pytest.mark.platform
@pytest.mark.skipif(not importlib.util.find_spec("lib2to3"), reason="Python 3.13 dropped the grammar of Python 2")
@pytest.mark.filterwarnings("ignore:lib2to3:DeprecationWarning")
@pytest.mark.parametrize("name", FIRST_READ)
def test_what_old_pythons_read_parses_by_python_2s_grammar(name):
    from lib2to3 import pygram, pytree
    from lib2to3.pgen2 import driver

    source = (ROOT / name).read_text(encoding="utf-8")
    grammar = pygram.python_grammar_no_print_statement  # the file imports print_function
    assert driver.Driver(grammar, convert=pytree.convert).parse_string(source)


@pytest.mark.parametrize("name", FIRST_READ)
def test_what_old_pythons_read_has_no_new_literals(name):
    tokens = tokenize.generate_tokens(io.StringIO((ROOT / name).read_text(encoding="utf-8")).readline)
    for token in tokens:
        assert not (token.type == tokenize.STRING and token.string.lower().startswith(("f", "rf", "fr"))), token
        assert not (token.type == tokenize.NUMBER and "_" in token.string), token


def test_the_bootstrap_needs_the_standard_library_only():
    code = (
        "import sys; sys.path.insert(0, '.'); import course_utils.delivery.cli\n"
        "ours = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in ours if not name.startswith('__')))"
    )
    # -S: without site-packages; -E: without the user's settings
    done = subprocess.run([sys.executable, "-S", "-E", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "['course_utils']", done.stderr


def test_help_names_every_verb_with_a_sentence_and_examples():
    done = course("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for verb in ("lab", "setup", "test", "run", "assign", "grade", "claims"):
        assert any(line.split()[:1] == [verb] and line.endswith(".") for line in done.stdout.splitlines()), verb
        own = course(verb, "--help")
        assert (own.returncode, "example:" in own.stdout) == (0, True), own
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_no_verb_shows_the_help():
    done = course()
    assert (done.returncode, done.stdout) == (2, course("--help").stdout)


def test_what_a_verb_does_not_know_is_refused():
    for arguments, unknown in ((("run", "--sav3"), "--sav3"), (("claims", "ten"), "ten"), (("lab", "--x"), "--x")):
        done = course(*arguments)
        assert (done.returncode, f"does not know {unknown}" in done.stderr) == (2, True), done


def test_an_unknown_chapter_is_one_sentence():
    done = course("run", "77")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("course: There is no chapter '77': choose one of ")


def test_chapters_are_found_by_their_digits(tmp_path):
    there = {name: tmp_path / f"{name}_title.ipynb" for name in ("00", "07", "10")}
    for path in there.values():
        path.touch()
    assert (find("7", tmp_path), find("07", tmp_path), find("10", tmp_path)) == (there["07"], there["07"], there["10"])
    with pytest.raises(CourseError, match="choose one of 00, 07, 10"):
        find("11", tmp_path)


@pytest.mark.slow
def test_the_lab_opens_at_the_chapter_and_shows_no_news():
    port = _free_port()
    options = ["--no-browser", f"--port={port}", "--IdentityProvider.token=", "--ServerApp.port_retries=0"]
    options += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    code = f"from course_utils.delivery.lab import open_lab; open_lab('00', {options})"
    server = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        page = _fetch(f"http://127.0.0.1:{port}/", seconds=60)
        settings = json.loads(
            _fetch(f"http://127.0.0.1:{port}/lab/api/settings/@jupyterlab/apputils-extension:notification").read()
        )
        listed = json.loads(_fetch(f"http://127.0.0.1:{port}/api/contents/").read())
    finally:
        server.terminate()
        server.wait(timeout=30)
    assert (page.status, page.url) == (200, f"http://127.0.0.1:{port}/lab/tree/notebooks/{find('00').name}")
    assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"
    assert {"notebooks", "course_utils"} <= {entry["name"] for entry in listed["content"]}


def test_the_environments_server_keeps_stills_in_what_it_saves(tmp_path):
    kept = tmp_path / "etc" / "jupyter" / "jupyter_server_config.json"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"ServerApp": {"open_browser": false}}', encoding="utf-8")
    settle_in(tmp_path)
    settle_in(tmp_path)
    settings = json.loads(kept.read_text(encoding="utf-8"))
    assert settings["ServerApp"] == {"open_browser": False}
    manager = LargeFileManager(config=Config(settings), root_dir=str(tmp_path))
    view = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "a control"}
    notebook = v4.new_notebook(cells=[v4.new_code_cell("1", outputs=[v4.new_output("display_data", view)])])
    manager.save({"type": "notebook", "format": "json", "content": notebook}, "saved.ipynb")
    assert "widget-view" not in (tmp_path / "saved.ipynb").read_text(encoding="utf-8")


def test_where_a_process_cannot_replace_itself_it_waits_and_ends_alike():
    code = (
        "import sys; from course_utils.delivery import environment\n"
        "environment.ON_WINDOWS = True\n"
        "environment.become([sys.executable, '-c', 'import sys; print(1); sys.exit(7)'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "1\n")


@pytest.mark.parametrize("scope", ["quick", "usual", "full"])
def test_what_each_scope_leaves_out(scope):
    arguments = command(scope, ["-k", "sum"])
    left_out = arguments[arguments.index("-m", 2) + 1] if scope != "full" else ""
    assert [name for name in ("slow", "browser", "heavy") if name in left_out] == {
        "quick": ["slow", "browser", "heavy"],
        "usual": ["heavy"],
        "full": [],
    }[scope]
    assert ("--nbval" in arguments) == (scope != "quick")
    assert arguments[-2:] == ["-k", "sum"]


def test_ctrl_c_leaves_no_traceback(monkeypatch, capsys):
    def interrupted() -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.bootstrap, "set_up", interrupted)
    assert cli.main(["setup"]) == 130
    assert capsys.readouterr().err == "\nStopped. The same command goes on from here.\n"


def test_a_letter_that_the_console_lacks_is_no_error(tmp_path):
    settings = os.environ | {"COURSE_VENV": str(tmp_path / "Việt"), "PYTHONIOENCODING": "ascii:strict"}
    start = [sys.executable, "-m", "course_utils", "claims"]
    done = subprocess.run(start, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr, "Vi?t yet" in done.stderr) == (1, False, True), done.stderr


SKIPS = {
    "plain": "import pytest\ndef test_it():\n    pytest.skip('no browser')\n",
    "mark": "import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test_it():\n    pass\n",
    "file": "import pytest\npytest.importorskip('no_such_package')\n",
    "platform": "import pytest\n@pytest.mark.platform\ndef test_it():\n    pytest.skip('Windows')\n",
    "xfail": "import pytest\n@pytest.mark.xfail\ndef test_it():\n    assert False\n",
}


def test_in_ci_a_skip_is_a_failure_unless_it_is_about_a_platform(tmp_path):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, source in SKIPS.items():
        (tmp_path / f"test_{name}.py").write_text(source)

    def pytest_says(ci: str) -> str:
        settings = os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        start = [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", tmp_path]
        done = subprocess.run(start, cwd=tmp_path, env=settings, capture_output=True, text=True)
        return done.stdout.splitlines()[-1].partition(" in ")[0]

    assert pytest_says(ci="true") == "1 failed, 1 skipped, 1 xfailed, 2 errors"
    assert pytest_says(ci="") == "4 skipped, 1 xfailed"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _fetch(address: str, seconds: float = 10):
    """The answer of a server that may still be starting."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + seconds
    while True:
        try:
            return direct.open(address, timeout=seconds)
        except OSError:
            assert time.monotonic() < end, f"no answer from {address}"
            time.sleep(0.1)
