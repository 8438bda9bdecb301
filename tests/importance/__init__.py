"""categories, averages, files and figures, on planted values"""
