"""Run folders to tables, figures, findings and one page."""
