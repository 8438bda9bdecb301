"""Run folders to tables, figures, findings and one page that needs nothing but itself.

study (reads the folder) -> pairs, claims, findings (what is shown) -> page_html | markdown
                         -> tables, figures          (what is seen) ->
"""
