"""imports; what is generated in the README and docs/tree.md"""
