"""Auto classes and sparsebert, whichever is imported first."""

import subprocess
import sys

import pytest

_LOADS = (
    "from transformers import AutoConfig; c = AutoConfig.for_model('sparsebert'); print(type(c).__name__, c.model_type)"
)


@pytest.mark.parametrize(
    "before",
    [
        "import sparsebert; from transformers import BertModel",
        "from transformers import BertModel; import sparsebert",
    ],
)
def test_auto_classes_know_sparsebert_whatever_was_imported_first(before: str) -> None:
    program = f"import warnings; warnings.simplefilter('ignore'); {before}; {_LOADS}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["SparseBertConfig", "sparsebert"], done.stderr
