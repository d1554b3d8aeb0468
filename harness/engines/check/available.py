"""What this machine has that engines need, found out without downloading, starting or creating anything."""

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from harness.engines.provide.fitness import free_bytes, unfit
from harness.engines.provide.install import installed
from harness.engines.provide.shared_folders import Say
from harness.engines.speak.access import access_of
from harness.engines.speak.server import Server
from harness.engines.start import orphans
from harness.engines.start.command import HOST
from harness.engines.start.containers.compose_tool import find_compose
from harness.engines.start.containers.daemon import Daemon
from harness.engines.start.containers.images import check_offered
from harness.engines.start.gpus import await_free, chosen_gpus, gpu_uses, in_use
from harness.engines.start.launch_choice import has_device
from harness.engines.start.ports import check_port
from harness.errors import SetupError
from harness.host import nvml, paths
from harness.spec.backend import Backend, BackendRef


class Machine:
    """Methods called `check_…` raise SetupError for what is not here.

    With `say`, a GPU in use is waited for as at the start of an engine; without, it is reported at once.
    """

    def __init__(
        self,
        say: Say | None = None,
        *,
        gpu_wait_s: float = 0.0,
        gpus: Sequence[str] = (),
        host: str = HOST,
    ) -> None:
        self._say, self._gpu_wait_s, self._gpus = say, gpu_wait_s, gpus
        self._host = host

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ

    @cached_property
    def _daemon(self) -> Daemon:
        daemon = Daemon()
        daemon.check_here()
        return daemon

    def check_compose(self) -> None:
        find_compose()

    def check_docker(self) -> None:
        assert self._daemon

    def check_image(self, definition: Backend, device: str) -> None:
        check_offered(self._daemon, definition, device)

    def has_device(self, device: str) -> bool:
        return has_device(device)

    def chosen_gpus(self, count: int) -> list[str]:
        return chosen_gpus(count, self._gpus)

    def gpu_count(self) -> int | None:
        """NVIDIA GPUs; None: not known."""
        return nvml.gpu_count()

    def cuda_version(self) -> int | None:
        """Major version that the driver knows; None: not known."""
        return nvml.cuda_version()

    def gpu_fault(self, gpus: Sequence[str]) -> str | None:
        """Says why the driver cannot use these NVIDIA GPUs; None: it can, or it is not known."""
        return nvml.fault(gpus)

    def gpu_memory_bytes(self, gpus: Sequence[str]) -> int | None:
        """The memory of these NVIDIA GPUs together; None: not known."""
        return nvml.memory_bytes(gpus)

    def check_gpus_free(self, gpus: Sequence[str]) -> None:
        if orphans.stale():  # stopped before the first engine starts
            return
        if self._say:
            await_free(gpus, self._gpu_wait_s, self._say)
        elif isinstance(uses := gpu_uses(gpus), list) and uses:
            raise in_use(gpus, uses)

    def check_port(self, port: int) -> None:
        if not orphans.stale():
            check_port(self._host, port)

    def check_server(self, ref: BackendRef, url: str) -> None:
        server = Server(ref.definition, url, ref.reach.served_name or "", access_of(ref.reach))
        try:
            server.check_reachable(is_behind=bool(ref.metrics_urls))
        finally:
            server.close()

    def has_program(self, name: str) -> bool:
        return shutil.which(name) is not None

    def is_installed(self, definition: Backend) -> bool:
        return installed(definition) is not None

    def unfit(self, definition: Backend) -> list[SetupError]:
        """The reasons no environment of it can be made or used here."""
        return list(unfit(definition, built=self.is_installed(definition)))

    def folder_bytes(self, path: str, pattern: str) -> int:
        """The size of the files with such a name in a folder; 0: there is none."""
        return sum(file.stat().st_size for file in Path(path).glob(pattern) if file.is_file())

    def has_file(self, path: str) -> bool:
        return paths.entry(Path(path)) is not None

    @property
    def cache(self) -> Path:
        return paths.cache_dir()

    def cache_free_bytes(self) -> int | None:
        """Bytes free on the file system where the cache is, or will be; None where it cannot be written."""
        return free_bytes(self.cache)
