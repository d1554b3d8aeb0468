"""Conversations with servers outside the load: the only way, and a bounded one."""
