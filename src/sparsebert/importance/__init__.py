"""How much every entry matters, once it is learned: P and trained attention maps, summed up, saved and drawn.

values (heads n n) -> categories (which kinds of entries) | averages (heat, sketch, profile) -> saved, figures
"""
