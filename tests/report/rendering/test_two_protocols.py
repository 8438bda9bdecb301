"""The page of both protocols says what each found, in one line a claim."""

from sparsebert.report.judging.findings import judge
from sparsebert.report.rendering.two_protocols import two_protocols
from tests.report.judging.test_endpoints import distilled
from tests.report.synthetic import World, make_study


def test_each_claim_has_both_verdicts_and_each_row_both_scores() -> None:
    mlm = make_study(World(seeds=5, tasks=("rte", "cola")))
    other = distilled(make_study(World(seeds=5, tasks=("rte", "stsb"))))
    page = two_protocols((mlm, judge(mlm)), (other, judge(other)))
    lines = page.splitlines()
    claims = [line for line in lines if line.startswith("| 6 |")]
    assert len(claims) == 1
    assert claims[0].count("reproduced") == 2
    assert "nats" in claims[0]
    assert "distance" in claims[0]
    assert "Of the nine claims 6 are decided" in page  # P is in files, which a study in memory has none of
    assert "Still open: 1, 2, 3." in page
    (star,) = (line for line in lines if line.startswith("| Star |"))
    assert star.split(" | ")[7].startswith("5")  # CoLA under mlm alone
    assert "/ – " in star.split(" | ")[7]  # noqa: RUF001 - the dash of an empty cell
    assert "(59.6)" in star
