"""Learn a pattern inside my Trainer: one callback, and transformers' own loop does the rest.

    python examples/trainer.py [FOLDER]

The task is made up: does the second token of a row come back anywhere? The model starts from new weights, and sixty
steps are too few to solve it: what is shown is how a gate gets into a Trainer, and a pattern out of it.
"""

import sys
from pathlib import Path

import torch
from transformers import Trainer, TrainingArguments
from transformers.utils.logging import disable_progress_bar

from sparsebert import GateCallback, gates, load_model

LENGTH, WORDS, STEPS = 32, 60, 60

disable_progress_bar()
out = Path(sys.argv[1] if len(sys.argv) > 1 else "trainer")
generator = torch.Generator().manual_seed(0)
ids = torch.randint(5, WORDS, (512, LENGTH), generator=generator)
labels = (ids[:, 1:2] == ids[:, 2:]).any(1).long()
data = [{"input_ids": row, "labels": label} for row, label in zip(ids, labels, strict=True)]

model = load_model("scratch:tiny", "sequence_classification", vocab_size=WORDS, num_labels=2)
gate = gates.Structured(length=LENGTH, heads=2, sparsity=0.6)
arguments = TrainingArguments(
    str(out / "checkpoints"),
    max_steps=STEPS,
    per_device_train_batch_size=16,
    learning_rate=5e-4,
    save_steps=STEPS // 2,  # each checkpoint holds the gate too: train(resume_from_checkpoint=True) goes on with it
    logging_steps=20,
    report_to="none",
    disable_tqdm=True,
    use_cpu=not torch.cuda.is_available(),
    dataloader_pin_memory=torch.cuda.is_available(),
    seed=0,
)
Trainer(model=model, args=arguments, train_dataset=data, callbacks=[GateCallback(gate)]).train()

pattern = gate.freeze(sparsity=0.6)
print(f"\n{pattern.sparsity:.1%} of the positions are left out; the first head keeps")
print(pattern.picture())
model.set_pattern(pattern).save_pretrained(out / "model")
assert load_model(out / "model", "sequence_classification").pattern == pattern
print(f"the sparse model: {out / 'model'}")
