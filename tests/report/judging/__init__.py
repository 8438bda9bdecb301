"""statistics, rows and claims"""
