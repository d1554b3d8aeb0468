"""Conversations with servers outside the load: the only way, and a bounded one."""

from harness.client.answer import REFUSALS, Answer
from harness.client.client import Client
from harness.client.limits import Limits
from harness.client.look_up import LookUp

__all__ = ["REFUSALS", "Answer", "Client", "Limits", "LookUp"]
