"""What the paper printed: tables as data, keyed by the names of their groups, rows and columns."""

from collections.abc import Mapping

HANDMADE = {
    "strided": "Strided",
    "fixed": "Fixed",
    "longformer": "Longformer",
    "log_sparse": "LogSparse",
    "big_bird": "BigBird",
    "star": "Star",
}
# The three classes that the paper sorts patterns into; the third is the learned ones.
NEIGHBOURS_ONLY = ("strided", "fixed", "log_sparse")
NEIGHBOURS_AND_GLOBALS = ("big_bird", "longformer", "star")
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)

PrintedRow = Mapping[str, float]  # column -> number
PrintedTable = Mapping[str, Mapping[str, PrintedRow]]  # group -> row -> its numbers


def _table(columns: tuple[str, ...], groups: Mapping[str, Mapping[str, tuple[float, ...]]]) -> PrintedTable:
    return {
        group: {name: dict(zip(columns, row, strict=False)) for name, row in rows.items()}
        for group, rows in groups.items()
    }


GLUE_COLUMNS = ("mnli-m", "mnli-mm", "qqp", "qnli", "sst2", "cola", "stsb", "mrpc", "rte")
GLUE = _table(
    (*GLUE_COLUMNS, "average"),
    {
        "Development set": {
            "dense": (85.4, 85.8, 88.2, 91.5, 92.9, 62.1, 88.8, 90.4, 69.0, 83.8),
            "random-drop": (84.6, 85.2, 87.7, 91.1, 92.7, 62.0, 88.9, 89.3, 68.9, 83.4),
            "no-diagonal": (85.6, 85.9, 88.2, 92.0, 93.8, 63.1, 89.2, 91.2, 67.9, 83.9),
        },
        "Test set": {
            "devlin": (84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4, 79.6),
            "dense": (84.8, 84.1, 71.3, 90.9, 93.4, 52.3, 85.3, 88.3, 66.9, 79.7),
            "random-drop": (84.5, 83.5, 70.3, 91.1, 93.4, 52.0, 85.8, 87.4, 66.7, 79.4),
            "no-diagonal": (85.5, 84.9, 71.3, 91.1, 93.4, 53.3, 86.3, 88.9, 67.9, 80.3),
        },
    },
)
SWAG_COLUMNS = ("swag", "squad1/exact", "squad1", "squad2/exact", "squad2")
SWAG = _table(
    SWAG_COLUMNS,
    {
        "": {
            "devlin": (81.6, 80.8, 88.5),
            "dense": (82.5, 79.7, 87.1, 72.9, 75.5),
            "random-drop": (81.6, 79.7, 87.0, 71.5, 74.2),
            "no-diagonal": (83.5, 80.3, 87.9, 73.2, 75.9),
        }
    },
)
PATTERNS = _table(
    ("sparsity", *GLUE_COLUMNS, "average"),
    {
        "Hand-made": {
            "Strided": (70.4, 81.9, 81.9, 87.1, 89.0, 91.7, 58.4, 86.6, 86.1, 52.7, 79.5),
            "Fixed": (72.7, 81.4, 81.8, 86.4, 88.1, 91.3, 54.2, 85.9, 88.7, 59.2, 79.7),
            "Longformer": (88.7, 80.5, 81.0, 86.8, 88.4, 91.8, 57.9, 86.9, 81.7, 65.3, 80.1),
            "LogSparse": (89.8, 77.9, 78.2, 85.9, 84.6, 92.0, 58.5, 83.2, 82.0, 58.8, 77.9),
            "BigBird": (93.2, 80.2, 80.1, 86.4, 87.6, 91.6, 54.3, 84.7, 84.1, 66.0, 79.4),
            "Star": (96.1, 79.1, 79.0, 86.2, 86.4, 91.2, 59.6, 84.7, 83.9, 60.3, 78.9),
        },
        "Learned, unstructured": {
            "DAM_u λ=0.0001": (78.9, 82.2, 82.6, 87.3, 89.7, 92.4, 57.3, 86.5, 89.2, 70.8, 82.0),
            "DAM_u λ=0.001": (79.2, 82.2, 82.4, 87.1, 89.5, 92.3, 57.2, 86.2, 89.1, 67.9, 81.6),
            "DAM_u λ=0.01": (79.8, 81.7, 82.3, 86.8, 89.4, 92.1, 57.2, 86.1, 89.0, 67.1, 81.3),
            "DAM_u λ=0.1": (85.8, 81.4, 82.2, 86.5, 89.1, 92.1, 56.6, 84.4, 88.3, 66.8, 80.8),
        },
        "Learned, structured": {
            "DAM_s λ=0.0001": (91.2, 81.7, 81.7, 87.0, 88.3, 92.5, 59.4, 86.7, 88.4, 63.2, 80.9),
            "DAM_s λ=0.001": (91.6, 81.0, 81.2, 86.9, 88.0, 92.4, 58.6, 86.2, 85.7, 62.8, 80.3),
            "DAM_s λ=0.01": (91.7, 81.1, 80.9, 86.9, 87.9, 92.3, 57.9, 84.8, 85.4, 61.0, 79.8),
            "DAM_s λ=0.1": (93.5, 80.9, 81.0, 86.7, 87.7, 92.2, 57.7, 84.8, 85.2, 59.9, 79.6),
        },
    },
)
ABLATION = _table(
    ("sparsity with", "average with", "sparsity without", "average without"),
    {
        "Hand-made": {
            "Strided": (70.4, 79.5, 71.2, 80.2),
            "Fixed": (72.7, 79.7, 73.4, 79.6),
            "Longformer": (88.7, 80.1, 89.5, 80.1),
            "LogSparse": (89.8, 77.9, 90.6, 77.8),
            "BigBird": (93.2, 79.4, 93.9, 79.5),
            "Star": (96.1, 78.9, 96.9, 78.6),
        },
        "Learned": {"DAM_s λ=0.0001": (90.4, 80.5, 91.2, 80.9), "DAM_s λ=0.1": (92.7, 79.3, 93.5, 79.6)},
    },
)
# Columns: GLUE, SWAG, SQuAD v1.1, SQuAD v2.0.
SETTINGS = {
    "Batch size": ("32", "16", "32", "48"),
    "Weight decay": ("0.1, 0.01",) * 4,
    "Warm-up share": ("0.1",) * 4,
    "Learning rate decay": ("linear",) * 4,
    "Epochs": ("3", "3", "3", "2"),
    "Learning rate": ("1e-5 to 5e-5",) * 4,
}
