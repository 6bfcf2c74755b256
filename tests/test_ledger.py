"""The ledger on the screen, from data of the test's own and from the course's."""

import json

import pytest
from test_running import CLAIMS, data  # noqa: F401  (a fixture)

from course_utils.classroom.claims import load_claims
from course_utils.delivery import keeping
from course_utils.delivery.ledger import claims_table, rows_table

REGISTER = "".join(
    f'[[row]]\nid = "{row}"\nsection = "Sums"\nclass = "{kind}"\nverdict = "sound"\n\n'
    for row, kind in (("S0.01", "numeric"), ("S0.02", "reported"), ("S0.03", "conceptual"))
)


def test_the_table_shows_values_bounds_and_what_is_not_yet_measured(data):  # noqa: F811
    assert claims_table(data).count("not yet") == 2
    settled = {"two-and-two": {"values": {"sum": 4.0}}, "quick": {"values": {"seconds": 0.1}}}
    keeping.record("97", settled, {}, folder=data)
    head, rule, first, second, total = claims_table(data, width=120).splitlines()
    assert head.split() == ["claim", "verdict", "statement", "measured"]
    assert first.split() == ["97", "two-and-two", "holds", "Two", "and", "two", "are", "four.", "4"]
    assert second.endswith("at most 5")
    assert total == "2 claims (holds: 2)"


def test_long_statements_wrap_inside_their_column(data):  # noqa: F811
    toml = data / "claims" / "97.toml"
    toml.write_text(CLAIMS.replace("Two and two are four.", "Two and two are four, however long one argues. " * 5))
    lines = claims_table(data, width=100).splitlines()
    assert max(map(len, lines)) <= 100
    column = lines[0].index("statement")
    assert all(line[:column].strip() == "" for line in lines[3:5])


def test_rows_are_covered_left_out_or_open(data):  # noqa: F811
    (data / "register.toml").write_text(REGISTER)
    (data / "left_out.toml").write_text('[[row]]\nid = "S0.02"\nreason = "needs a large model"\n')
    toml = data / "claims" / "97.toml"
    toml.write_text(CLAIMS.replace('id = "two-and-two"', 'id = "two-and-two"\nrows = ["S0.01"]'))
    *_, first, second, third, total = rows_table(data, width=120).splitlines()
    assert first.split() == ["S0.01", "covered", "numeric", "Sums", "97:two-and-two"]
    assert second.split()[:3] == ["S0.02", "left", "out"] and second.endswith("needs a large model")
    assert third.split() == ["S0.03", "open", "conceptual", "Sums"]
    assert total == "3 rows: 1 covered, 1 left out, 1 open"


def test_an_empty_ledger_says_so(tmp_path):
    (tmp_path / "claims").mkdir()
    assert claims_table(tmp_path) == "There are no claims yet."


@pytest.mark.parametrize("width", [80, 120])
def test_the_courses_own_ledger_lists_every_claim_and_row(width):
    table = claims_table(width=width)
    assert all(name in table for name in load_claims())
    assert rows_table(width=width).splitlines()[-1].startswith("179 rows: ")
    assert json.dumps(table)
