"""builders, algebra, files, pictures"""
