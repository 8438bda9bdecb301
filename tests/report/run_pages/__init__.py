"""pages of single runs"""
