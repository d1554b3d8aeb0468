"""How exact this client is on this machine, found out with a server whose every write time is known."""
