"""Chooses which sizes of a scenario a run takes: those for a GPU, or for a CPU."""

from urllib.parse import urlsplit

from harness.engines.start.gpus import chosen_gpus
from harness.host.address import is_own
from harness.host.nvml import gpu_names
from harness.run.setup.options import RunOptions
from harness.spec.backend_refs import parse_backend_list
from harness.spec.scenario import Profile


def profile_of(options: RunOptions) -> Profile:
    """Goes by the device that was asked for, else by whether there is an NVIDIA GPU that is not hidden.

    Servers on other machines get the sizes for a GPU: this machine says nothing of theirs, and prompts that
    are too short look like an answer.
    """
    if options.profile != "auto":
        return options.profile
    if options.device != "auto":
        return "cpu" if options.device == "cpu" else "gpu"
    if _elsewhere(options):
        return "gpu"
    return "gpu" if chosen_gpus(1, options.gpus) and gpu_names() else "cpu"


def _elsewhere(options: RunOptions) -> bool:
    servers = [ref.urls for ref in parse_backend_list(options.backends, own=options.variants)]
    hosts = [urlsplit(url).hostname or "" for urls in servers for url in urls]
    return all(servers) and not any(map(is_own, hosts))
