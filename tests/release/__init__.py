"""how a wheel is checked, and what runs when the project is changed or released"""
