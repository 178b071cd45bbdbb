"""The ledger: every entry is verified, and an entry that cannot be stops the build."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepseek_edu.site.claims import Use, ledger_page, load_ledger, verified_ledger, verify
from deepseek_edu.site.errors import SourceError
from tests.site_build import ROOT

GOOD = """\
[one]
text = "It is {value}."
label = "code"
source = "S"
value = 15
check = "deepseek_edu.claims.fp4.distinct_levels"
"""


def ledger(folder: Path, text: str) -> Path:
    (folder / "course").mkdir()
    (folder / "course" / "claims.toml").write_text(text, encoding="utf-8")
    return folder


def test_every_claim_of_the_course_is_verified() -> None:
    verified = verified_ledger(ROOT)
    assert len(verified) >= 20
    assert all(claim.verified_by for claim in verified.values())


def test_the_text_gets_the_verified_value(tmp_path: Path) -> None:
    claim = verified_ledger(ledger(tmp_path, GOOD))["one"]
    assert claim.text == "It is 15."


@pytest.mark.parametrize(
    ("old", "new", "found", "allowed"),
    [
        ('label = "code"', 'label = "codes"', "the label 'codes'", "did you mean code?"),
        ('source = "S"\n', "", "no source", "text, label and source"),
        ('source = "S"', 'sauce = "S"', "unknown key sauce", "did you mean source?"),
        ("value = 15", "value = 16", "value 16, but deepseek_edu.claims.fp4.distinct_levels returns 15", "the value"),
        ("value = 15", 'value = "15"', "value '15'", "the value"),
        ("fp4.distinct_levels", "fp4.distinct", "the check deepseek_edu.claims.fp4.distinct", "module.function"),
        ("{value}", "{other}", "the text", "{value}"),
        ('check = "deepseek_edu.claims.fp4.distinct_levels"', "", "no way to verify it", "check, run"),
        ('label = "code"', 'label = "measured"', "measured without a run", "record of their run"),
        ("[one]", "[One_Claim]", "the id 'One_Claim'", "lower-case"),
    ],
)
def test_a_malformed_or_failing_claim_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, found: str, allowed: str
) -> None:
    assert old in GOOD
    root = ledger(tmp_path, "# a comment\n\n" + GOOD.replace(old, new))
    with pytest.raises(SourceError) as error:
        for claim in load_ledger(root).values():
            verify(claim, root)
    assert (error.value.file, error.value.line) == ("course/claims.toml", 3)
    assert found in error.value.found
    assert allowed in error.value.allowed


def test_a_run_without_record_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    root = ledger(tmp_path, GOOD.replace('check = "deepseek', 'run = "fp4_eror"\ncheck = "deepseek'))
    with pytest.raises(SourceError, match="deepseek-edu run fp4_eror"):
        verified_ledger(root)


def test_true_is_not_one(tmp_path: Path) -> None:
    root = ledger(tmp_path, GOOD.replace("distinct_levels", "ties_go_to_even").replace("value = 15", "value = 1"))
    with pytest.raises(SourceError, match="returns True"):
        verified_ledger(root)


def test_the_ledger_page_has_an_anchor_a_source_and_links_back(tmp_path: Path) -> None:
    claims = verified_ledger(ledger(tmp_path, GOOD))
    page = ledger_page(claims, {"one": [Use("chapter.md", "A chapter")]})
    assert 'id="claim-one"' in page
    assert '<a href="chapter.html">A chapter</a>' in page
    assert "recomputed by <code>deepseek_edu.claims.fp4.distinct_levels</code>" in page


def test_what_only_its_source_can_know_is_said_so() -> None:
    claims = verified_ledger(ROOT)
    page = ledger_page(claims, {})
    section = page.split('id="claim-fp4-observed-magnitude"')[1].split("</section>")[0]
    assert "Not recomputed" in section
    assert "Verified" not in section


def test_a_chapter_keeps_its_claims_in_a_file_of_its_own(tmp_path: Path) -> None:
    root = ledger(tmp_path, GOOD)
    (root / "course" / "claims").mkdir()
    chapter = root / "course" / "claims" / "02_chapter.toml"
    chapter.write_text(GOOD.replace("[one]", "# of a chapter\n[two]"), encoding="utf-8")
    claims = verified_ledger(root)
    assert list(claims) == ["one", "two"]
    assert (claims["two"].file, claims["two"].line) == ("course/claims/02_chapter.toml", 2)
    chapter.write_text(GOOD, encoding="utf-8")
    with pytest.raises(SourceError, match=r"one entry; course/claims\.toml:1 has it") as error:
        load_ledger(root)
    assert error.value.file == "course/claims/02_chapter.toml"
