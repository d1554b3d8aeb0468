"""Says how exact this client is on this machine, found out against a server whose every write time is
known.
"""
