"""The package as a whole: thin, quick to import, arrows in one direction, public functions described."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.places import ROOT

PACKAGE = ROOT / "course_utils"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {"torch", "transformers", "matplotlib"}


def loaded(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded("import course_utils") & (HEAVY | {"numpy", "IPython"})
    assert not loaded("import course_utils.science.geometry, course_utils.science.pretrained") & HEAVY


def test_the_classroom_needs_no_torch():
    assert not loaded("import course_utils.classroom") & {"torch", "transformers"}


def imports(module: Path) -> set[str]:
    """The parts of course_utils that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("course_utils.")}
    return found


FORBIDDEN = {
    "science": {"classroom", "exercises", "delivery"},
    "exercises": {"classroom", "delivery"},
    "classroom": {"science", "delivery"},
}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_the_arrows_run_one_way(part):
    for module in (PACKAGE / part).glob("*.py"):
        assert not imports(module) & FORBIDDEN[part], module.name


def functions(module: Path):
    """The public functions of a module, and the methods of its public classes."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for owner in (tree, *classes):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield node


def typed(function: ast.FunctionDef) -> bool:
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    unnamed = [argument for argument in parameters if argument.arg not in ("self", "cls")]
    return function.returns is not None and all(argument.annotation for argument in unnamed)


OURS = [module for module in MODULES if not module.name.startswith(("ch", "__main__"))]


@pytest.mark.parametrize("module", OURS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_public_functions_are_typed_and_described(module):
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))), "a file tells what it is for"
    for function in functions(module):
        assert typed(function), f"{function.name}: type hints"
        assert ast.get_docstring(function), f"{function.name}: docstring"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_are_short_and_files_tell_one_story(module):
    text = module.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node):
                length -= node.body[0].end_lineno - node.body[0].lineno + 1
            assert length <= 30, f"{node.name} has {length} lines"


def test_ruff_finds_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--quiet", "."], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_text_files_are_utf8_with_unix_line_ends():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix not in (".png", ".safetensors"):
            content = path.read_bytes()
            content.decode("utf-8")
            assert b"\r\n" not in content, name
