"""parity with transformers, saving, loading, hostile folders"""
