"""attempt(): what a worker does with a job, whichever engine handed it out."""

import traceback

from sparsebert.errors import RunInterruptedError, SparseBertError
from sparsebert.studies.jobs import Job, Outcome


def attempt(job: Job) -> Outcome:
    """Make the run in this process; an error is an outcome, so that one bad run does not end the others."""
    from sparsebert.studies.making import make

    try:
        make(job)
    except RunInterruptedError as error:
        return Outcome(job.run.id, str(error), is_interrupted=True)
    except SparseBertError as error:
        return Outcome(job.run.id, str(error))
    except Exception:
        return Outcome(job.run.id, traceback.format_exc())
    return Outcome(job.run.id)
