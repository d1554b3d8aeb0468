"""Engines in containers: Compose starts them, the Docker API tells how they fare."""
