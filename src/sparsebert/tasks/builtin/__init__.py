"""`builtin:tasks`: tiny files in all eleven official layouts, from a seeded generator, with a signal to learn.

sentences (a row of a task) -> writing (its official files)
"""

from sparsebert.tasks.builtin.writing import BUILTIN, builtin_rows, write_builtin

__all__ = ["BUILTIN", "builtin_rows", "write_builtin"]
