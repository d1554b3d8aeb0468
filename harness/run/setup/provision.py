"""Brings engines and weights to this machine before anything is measured."""

from harness.engines.check.available import Machine
from harness.engines.check.preflight import require
from harness.engines.provide.install import install_engine, needs_install
from harness.engines.provide.models import ensure_weights
from harness.engines.provide.shared_folders import Say
from harness.engines.start.containers.compose_launch import provide_image
from harness.run.setup.prepare import Prepared


def check_machine(prepared: Prepared, say: Say, *, anyway: bool = False, resumed: bool = False) -> None:
    """Raises SetupError that lists everything the engines need and this machine lacks."""
    options = prepared.options
    machine = Machine(say, gpu_wait_s=options.gpu_wait_s, gpus=options.gpus)
    require(prepared.engines, machine, anyway=anyway, resumed=resumed)


def provide(prepared: Prepared, say: Say) -> None:
    """Installs engines and fetches weights. Done first, so that a failed download costs no measured cell."""
    for backend in prepared.backends:
        definition, launch, environment = backend.ref.definition, backend.launch, None
        if launch.mode == "compose":
            provide_image(definition, launch.device, say)
        elif launch.mode == "process" and needs_install(definition):
            environment = install_engine(definition, say)
        if backend.track is not None:
            ensure_weights(prepared.model_name, prepared.model, backend.track, environment, say)
