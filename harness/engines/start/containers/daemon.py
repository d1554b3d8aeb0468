"""The Docker daemon, spoken to through Docker's own library, which is loaded on first use."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from harness.engines.provide.weights import HUB_TOKEN
from harness.errors import SetupError
from harness.host.address import is_loopback
from harness.host.helper_process import without_credentials

# Compose's own labels, and ours.
PROJECT = "com.docker.compose.project"
OURS = "llm-servebench."

_TIMEOUT_S = 60
_REFUSED = (401, 403, 404)


class NotOfferedError(SetupError):
    """The registry has answered, and does not give this image."""


class Daemon:
    """A connection. Every method raises SetupError when the daemon does not answer."""

    def __init__(self) -> None:
        import docker

        self.host = _host()
        with _answering(self.host):
            self.client: Any = (
                docker.DockerClient(base_url=self.host, timeout=_TIMEOUT_S)
                if self.host and "DOCKER_HOST" not in os.environ
                else docker.from_env(timeout=_TIMEOUT_S)
            )
            self.version: str = self.client.version()["Version"]

    def check_here(self) -> None:
        """Raises SetupError when it runs on another machine, whose loopback is not ours."""
        address = urlsplit(self.host or "")
        if address.scheme in ("tcp", "http", "https", "ssh") and not is_loopback(address.hostname or ""):
            raise SetupError(
                "this Docker runs on another machine",
                where=self.host,
                hint="run bench there, or start the engine there and attach with NAME=URL",
            )

    def environment(self) -> dict[str, str]:
        """Variables that make the Compose command speak to the same daemon."""
        environment = without_credentials(os.environ, keep=HUB_TOKEN)
        return {**environment, "DOCKER_HOST": self.host} if self.host else environment

    # What follows gives Docker's own JSON as it is.

    def image(self, name: str) -> dict[str, Any] | None:
        """The attributes of an image on this machine; None if it is not here."""
        import docker

        with _answering(self.host):
            try:
                return dict(self.client.api.inspect_image(name))
            except docker.errors.ImageNotFound:
                return None

    def offered(self, name: str) -> str:
        """The digest that the image's registry has for it now.

        Raises NotOfferedError with the registry's words, and SetupError where it cannot be asked.
        """
        import docker

        with _answering(self.host):
            try:
                found = self.client.api.inspect_distribution(name)
            except docker.errors.APIError as error:
                kind = NotOfferedError if error.status_code in _REFUSED else SetupError
                raise kind(str(error.explanation or error), where=name) from error
        return str(found["Descriptor"]["digest"])

    def pull(self, name: str) -> Iterator[dict[str, Any]]:
        """Docker's progress events; one with `error` where it fails."""
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(name)
        with _answering(self.host):
            yield from self.client.api.pull(repository, tag=tag or "latest", stream=True, decode=True)

    def provide_volume(self, name: str) -> None:
        """Made unless it is there. Compose would take it for that of the project which made it first."""
        with _answering(self.host):
            self.client.api.create_volume(name)

    def containers(self, *labels: str) -> dict[str, dict[str, str]]:
        """Ids and labels of those that have all `labels` (`NAME` or `NAME=VALUE`), running or not."""
        with _answering(self.host):
            containers = self.client.api.containers(all=True, filters={"label": list(labels)})
        return {container["Id"]: container["Labels"] for container in containers}

    def inspect(self, container_id: str) -> dict[str, Any] | None:
        """None when there is no such container (any more)."""
        import docker

        with _answering(self.host):
            try:
                return dict(self.client.api.inspect_container(container_id))
            except docker.errors.NotFound:
                return None

    def log(self, container_id: str, *, follow: bool, lines: int | None = None) -> Iterator[bytes]:
        """Both streams as they come; with `follow` until the container ends."""
        with _answering(self.host):
            stream = self.client.api.logs(
                container_id, stream=True, follow=follow, tail="all" if lines is None else lines
            )
            # The engine may be silent for hours.
            yield from stream

    def remove_project(self, project: str, *, grace_s: int) -> bool:
        """Removes its containers and network; named volumes are caches and stay.

        False when there was nothing. Raises SetupError that names a container which Docker does not stop.
        """
        import docker
        import requests

        removed = False
        with _answering(self.host):
            for container in self.containers(f"{PROJECT}={project}"):
                removed = True
                try:
                    self.client.api.stop(container, timeout=grace_s)
                    self.client.api.remove_container(container, v=True, force=True)
                except docker.errors.NotFound:
                    continue  # somebody else was faster
                except (docker.errors.APIError, requests.Timeout) as error:
                    if getattr(error, "status_code", None) != 409:  # its removal is in progress
                        raise _stays(container, project, error) from error
            for network in self.client.networks.list(filters={"label": f"{PROJECT}={project}"}):
                removed = True
                try:
                    network.remove()
                except docker.errors.NotFound:
                    continue
        return removed


@contextmanager
def _answering(host: str | None) -> Iterator[None]:
    import docker
    import requests
    import urllib3

    where = host or "unix:///var/run/docker.sock"
    try:
        yield
    except docker.errors.APIError as error:
        raise SetupError(f"Docker refused: {error.explanation or error}", where=where) from error
    except (docker.errors.DockerException, requests.RequestException, urllib3.exceptions.HTTPError) as error:
        if "Permission" in str(error):
            raise SetupError(
                "this user may not use Docker",
                where=where,
                hint="add the user to the group 'docker', or use rootless Docker",
            ) from error
        raise SetupError(
            f"no Docker daemon answers: {_cause(error)}",
            where=where,
            hint="start it (`systemctl start docker`), or name it with DOCKER_HOST; "
            "`bench run` and `bench up` need none with --launch process",
        ) from error


def _stays(container: str, project: str, error: Exception) -> SetupError:
    return SetupError(
        f"cannot be stopped: {getattr(error, 'explanation', None) or error}",
        where=f"container {container[:12]} of {project}",
        hint=f"remove it before anything else is measured: `docker rm -f {container[:12]}`",
    )


def _cause(error: Exception) -> str:
    """Docker's library wraps what the system said in up to three exceptions."""
    system = re.search(r"\(\d+, '([^']+)'\)", str(error))
    return system[1] if system else str(error)


def _host() -> str | None:
    """Returns where the docker command would go; None for the default.

    That is $DOCKER_HOST, else the context that $DOCKER_CONTEXT names, else the current one.
    """
    from docker.context import ContextAPI

    if explicit := os.environ.get("DOCKER_HOST"):
        return explicit
    named = os.environ.get("DOCKER_CONTEXT")
    context = ContextAPI.get_context(named) if named else ContextAPI.get_current_context()
    if named and context is None:
        hint = "`docker context ls` lists those there are"
        raise SetupError(f"no Docker context '{named}'", where="DOCKER_CONTEXT", hint=hint)
    return str(context.Host) if context is not None and context.Host else None
