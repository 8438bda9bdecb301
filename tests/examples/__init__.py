"""every example runs and leaves what it promises"""
