"""A backend definition as a service of a Compose file: the only place where one becomes the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.engines.provide.weights import HUB_TOKEN
from harness.engines.start.command import common_fill, filled, model_args, named_values
from harness.errors import SpecError
from harness.spec.backend import Backend

SCRATCH = "/bench"  # in the container: a memory file system, with [engine.files] in it
MODELS = "/models"  # in the container: weights that lie on this machine
HOST = "0.0.0.0"  # in the container; published on the loopback of this machine only
VOLUME_PREFIX = "llm-servebench-"
_HUB_CACHE = "hf-cache"  # of [compose.volumes]: what engines fetch from the model hub

# No server needs them: raw sockets, device nodes, other roots, capabilities for files, audit records.
_DROPPED = ("AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SYS_CHROOT")
_SECURITY = ("no-new-privileges:true",)
# An engine that logs every request must not fill the disk.
_LOGGING = {"driver": "json-file", "options": {"max-size": "64m", "max-file": "2"}}
STOP_GRACE_S = 15


def image_variable(definition: Backend) -> str:
    """Environment variable that names another image, here as in the Compose files."""
    return "BENCH_IMAGE_" + definition.name.upper().replace("-", "_").replace(".", "_")


def volumes_of(definition: Backend) -> dict[str, dict[str, object]]:
    """Top-level `volumes`: named, so that runs and files used by hand share their caches."""
    names = definition.compose.volumes if definition.compose else {}
    return {name: {"name": VOLUME_PREFIX + name} for name in names}


# In Compose's own words, which become YAML and nothing else.
def service(definition: Backend, device: str, fill: Mapping[str, str], *, hub: bool) -> dict[str, Any]:
    """Returns what is the same for a run and for use by hand, without ports, weights and access to a device.

    `fill` maps placeholders to text in which Compose may interpolate; `hub`: the engine fetches the weights
    itself, with the user's token and into a cache volume.
    """
    compose, image = definition.compose, definition.images[device]
    if compose is None:
        raise SpecError(f"backend '{definition.name}' has no [compose]", where="--launch compose")
    engine, fill = definition.engine, {**fill, **named_values(definition, fill)}
    naming = model_args(definition, fill, hub=hub)
    kept = [arg for arg in (*engine.args, *compose.args) if arg not in image.remove_args]

    def placed(text: str) -> str:
        """A dollar sign of the definition's own stays one."""
        return filled(literal(text), fill, f"backend {definition.name} in a container")

    environment: dict[str, str | None] = {
        name: placed(value) for name, value in {**engine.env, **compose.env, **image.env}.items()
    }
    if hub:
        environment[HUB_TOKEN] = None  # passed on from the environment of Compose where it is set there
    if device == "rocm":
        environment["HIP_VISIBLE_DEVICES"] = None
    entries: dict[str, object] = {"image": f"${{{image_variable(definition)}:-{image.name}:{image.tag}}}"}
    if compose.entrypoint is not None:
        entries["entrypoint"] = list(compose.entrypoint)
    entries["command"] = [placed(part) for part in (*compose.program, *naming, *kept, *image.args)]
    entries["environment"] = environment
    entries["volumes"] = [
        f"{name}:{path}" for name, path in compose.volumes.items() if hub or name != _HUB_CACHE
    ]
    entries["tmpfs"] = [SCRATCH]
    optional = {"user": compose.user, "shm_size": compose.shm_size, "ipc": compose.ipc}
    entries |= {key: value for key, value in optional.items() if value}
    if compose.ulimits:
        # A rootless Docker may not raise them.
        entries["ulimits"] = {
            name: f"${{BENCH_ULIMIT_{name.upper()}:-{limit}}}" for name, limit in compose.ulimits.items()
        }
    if image.capabilities:
        entries["cap_add"] = list(image.capabilities)
    return entries | {
        "cap_drop": list(_DROPPED),
        "security_opt": [*_SECURITY, *(["seccomp:unconfined"] if device == "rocm" else [])],
        "mem_limit": "${BENCH_MEM_LIMIT:-0}",
        "memswap_limit": "${BENCH_MEM_LIMIT:-0}",  # all of it memory: an engine that swaps is not measured
        "cpuset": "${BENCH_CPUSET:-}",
        "restart": "no",
        "stop_grace_period": f"{STOP_GRACE_S}s",
        "logging": _LOGGING,
    }


def plain_fill(definition: Backend) -> dict[str, str]:
    """Placeholders of a container and their values, all but the weights."""
    assert definition.compose is not None
    common = {name: str(value) for name, value in common_fill(definition).items()}
    port = definition.compose.port
    ports = {"port": str(port), "second_port": str(port + 1)}
    return common | ports | {"host": HOST, "scratch": SCRATCH, "sockets": SCRATCH}


def ports_of(definition: Backend) -> tuple[int, ...]:
    """Inside the container, to be published: the API's, and the one of metrics that have their own."""
    fill = plain_fill(definition)
    return tuple(int(fill[name]) for name in ("port", "second_port")[: 1 + definition.metrics_own_port])


def gpu_access(device: str, gpus: Sequence[str] = ()) -> dict[str, object]:
    """`gpus` are the NVIDIA ones to be seen. By number: docker-compose 1.29 takes a count from a variable and
    then fails on it.
    """
    if device == "cuda":
        reserved = {"driver": "nvidia", "device_ids": list(gpus), "capabilities": ["gpu"]}
        return {"deploy": {"resources": {"reservations": {"devices": [reserved]}}}}
    if device == "rocm":
        return {
            "devices": ["/dev/kfd:/dev/kfd", "/dev/dri:/dev/dri"],
            "group_add": ["video"],
            "cap_add": ["SYS_PTRACE"],
        }
    return {}


def literal(text: str) -> str:
    """Text that Compose leaves as it is."""
    return text.replace("$", "$$")
