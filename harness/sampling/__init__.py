"""Telemetry of GPUs, engine, processes and host, sampled in a process of its own."""
