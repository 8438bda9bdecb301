"""What a reader sees: tables, figures, one HTML page, Markdown.

score_tables, loss_table, run_tables, figures (of a study, as data) -> page (with templates) | markdown
"""
