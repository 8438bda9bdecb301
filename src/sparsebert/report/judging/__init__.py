"""What a study shows of the paper's claims: rows of runs, paired differences, and a verdict by a stated test.

rows, importance (which runs) -> samples, statistics (how much) -> claims, claims_in_words -> findings
"""
