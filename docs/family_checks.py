"""What the tables of docs/families.md say of a family, each tried on a small model with random weights.

A check gives the words of its cell. One that fails says so there, with what went wrong: nothing is asserted.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import AutoModelForSequenceClassification, PrinterCallback, Trainer, TrainingArguments

from sparsebert import load_model, patterns, sparsify
from sparsebert.errors import ModelError
from sparsebert.model.families import HEADS, class_for

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.3,
    "pad_token_id": 0,
}
SHORT = {"embedding_size": 16}
FAMILIES: dict[str, dict[str, Any]] = {
    "Bert": SIZES,
    "Roberta": SIZES,
    "XLMRoberta": SIZES,
    "Camembert": SIZES,
    "Electra": SIZES | SHORT,
    "Albert": SIZES | SHORT,
    "NomicBert": SIZES,
    "ModernBert": SIZES | {f"{name}_token_id": 0 for name in ("cls", "sep", "bos", "eos")},
    "DistilBert": {
        "vocab_size": 60,
        "dim": 32,
        "hidden_dim": 48,
        "n_layers": 2,
        "n_heads": 4,
        "initializer_range": 0.3,
    },
}
SHARED = patterns.star(16, 4)
OWN = patterns.per_layer([SHARED, patterns.window(16, radius=2)])
TOKENS = torch.randint(5, 60, (8, 16), generator=torch.Generator().manual_seed(0))
ROWS = [{"input_ids": row, "labels": number % 2} for number, row in enumerate(TOKENS)]
FAILED = "NO: "
_CHECKPOINT = 2  # the step that a training is resumed from; it ends after twice as many

_IN_A_NEW_PROCESS = """
import sys, sparsebert, torch
from pathlib import Path
from transformers import AutoModelForSequenceClassification
tokens = torch.load(sys.argv[2])
for folder in Path(sys.argv[1]).iterdir():
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        print("found", folder.name, model.pattern.digest, model(input_ids=tokens).logits.numpy().tobytes().hex())
"""
_WITHOUT_US = """
import sys, transformers
from pathlib import Path
for folder in Path(sys.argv[1]).iterdir():
    for name in ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification", f"{folder.name}Model"):
        try:
            getattr(transformers, name).from_pretrained(folder)
            print("\\nopened", folder.name)
        except Exception as error:
            print("\\nrefused", folder.name, " ".join(str(error).split()))
assert "sparsebert" not in sys.modules
"""


def dense(family: str) -> Any:
    """A model with a head for whole texts, the same whenever it is asked for."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family])
    return getattr(transformers, f"{family}ForSequenceClassification")(config).eval()


def sparse(family: str) -> Any:
    return sparsify(dense(family), SHARED)


@torch.no_grad()
def answers(model: Any) -> Tensor:
    found: Tensor = model.eval()(input_ids=TOKENS).logits
    return found


def cell(check: Callable[[str, Path], str], family: str, folder: Path) -> str:
    """What a check says of a family; folder: an empty one."""
    try:
        return check(family, folder)
    except Exception as error:  # whatever it is, the table shows it
        return f"{FAILED}{type(error).__name__}"


def layers(family: str, folder: Path) -> str:
    try:
        sparse(family).set_pattern(OWN)
    except ModelError:
        return "no: its layers share one module"
    return "yes"


def heads(family: str, folder: Path) -> str:
    missing = [head for head in HEADS if not _has(head, sparse(family).config)]
    return f"all but {', '.join(missing)}" if missing else "all"


def _has(head: str, config: Any) -> bool:
    try:
        class_for(head, config)
    except ModelError:
        return False
    return True


def new_process(family: str, folder: Path) -> str:
    """Saved, and opened by an Auto class elsewhere."""
    ((word, digest, bits),) = _told_elsewhere(_IN_A_NEW_PROCESS)[family]
    expected = answers(sparse(family)).numpy().tobytes().hex()
    return _said((word, digest, bits) == ("found", SHARED.digest, expected), "the same bits")


def without_us(family: str, folder: Path) -> str:
    """What transformers alone makes of the folder, by Auto classes and by the family's own."""
    told = [" ".join(words) for words in _told_elsewhere(_WITHOUT_US)[family]]
    named = [line for line in told if line.startswith("refused") and "needs the package sparsebert" in line]
    return _said(len(named) == len(told) == 4, "refuses")


@cache
def _told_elsewhere(code: str) -> dict[str, list[list[str]]]:
    """What a process of its own says of every family's folder: a word, and more of them."""
    told: dict[str, list[list[str]]] = {family: [] for family in FAMILIES}
    with tempfile.TemporaryDirectory() as place:
        for family in FAMILIES:
            sparse(family).save_pretrained(Path(place) / "models" / family)
        torch.save(TOKENS, Path(place) / "tokens.pt")
        command = [sys.executable, "-W", "ignore", "-c", code, f"{place}/models", f"{place}/tokens.pt"]
        env = {**os.environ, "HF_HUB_OFFLINE": "1"}  # a folder is all there is to open
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=env)
    for line in done.stdout.splitlines():
        if line.startswith(("found ", "refused ", "opened ")):
            word, family, *words = line.split()
            told[family].append([word, *words])
    return told


def placed(family: str, folder: Path) -> str:
    """Weights in many files, given a place by accelerate; then all of the encoder's left on disk."""
    model = sparse(family)
    model.save_pretrained(folder / "model", max_shard_size="20KB")
    assert (folder / "model" / "model.safetensors.index.json").is_file()
    load = AutoModelForSequenceClassification.from_pretrained
    whole = load(folder / "model", device_map="auto")
    places = {name: "disk" if part is model.base_model else "cpu" for name, part in model.named_children()}
    parted = load(folder / "model", device_map=places, offload_folder=folder / "off")
    assert "meta" in {parameter.device.type for parameter in parted.parameters()}
    same = torch.equal(answers(whole), answers(model)) and torch.allclose(answers(parted), answers(model), atol=1e-6)
    return _said(same and whole.pattern == parted.pattern == SHARED, "the same bits")


def resumed(family: str, folder: Path) -> str:
    """A Trainer that goes on from a checkpoint ends where one that never stopped ended."""
    straight = sparse(family)
    trainer(straight, folder / "straight", save_steps=_CHECKPOINT).train()
    checkpoint = folder / "straight" / f"checkpoint-{_CHECKPOINT}"
    again = load_model(checkpoint, "sequence_classification")
    went_on = not torch.equal(answers(again), answers(straight))
    trainer(again, folder / "again").train(resume_from_checkpoint=str(checkpoint))
    same = torch.equal(answers(again), answers(straight)) and again.pattern == straight.pattern == SHARED
    return _said(went_on and same, "the same bits")


def checkpointed(family: str, folder: Path) -> str:
    """Layers that run twice: a training ends with the same weights."""
    if not dense(family).supports_gradient_checkpointing:
        return "transformers has none for it"
    plain, twice = sparse(family), sparse(family)
    trainer(plain, folder).train()
    runs = _count_runs(twice)
    trainer(twice, folder, gradient_checkpointing=True).train()
    ran_twice = len(runs) > 2 * _CHECKPOINT
    return _said(ran_twice and torch.equal(answers(plain), answers(twice)), "the same bits")


def in_bfloat16(family: str, folder: Path) -> str:
    """Mixed precision has nearly the gradients of float32, and trains; weights in bfloat16 answer nearly the same."""
    model = sparse(family)
    model.save_pretrained(folder / "model")
    small = AutoModelForSequenceClassification.from_pretrained(folder / "model", dtype=torch.bfloat16)
    near = torch.allclose(answers(small).float(), answers(model), atol=0.1, rtol=0.1)
    plain, half = gradients(model, in_bf16=False), gradients(model, in_bf16=True)
    cosine = float(torch.nn.functional.cosine_similarity(plain, half, dim=0))
    alike = cosine > 0.99 and not torch.equal(plain, half)
    before = answers(model)
    trainer(model, folder, bf16=True).train()
    learned = not torch.allclose(answers(model), before) and model.pattern == small.pattern == SHARED
    return _said(near and alike and learned, "yes")


def gradients(model: Any, in_bf16: bool) -> Tensor:
    model.eval().zero_grad()  # eval: dropout draws otherwise in bfloat16
    with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
        model(input_ids=TOKENS, labels=torch.arange(len(TOKENS)) % 2).loss.backward()
    return torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])


def with_lora(family: str, folder: Path) -> str:
    """Adapters trained around a sparse model, saved apart, put onto it again."""
    sparse(family).save_pretrained(folder / "model")
    model = load_model(folder / "model", "sequence_classification")
    inside = {id(part) for part in model.base_model.modules() if isinstance(part, torch.nn.Linear)}
    linear = [name for name, part in model.named_modules() if id(part) in inside]
    torch.manual_seed(0)
    model = get_peft_model(model, LoraConfig(target_modules=linear, r=2, task_type="SEQ_CLS"))
    before = answers(model)
    trainer(model, folder / "run", learning_rate=0.1).train()
    model.save_pretrained(folder / "adapter")
    fresh = load_model(folder / "model", "sequence_classification")
    back = PeftModel.from_pretrained(fresh, str(folder / "adapter"))
    learned = not torch.allclose(before, answers(model))
    same = torch.equal(answers(back), answers(model)) and back.get_base_model().pattern == SHARED
    return _said(learned and same, "the same bits")


def trainer(model: Any, folder: Path, save_steps: int | None = None, **settings: Any) -> Trainer:
    saving: dict[str, Any] = {"save_strategy": "no"} if save_steps is None else {"save_steps": save_steps}
    arguments = TrainingArguments(
        str(folder),
        max_steps=2 * _CHECKPOINT,
        per_device_train_batch_size=4,
        report_to="none",
        use_cpu=True,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        logging_strategy="no",
        **{"learning_rate": 1e-2} | saving | settings,
    )
    quiet = Trainer(model=model.train(), args=arguments, train_dataset=ROWS)
    quiet.remove_callback(PrinterCallback)
    return quiet


def _count_runs(model: Any) -> list[Any]:
    """Fills up with one entry for each run of the first feed-forward layer."""
    runs: list[Any] = []
    inner = next(
        part for name, part in model.base_model.named_modules() if isinstance(part, torch.nn.Linear) and "layer" in name
    )
    inner.register_forward_hook(lambda *_: runs.append(None))
    return runs


def _said(holds: bool, words: str) -> str:
    return words if holds else f"{FAILED}another result"
