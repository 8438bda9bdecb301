"""Official files of the tasks, and rows to predict, read strictly: every problem is named with its place."""
