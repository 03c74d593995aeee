"""Claims of a team, from a TOML file: what is written is what runs, and a wrong file is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.claims import team_file
from harness.claims.claim import Claim, Truth
from harness.errors import UsageError
from suites.support import claims_example

GOOD = """
[[claim]]
id = "TEAM-1"
statement = "Orders survive the loss of a broker."
expected = "true"

[claim.scenario]
mode = "idempotent"
producers = { records_per_s = 500 }
schedule = [{ fault = { fault = "kill" }, on = { target = "leader", partition = 0 } }]
"""


def read(tmp_path: Path, text: str) -> Claim:
    path = tmp_path / "claims.toml"
    path.write_text(text, encoding="utf-8")
    (claim,) = team_file.read(path)
    return claim


def test_a_claim_of_a_team_has_its_scenario(tmp_path: Path) -> None:
    claim = read(tmp_path, GOOD)
    assert (claim.id, claim.expected, claim.group) == ("TEAM-1", Truth.TRUE, "TEAM")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[[claim]]", "[[claims]]", "a file of claims has one or more tables"),
        ('expected = "true"', 'expected = "maybe"', "claim[1].expected: true or false"),
        ('expected = "true"', "", "claim[1].expected: a text"),
        ("TEAM-1", "team 1", "claim[1].id: capitals"),
        ("statement", "statment", "claim[1].statment: unknown"),
        ('"kill"', '"kil"', "claim[1].scenario.schedule[1]: unknown fault"),
        ("[claim.scenario]", "[claim.scenery]", "claim[1].scenery: unknown"),
        ("[[claim]]", "[[claim", "not valid TOML"),
        (
            'expected = "true"',
            'expected = "true"\nholds_when = "lost"',
            "claim[1].holds_when: held or violated",
        ),
        (
            'expected = "true"',
            'expected = "true"\nholds_when = "violated"',
            "claim[1].scenario: Scenario.requires",
        ),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, GOOD.replace(old, new))
    assert says in str(error.value)
    assert "claims.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml: cannot be read"):
        team_file.read(tmp_path / "nowhere.toml")


def test_the_example_of_the_documentation_is_a_right_file(tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.write_text(claims_example.text(), encoding="utf-8")
    assert [claim.id for claim in team_file.read(path)] == ["TEAM-1", "TEAM-2"]
