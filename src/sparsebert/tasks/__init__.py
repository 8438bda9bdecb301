"""GLUE, SWAG and SQuAD under any pattern: readers, heads, metrics, prediction and submission files.

table (a task is data) -> files (strict) -> encoding (tokens) -> objective, scoring -> folder -> prediction, submission
"""

from sparsebert.tasks.table import GLUE, TASKS, Task, find_task

__all__ = ["GLUE", "TASKS", "Task", "find_task"]
