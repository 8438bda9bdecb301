"""The same runs on a Ray cluster: a local one, or an existing one by its address.

Every node must see the study folder under the same path, and have sparsebert installed. Ray runs a job again when its
worker or node is lost; the run then goes on from its last checkpoint, because the folder outlives the worker.
"""

import contextlib
import logging
import os
from typing import Any

from sparsebert.errors import MissingExtraError, StudyError
from sparsebert.studies.attempts import attempt
from sparsebert.studies.jobs import Job, JobResult

RETRIES = 3  # of a job whose worker or node is lost
LOCAL = {  # a cluster of this machine alone; Ray reads both while it is imported and started
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system, despite its name: listen on loopback only
    "RAY_USAGE_STATS_ENABLED": "0",  # report to no one
}


class RayEngine:
    """One Ray task a run, each with the processors it computes with."""

    def __init__(self, address: str | None, workers: int, threads: int, gpus: float = 0.0) -> None:
        if address is None:
            for name, value in LOCAL.items():
                os.environ.setdefault(name, value)
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("the ray engine needs an extra package; pip install 'sparsebert[ray]'") from error
        self.ray: Any = ray
        self.threads, self.gpus = threads, gpus
        self._connect(address, workers)
        self.task = ray.remote(attempt).options(num_cpus=threads, num_gpus=gpus, max_retries=RETRIES)
        self.running: dict[Any, str] = {}  # reference to run id

    def _connect(self, address: str | None, workers: int) -> None:
        common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            self.ray.init(num_cpus=workers * self.threads, include_dashboard=False, **common)
            return
        try:
            self.ray.init(address=address, **common)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise StudyError(
                f"there is no Ray cluster at {address} ({error}); start one with: ray start --head"
            ) from error

    def slots(self) -> int:
        """As many as the cluster holds now; asked each time, because a cluster may grow."""
        have = self.ray.cluster_resources()
        by_cpu = int(have.get("CPU", 0)) // self.threads
        return max(1, min(by_cpu, int(have.get("GPU", 0) / self.gpus)) if self.gpus else by_cpu)

    def submit(self, job: Job) -> None:
        self.running[self.task.remote(job)] = job.run.id

    def wait(self) -> JobResult:
        done, _ = self.ray.wait(list(self.running), num_returns=1)
        run_id = self.running.pop(done[0])
        try:
            outcome: JobResult = self.ray.get(done[0])
        except self.ray.exceptions.RayError as error:
            return JobResult(run_id, f"Ray lost it more than {RETRIES} times ({type(error).__name__})")
        return outcome

    def close(self, *, at_once: bool = False) -> None:
        if at_once:
            for reference in self.running:
                with contextlib.suppress(self.ray.exceptions.RayError):
                    self.ray.cancel(reference)
        self.ray.shutdown()
