"""Ray: joins a cluster, or starts one of this machine alone, and puts one actor on each load node."""

import atexit
import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from harness import __version__
from harness.cluster import local
from harness.cluster.node import About, Node, Reach
from harness.cluster.options import OBJECT_STORE_BYTES, ClusterOptions, head_of, require_ray
from harness.cluster.pings import TOKEN_BYTES, Clock
from harness.cluster.refusals import cannot_join, cannot_place
from harness.cluster.worker_pool import Call, ClusterWorkerPool, RemoteNode, reason_of
from harness.errors import SetupError, SpecError
from harness.host.address import is_loopback
from harness.load.job import ClosedLoop, LoadJob
from harness.load.transport import choose_transport

_REACH_S = 5.0
_PLACE_S = 30.0
_START_S = 60.0
_END_S = 10.0
_HEAD_AWAY_S = "86400"  # without its head for so long Ray ends this process, in the midst of its work
_THREADS = 4  # of an actor: one hears the workers, the others take orders meanwhile


class Cluster:
    """Load nodes for one window after another."""

    def __init__(self, asked: ClusterOptions) -> None:
        self.asked = asked
        self.head = _head(asked.address)
        self._nodes: list[RemoteNode] = []
        self._actors: list[Any] = []
        self._group: Any = None

    @property
    def here(self) -> str:
        """Address of this machine, as the nodes reach it."""
        import ray

        return str(ray.util.get_node_ip_address())

    def worker_pool(self, job: LoadJob, sample_hz: float = 0.0) -> ClusterWorkerPool:
        """Places the actors, again where one was lost. Raises SetupError, SpecError."""
        lost = [f"{node.name}: {node.lost}" for node in self._nodes if node.lost]
        if not self._nodes or lost:
            self.leave()
            _reach(self.head, self.asked.address)
            try:
                self._place(lost)
            except BaseException:
                self.leave()  # a part of the nodes is not what was asked for
                raise
        self._try_out(job)
        return ClusterWorkerPool(self._nodes, sample_hz)

    def leave(self) -> None:
        """The actors end with their workers."""
        import ray

        for node in self._nodes:
            node.clock.close()
        if self.there():
            for actor in self._actors:
                with suppress(ray.exceptions.RayError):
                    ray.kill(actor)
            if self._group is not None:
                with suppress(ray.exceptions.RayError):
                    ray.util.remove_placement_group(self._group)
        self._nodes, self._actors, self._group = [], [], None

    def there(self) -> bool:
        """Whether the head answers. If it does not, Ray is asked for nothing: it would wait."""
        try:
            _reach(self.head, self.asked.address)
        except SetupError:
            return False
        return True

    def _place(self, lost: Sequence[str]) -> None:
        import ray

        bundle = {"CPU": self.asked.workers_per_node}
        self._group = ray.util.placement_group([bundle] * self.asked.nodes, strategy="STRICT_SPREAD")
        if not self._group.wait(_PLACE_S):
            raise cannot_place(self.asked, [node for node in ray.nodes() if node["Alive"]], lost)
        # An actor takes seconds to start, so all start at once.
        started = [self._start(index, address) for index, address in enumerate(self._addresses())]
        for address, token, call in started:
            about = self._about(address, call)
            self._nodes.append(RemoteNode(about, call, Clock(address, about.clock_port, token)))

    def _start(self, index: int, address: str) -> tuple[str, bytes, Call]:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        token = secrets.token_bytes(TOKEN_BYTES)
        where = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=index)
        actor = (
            ray.remote(Node)
            .options(
                num_cpus=self.asked.workers_per_node, max_concurrency=_THREADS, scheduling_strategy=where
            )
            .remote(address, token)
        )
        self._actors.append(actor)
        return address, token, _caller(actor)

    def _addresses(self) -> list[str]:
        """Addresses of the bundles' nodes, in order."""
        import ray

        named = {node["NodeID"]: str(node["NodeManagerAddress"]) for node in ray.nodes()}
        bundles = ray.util.placement_group_table(self._group)["bundles_to_node_id"]
        return [named[bundles[index]] for index in sorted(bundles)]

    def _about(self, address: str, call: Call) -> About:
        try:
            about: About = call("about").result(_START_S)
        except Exception as error:  # Ray's, or of an import on the node
            raise SetupError(
                f"the load node did not start: {reason_of(error)}",
                where=address,
                hint=f"install llm-servebench {__version__} with the extra [ray] on every node",
            ) from error
        if about.version != __version__:
            raise SetupError(
                f"has llm-servebench {about.version}, this machine {__version__}",
                where=address,
                hint="install the same version on every node",
            )
        return about

    def _try_out(self, job: LoadJob) -> None:
        """Raises unless every node can send this job as exactly as this machine would."""
        here = self.here
        bare = replace(job, bodies=(), sessions=None, replicas=None, schedule=ClosedLoop(1))
        for url in job.urls:
            host = urlsplit(url).hostname or ""
            if is_loopback(host) and any(node.about.address != here for node in self._nodes):
                raise SpecError(
                    f"is another server on every node: {host}",
                    where=url,
                    hint="give the address under which all nodes reach the server",
                )
        asked = [(node, node.call("reach", bare)) for node in self._nodes]
        for node, answer in asked:
            reach = _asked_reach(node, answer)
            if reach.trouble:
                raise SetupError(reach.trouble, where=node.name, hint="its firewall, or the server's address")
            if reach.transport is not choose_transport(job)[0]:
                raise SetupError(
                    f"stamps arrivals in another way: {reach.transport.name}",
                    where=node.name,
                    hint="nodes need the same kind of system, and the same proxy in their environment",
                )


def _asked_reach(node: RemoteNode, answer: "Future[Any]") -> Reach:
    try:
        reach: Reach = answer.result(_START_S)
    except Exception as error:  # whatever a remote call says, the node is not there
        node.lost = reason_of(error)
        raise SetupError(f"was lost: {node.lost}", where=node.name, hint="`ray status` shows it") from error
    return reach


def _caller(actor: Any) -> Call:
    return lambda method, *arguments: getattr(actor, method).remote(*arguments).future()


@contextmanager
def joined(asked: ClusterOptions | None) -> Iterator[Cluster | None]:
    """Raises SetupError for all that keeps this process out of the cluster."""
    if asked is None:
        yield None
        return
    _join(asked)
    cluster = Cluster(asked)
    try:
        yield cluster
    finally:
        import ray

        cluster.leave()
        _end(ray.shutdown)


def _end(shutdown: Callable[[], None]) -> None:
    """Waits for it, not forever: the head may be gone."""
    atexit.unregister(shutdown)
    thread = threading.Thread(target=shutdown, daemon=True)
    thread.start()
    thread.join(_END_S)


def members(address: str) -> list[Mapping[str, Any]]:
    """The nodes of a cluster, as Ray lists them. Raises SetupError."""
    _join(ClusterOptions(address, 1))
    import ray  # which reads the environment that _join sets

    try:
        nodes: list[Mapping[str, Any]] = ray.nodes()
    finally:
        ray.shutdown()
    return nodes


def _join(asked: ClusterOptions) -> None:
    require_ray()
    if head := head_of(asked.address):
        _reach(head, asked.address)
    before = signal.getsignal(signal.SIGTERM)
    try:
        _init(asked)
    except Exception as error:  # Ray's, of any of its layers: each becomes one error
        raise cannot_join(asked.address, error) from error
    finally:
        signal.signal(signal.SIGTERM, before)  # Ray takes it


def _init(asked: ClusterOptions) -> None:
    """ "auto" is a cluster that this machine belongs to, else one of its own."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    for name, value in local.authentication(asked.address).items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", _HEAD_AWAY_S)
    import ray

    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        ray.init(address=asked.address, **quiet)
    except ConnectionError:
        if asked.address != "auto":
            raise
        ray.init(
            address="local",
            num_cpus=asked.workers_per_node,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address="127.0.0.1",
            **quiet,
        )


def _head(address: str) -> str:
    """HOST:PORT, once joined."""
    if head := head_of(address):
        return head
    import ray

    return str(ray.get_runtime_context().gcs_address)


def _reach(node: str, address: str) -> None:
    host, _, port = node.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _REACH_S).close()
    except OSError as error:
        raise SetupError(
            f"no cluster answers: {error}",
            where=f"--cluster {address}",
            hint="`bench cluster up` starts one; `bench cluster status` shows it",
        ) from error
