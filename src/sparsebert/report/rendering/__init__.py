"""What a reader sees: tables, figures, one HTML page, Markdown.

score_tables, loss_table, run_tables -> tables \
figures (charts and pictures of a study)      -> page_html | markdown
"""
