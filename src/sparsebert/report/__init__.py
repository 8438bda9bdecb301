"""Study folders to tables, figures, findings and one page that needs nothing but itself.

sparsebert.studies.results (reads the folder) -> judging (what is shown) -> rendering (what is seen) -> writing
"""
