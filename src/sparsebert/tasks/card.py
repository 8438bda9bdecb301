"""The model card: what the folder is, how good it is, how sparse, and the command that makes it again."""

from typing import Any

from sparsebert.model.heads import pattern_of
from sparsebert.tasks.table import Task

_PIPELINES = {
    "classification": "text-classification",
    "regression": "text-classification",
    "choice": None,
    "span": "question-answering",
}


def model_card(task: Task, model: Any, result: dict[str, Any], command: str | None) -> str:
    pattern = pattern_of(model)
    sparsity = "0 % (every token attends to every token)" if pattern is None else f"{100 * pattern.sparsity:.2f} %"
    figures = "\n".join(f"| {name} | {value:.2f} |" for name, value in sorted(result["metrics"].items()))
    made = "" if command is None else f"\n## Made by\n```\n{command}\n```\n"
    described = "" if pattern is None else f"\nPattern: `{pattern!r}`, saved with the weights.\n"
    return f"""---
library_name: transformers
tags: [sparsebert, sparse-attention, {task.name}]
---
# {task.title}, fine-tuned under a sparse attention pattern

- Task: {task.title} (`{task.name}`)
- Metric: {result["metric"]} on the development set, {result["score"]:.2f} points
- Sparsity of attention: {sparsity}
{described}
| metric (development set) | points |
|---|---|
{figures}

## Use
{_usage(task)}
{made}"""


def _usage(task: Task) -> str:
    pipeline = _PIPELINES[task.kind]
    by_hand = "`sparsebert predict THIS_FOLDER` reads standard input, or a file that it is given."
    if pipeline is None:
        return by_hand
    call = f'import sparsebert\nfrom transformers import pipeline\nmodel = pipeline("{pipeline}", model="THIS_FOLDER")'
    return f"```python\n{call}\n```\n{by_hand}"
