"""Claims: the files are sound, every null is rejected, and settle tells learners and strict runs what it should."""

import math
import tomllib
from dataclasses import replace

import pytest

from course_utils.classroom import claims, progress
from course_utils.classroom.claims import ClaimError, Range, load_claims, settle
from course_utils.classroom.start import stops
from course_utils.places import DATA

CLAIMS = load_claims()
REGISTER = {row["id"]: row for row in tomllib.loads((DATA / "register.toml").read_text(encoding="utf-8"))["row"]}
LEFT_OUT = tomllib.loads((DATA / "left_out.toml").read_text(encoding="utf-8")).get("row", [])


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path))


@pytest.fixture
def one(monkeypatch):
    """A ledger of one claim, with one value and with two."""
    single = {"share": Range(0.3, 0.4, "wide enough", null=0.0)}
    made = {
        "single": claims.Claim(
            "single", "10", "A share.", "experiment", "holds", "here", single, predictions={"10.p-one": "b"}
        ),
        "double": claims.Claim(
            "double", "10", "Two.", "identity", "holds", "here", {**single, "count": Range(5, 5, "a count")}
        ),
        "timed": claims.Claim("timed", "10", "Fast.", "experiment", "holds", "here", single, volatile=True),
    }
    monkeypatch.setattr(claims, "_all", lambda: made)
    return made


def test_the_register_has_its_179_rows_in_their_classes():
    classes = [row["class"] for row in REGISTER.values()]
    counts = {name: classes.count(name) for name in set(classes)}
    assert len(REGISTER) == 179
    assert counts == {"exact-math": 51, "numeric": 16, "mini-training": 28, "reported": 54, "conceptual": 30}


def test_every_row_belongs_to_one_chapter_or_is_left_out_with_a_reason():
    planned = [row for stop in stops() for row in stop.rows] + [row["id"] for row in LEFT_OUT]
    assert sorted(planned) == sorted(REGISTER)
    assert len(LEFT_OUT) <= 10
    for row in LEFT_OUT:
        assert row["reason"] and REGISTER[row["id"]]["class"] in ("reported", "conceptual")


@pytest.mark.parametrize("stop", [stop for stop in stops() if stop.notebook], ids=lambda stop: stop.number)
def test_a_chapters_claims_cover_its_rows_and_are_ten_at_most(stop):
    own = [claim for claim in CLAIMS.values() if claim.chapter == stop.number]
    covered = {row for claim in own for row in claim.rows}
    left_out = {row["id"] for row in LEFT_OUT}
    assert covered | left_out >= set(stop.rows)
    assert covered <= set(REGISTER)
    assert len(own) <= 10


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_every_measured_value_has_a_null_that_its_range_rejects(claim):
    assert claim.source and claim.expect
    for name, expected in claim.expect.items():
        assert expected.null is not None and expected.null_is, f"{name}: name the null"
        assert not expected.holds(expected.null), f"{name} would also hold at {expected.null} ({expected.null_is})"
        assert not expected.holds(math.nan)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_settling_a_claim_with_its_nulls_is_rejected(claim, monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    nulls = {name: expected.null for name, expected in claim.expect.items()}
    with pytest.raises(ClaimError, match=f"claim {claim.id}: "):
        settle(claim.id, **nulls)


def test_a_value_in_range_is_kept_and_shown(one, capsys):
    settle("single", 0.3512345)
    said = capsys.readouterr().out
    assert "✓ holds (single)" in said
    assert "0.35 " in said and "0.3 to 0.4" in said
    assert progress.read("10")["settled"]["single"] == {"values": {"share": 0.3512345}, "within": True}


def test_a_learner_sees_that_it_differs_and_nothing_raises(one, monkeypatch, capsys):
    monkeypatch.delenv("COURSE_STRICT")
    settle("single", 0.9)
    assert "✗ differs: did you change something above? (single)" in capsys.readouterr().out
    assert progress.read("10")["settled"]["single"]["within"] is False


def test_a_false_claim_says_that_it_is_the_claim_that_fails(one, capsys):
    one["single"] = replace(one["single"], verdict="fails")
    settle("single", 0.35)
    assert "✓ as expected, the claim fails (single)" in capsys.readouterr().out


@pytest.mark.parametrize("value", [0.9, -1, math.nan, math.inf])
def test_a_strict_run_raises(one, value):
    with pytest.raises(ClaimError, match="claim single: share = .*expected 0.3 to 0.4"):
        settle("single", value)


def test_the_predictions_stand_beside_the_measurement(one, capsys):
    settle("single", 0.35)
    assert "p one: you made no prediction (it came out: b)" in capsys.readouterr().out
    progress.note("10", "predictions", "10.p-one", "a")
    settle("single", 0.35)
    assert "p one: you predicted: a (it came out: b)" in capsys.readouterr().out
    progress.note("10", "predictions", "10.p-one", "b")
    settle("single", 0.35)
    assert "p one: you predicted: b (as it came out)" in capsys.readouterr().out


def test_a_measurement_that_differs_confirms_no_prediction(one, monkeypatch, capsys):
    monkeypatch.delenv("COURSE_STRICT")
    progress.note("10", "predictions", "10.p-one", "b")
    settle("single", 0.40004)
    said = capsys.readouterr().out
    assert "p one: you predicted: b\n" in said and "came out" not in said
    assert "0.40004" in said, "a value just outside must not look as if it lay within"


def test_a_volatile_claims_card_shows_no_number(one, capsys):
    settle("timed", 0.35)
    first = capsys.readouterr().out
    settle("timed", 0.36)
    assert capsys.readouterr().out == first
    assert "0.35" not in first


def test_values_go_by_name(one, capsys):
    settle("double", share=0.31, count=5)
    assert "count" in capsys.readouterr().out
    for values in ({"share": 0.31}, {"share": 0.31, "count": 5, "other": 1}, {}):
        with pytest.raises(TypeError, match="claim double is settled with share, count"):
            settle("double", **values)
    with pytest.raises(TypeError, match="one value without a name"):
        settle("double", 0.31)


@pytest.mark.parametrize("value", [[0.3, 0.4], "many", {}])
def test_only_numbers_settle_a_claim(one, value):
    with pytest.raises(TypeError, match="claim single: share is one number"):
        settle("single", value)


def test_an_unknown_claim_is_named():
    with pytest.raises(KeyError, match="no claim is called 'nothing'"):
        settle("nothing", 1)


@pytest.mark.parametrize(
    ("expected", "value", "text"),
    [
        (Range(0.35, 0.42, "w"), 0.38449, "0.38"),
        (Range(-0.002, 0.002, "w"), -2.9e-6, "0"),
        (Range(0.995, math.inf, "w"), 0.99951, "1"),
        (Range(5, 5, "w"), 5.0, "5"),
        (Range(12865792, 12865792, "w"), 12865792.0, "12,865,792"),
        (Range(0.36, 0.45, "w"), math.nan, "nan"),
    ],
)
def test_a_card_shows_the_digits_that_hold_on_every_machine(expected, value, text):
    assert expected.shown(value) == text


GOOD = """
[[claim]]
id = "a"
statement = "s"
kind = "identity"
verdict = "holds"
source = "here"
[claim.expect]
x = {equals = 1, why = "a count"}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("equals = 1", "equals = 1, at_most = 2", "exactly one of equals"),
        (', why = "a count"', "", "the reason in why"),
        ("equals = 1", "between = [2, 1]", "an empty range"),
        ('"holds"', '"maybe"', "verdict one of"),
        ('"identity"', '"guess"', "kind is one of"),
        ('"holds"', '"holds if"', "needs a condition"),
        ('source = "here"\n', "", "source"),
        ('statement = "s"', 'statment = "s"', "statment"),
    ],
)
def test_a_malformed_claim_is_named_with_its_file(tmp_path, old, new, message):
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / "10.toml").write_text(GOOD, encoding="utf-8")
    assert load_claims(folder)["a"].expect["x"] == Range(1, 1, "a count")
    (folder / "10.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"data/claims/10.toml, claim 'a': .*{message}"):
        load_claims(folder)


def test_one_id_is_one_claim(tmp_path):
    (tmp_path / "10.toml").write_text(GOOD + GOOD, encoding="utf-8")
    with pytest.raises(ValueError, match="the id 'a' is used twice"):
        load_claims(tmp_path)
