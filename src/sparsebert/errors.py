"""One error family: every message says what was found, what was expected, and what to do."""


class SparseBertError(Exception):
    """Anything the user can put right; the command line prints it as one sentence and leaves with its exit code."""

    exit_code = 2


class FileError(SparseBertError):
    """A file that is missing, damaged, unreadable or cannot be written."""


class PatternError(SparseBertError):
    """A pattern that does not fit its input, its parameters or its file."""


class AttentionError(SparseBertError):
    """Tensors that attend() cannot take, or a backend that cannot do what was asked."""


class LayerError(SparseBertError):
    """A layer that cannot be made int8, or rows that it cannot take."""


class TheoryError(SparseBertError):
    """A construction of the theorem that cannot be built or checked with the numbers asked for."""


class GateError(SparseBertError):
    """A gate that does not fit the model, or settings it cannot be trained with."""


class ModelError(SparseBertError):
    """A model folder or a model that cannot be used."""


class CorpusError(SparseBertError):
    """Text or a token store that cannot be used; names the file and the line."""


class TaskError(SparseBertError):
    """A task file or prediction that cannot be used; names the file, the line and the column."""


class ConfigError(SparseBertError):
    """A setting that is unknown, out of range, or differs from the run being resumed."""


class TrainingError(SparseBertError):
    """A run that had to stop; names the step."""


class RunInterruptedError(SparseBertError):
    """A signal ended a run after its checkpoint was written; the exit code is the shell's for that signal."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class MissingExtraError(SparseBertError):
    """An optional package is needed; names the extra that brings it."""


class StudyError(SparseBertError):
    """A study that cannot be run as asked, or some of whose runs failed; names them."""
