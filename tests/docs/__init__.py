"""code, commands and links of the README and the docs: run, or held against what is really there"""
