"""Chooses which sizes of a scenario a run takes: those for a GPU, or for a CPU."""

from harness.engines.start.gpus import chosen_gpus
from harness.host.nvml import gpu_names
from harness.run.setup.options import RunOptions
from harness.spec.scenario import Profile


def profile_of(options: RunOptions) -> Profile:
    """Goes by the device that was asked for, else by whether there is an NVIDIA GPU that is not hidden."""
    if options.profile != "auto":
        return options.profile
    if options.device != "auto":
        return "cpu" if options.device == "cpu" else "gpu"
    return "gpu" if chosen_gpus(1, options.gpus) and gpu_names() else "cpu"
