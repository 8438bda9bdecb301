"""every backend against the float64 oracle"""
