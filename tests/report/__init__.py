"""statistics, claims, tables, figures and the page, on synthetic studies where the truth is known"""
