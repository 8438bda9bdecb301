from sparsebert.patterns.figures import save_figure
from sparsebert.theory.audit import audit
from sparsebert.theory.figures import approximation_figure, audit_figure, shifts_figure
from sparsebert.theory.grid import Grid


def test_the_shifts_are_labelled_with_exact_contexts():
    figure = shifts_figure(Grid(6, 1, 9), [0, 2, 3, 5, 6, 8])
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len({label.split("→")[1] for label in labels}) == 6


def test_the_audit_names_every_checked_claim_and_counts_failures(tmp_path):
    findings = audit(3, 1, 4)
    figure = audit_figure(findings)
    shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert shown == [finding.claim for finding in findings if finding.verdict != "not checked"]
    save_figure(figure, tmp_path / "audit.svg")
    assert (tmp_path / "audit.svg").stat().st_size < 300_000


def test_the_errors_are_drawn_with_their_slopes(tmp_path):
    part = {"target": "linear", "width": 1, "p": 2.0, "resolutions": [2, 4], "errors": [0.4, 0.2], "last_slope": 1.0}
    sharp = {"target": "linear", "resolution": 3, "p": 2.0, "scales": [4, 40], "hardmax": 0.1}
    study = {
        "delta": [{**part, "marked": True}, {**part, "marked": False, "width": 2}],
        "sharpness": {**sharp, "errors": {"0.1": [0.5, 0.2]}},
        "floor_without_positions": 0.15,
    }
    figure = approximation_figure(study)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == ["linear, p = 2: slope 1.00"]
    save_figure(figure, tmp_path / "errors.svg")
