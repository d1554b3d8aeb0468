"""Engines and weights of a run, on this machine before anything is measured."""

from harness.engines.cache import Say
from harness.engines.containers.launch import provide_image
from harness.engines.install import install_engine, needs_install
from harness.engines.models import ensure_weights
from harness.run.prepare import Prepared


def provide(prepared: Prepared, say: Say) -> None:
    """Engines and weights before the first measurement: a failed download costs no measured cell."""
    for ref, launch, track in zip(prepared.backends, prepared.launches, prepared.tracks, strict=True):
        environment = None
        if launch.mode == "compose":
            provide_image(ref.definition, launch.device, say)
        elif launch.mode == "process" and needs_install(ref.definition):
            environment = install_engine(ref.definition, say)
        if track is not None:
            ensure_weights(prepared.model_name, prepared.model, track, environment, say)
