"""Starts of engines, as a process or in a container, from the command to the first text.

`launch_choice` decides which way, `process_launch` and `containers.compose_launch` go it, `ready` and
`smoke_test` wait for the server, and `orphans` clears what a killed run left.
"""
