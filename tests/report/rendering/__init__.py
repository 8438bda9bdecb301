"""tables, figures and the page"""
