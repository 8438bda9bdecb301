"""The one reader of `--set`, and what is checked before work."""

from pathlib import Path

import pytest

from sparsebert.cli.finetune import finetune
from sparsebert.cli.options import options_of, read_settings, require_file, require_folder
from sparsebert.errors import ConfigError, FileError
from sparsebert.settings import declared
from sparsebert.training import FitConfig

KNOWN = declared(FitConfig)


def test_settings_have_the_types_they_are_declared_with() -> None:
    pairs = ["warmup_steps=10", "betas=0.9,0.98", "tensorboard=yes", "max_grad_norm=2"]
    expected = {"warmup_steps": 10, "betas": (0.9, 0.98), "tensorboard": True, "max_grad_norm": 2.0}
    assert read_settings(pairs, KNOWN) == expected


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["warmup_steps"], "expected key=value"),
        (["=3"], "expected key=value"),
        (["warmup_steps=abc"], "warmup_steps is 'abc'; expected a whole number of at least 0"),
        (["warmup_step=3"], "did you mean warmup_steps"),
        (["seed=3"], "seed has an option of its own, --seed"),
        (["num_steps=3"], "num_steps has an option of its own, --steps"),
        (["epsilon=1", "epsilon=2"], "epsilon twice"),
    ],
)
def test_a_mistake_is_named(pairs: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_settings(pairs, KNOWN, {"seed": "--seed", "num_steps": "--steps"})


def test_options_of_a_command_are_read_from_its_signature() -> None:
    options = options_of(finetune, num_epochs="--epochs")
    assert options["learning_rate"] == "--learning-rate"
    assert options["num_epochs"] == options["epochs"] == "--epochs"
    assert options["task"] == "TASK"


def test_a_file_is_no_folder_and_a_folder_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    require_folder(tmp_path / "new" / "run")
    require_file(tmp_path / "new" / "pattern.safetensors")
    for path in ("file", "file/run"):
        with pytest.raises(FileError, match=f"--figures {tmp_path / path} must be a folder"):
            require_folder(tmp_path / path, "--figures")
    with pytest.raises(FileError, match="is a folder; --out names a file"):
        require_file(tmp_path)
    with pytest.raises(FileError, match="file is a file, so --out"):
        require_file(tmp_path / "file" / "pattern.safetensors")
