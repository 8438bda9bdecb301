"""From settings to run folders, one module a kind of run."""
