"""A resumed training goes on under the pattern of its checkpoint, or not at all.

The Trainer of transformers, and that of sentence-transformers, loads a checkpoint's weights into the model it was
given, whatever that runs under. So each of them gets one more of its default callbacks, which notes the pattern in
trainer_state.json and compares it there. A training that never was sparse has no such note.
"""

from types import ModuleType
from typing import Any

from transformers import TrainerCallback

from sparsebert.errors import ModelError
from sparsebert.model.plan import plan_of
from sparsebert.model.sentence_models import encoder_of
from sparsebert.patterns import Pattern


class PatternGuard(TrainerCallback):
    """Refuses to resume under another pattern than the checkpoint's."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        noted, used = state.stateful_callbacks.get(_NAME), _note(kwargs["model"])
        if state.global_step > 0 and _digest(noted) != _digest(used):
            raise ModelError(
                f"the checkpoint of step {state.global_step} was trained {_told(noted)}, but the model runs "
                f"{_told(used)}; give it the checkpoint's (sparsify(model, Pattern.load('pattern.safetensors')), or "
                "unsparsify(model) for none), or start from its weights with load_model and a new output_dir"
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        note = _note(kwargs["model"])
        state.stateful_callbacks.pop(_NAME, None)
        if note is not None:
            state.stateful_callbacks[_NAME] = note


_NAME = PatternGuard.__name__


def _note(model: Any) -> dict[str, Any] | None:
    """What is written of the model's pattern, in the shape that the Trainer has for states of callbacks."""
    while hasattr(model, "get_base_model"):  # peft's, around ours
        model = model.get_base_model()
    plan = plan_of(encoder_of(model))
    pattern: Pattern | None = None if plan is None else plan.pattern
    if pattern is None:
        return None
    return {"args": {}, "attributes": {"digest": pattern.digest, "sparsity": round(pattern.sparsity, 4)}}


def _digest(note: dict[str, Any] | None) -> str | None:
    return None if note is None else str(note["attributes"]["digest"])


def _told(note: dict[str, Any] | None) -> str:
    if note is None:
        return "without a pattern"
    return f"under the pattern {_digest(note):.8} (sparsity {note['attributes']['sparsity']:.2%})"


def guard(trainer: ModuleType) -> None:
    """Let every Trainer made from now on compare patterns."""
    if PatternGuard not in trainer.DEFAULT_CALLBACKS:
        trainer.DEFAULT_CALLBACKS.append(PatternGuard)
