"""what is judged and what is shown, on synthetic studies where the truth is known"""
