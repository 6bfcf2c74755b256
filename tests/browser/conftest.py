"""One JupyterLab and one browser for all; each notebook is opened once, run once, and then looked at and moved."""

import shutil

import lab
import pytest
from notebook_reading import NOTEBOOKS


@pytest.fixture(scope="session")
def browser():
    if lab.chromium() is None:
        pytest.skip(lab.NO_CHROMIUM)
    with lab.browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory):
    """The folder of our JupyterLab. In root/ is a copy of the notebooks: the stored ones stay as they are."""
    work = tmp_path_factory.mktemp("lab")
    shutil.copytree(lab.ROOT / "notebooks", work / "root")
    return work


@pytest.fixture(scope="session")
def address(lab_folder):
    """The address of a running JupyterLab."""
    with lab.server(lab_folder) as address:
        yield address


@pytest.fixture(scope="session", params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture(scope="session")
def stored(browser, address, path):
    """A notebook just opened, nothing run. Other tests run it: a test of this state gets what was seen at once."""
    page = browser.new_page(viewport={"width": 1300, "height": 1100})
    notebook = lab.Notebook(page, address, path.name)
    notebook.photograph("top")
    yield notebook
    page.close()


@pytest.fixture(scope="session")
def pictures_before(stored):
    """For each cell, whether a stored still picture is seen in it before anything has run."""
    cells = stored.page.locator(".jp-Notebook .jp-Cell")
    seen = []
    for i in range(cells.count()):
        picture = cells.nth(i).locator(".jp-RenderedImage img")
        there = picture.count() > 0
        seen.append(there and picture.first.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0)
    return seen, stored.trouble()


@pytest.fixture(scope="session")
def ran(stored, pictures_before):
    """The notebook after Restart & Run All."""
    stored.restart_and_run_all()
    return stored
