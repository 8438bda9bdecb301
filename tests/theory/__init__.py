"""the construction, the audit, the approximator, the command"""
