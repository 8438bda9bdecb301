"""attempt(): what a worker does with a job, whichever engine handed it out."""

import traceback

from sparsebert.errors import RunInterruptedError, SparseBertError
from sparsebert.studies.jobs import Job, JobResult


def attempt(job: Job) -> JobResult:
    """Make the run in this process; an error is an outcome, so that one bad run does not end the others."""
    from sparsebert.studies.make_run import make

    try:
        make(job)
    except RunInterruptedError as error:
        return JobResult(job.run.id, str(error), is_interrupted=True)
    except SparseBertError as error:
        return JobResult(job.run.id, str(error))
    except Exception:
        return JobResult(job.run.id, traceback.format_exc())
    return JobResult(job.run.id)
