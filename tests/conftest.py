"""For every test: claims strict, progress in an empty temporary folder, and nothing skipped in CI that CI can have."""

import os
import tempfile

import pytest

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
EXCUSE = "skipped in CI, where what it needs can be installed (mark it `platform` if it can't): "

_progress = tempfile.TemporaryDirectory(prefix="course-progress-")
os.environ["COURSE_STRICT"] = "1"
os.environ["COURSE_PROGRESS"] = _progress.name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a skipped test has failed, unless it is about a platform."""
    report = yield
    excused = hasattr(report, "wasxfail") or item.get_closest_marker("platform")
    return report if excused else _fail_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """In CI a file that skips itself whole has failed."""
    return _fail_if_skipped((yield))


def _fail_if_skipped(report):
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = EXCUSE + str(report.longrepr)
    return report
