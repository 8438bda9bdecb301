"""Embeddings of texts: by the batch, in chunks, on disk."""
