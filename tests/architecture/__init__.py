"""imports, the README's tree"""
