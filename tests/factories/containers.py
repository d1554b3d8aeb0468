"""A stand-in for the Docker daemon, with containers of engines."""

from harness.engines.start.containers import owners
from harness.engines.start.containers.daemon import PROJECT

RUNNING = {"Status": "running", "ExitCode": 0, "Error": "", "OOMKilled": False}
ENDED = {"Status": "exited", "ExitCode": 1, "Error": "", "OOMKilled": False}


class FakeDaemon:
    """Containers by id: (labels, state); `removed` lists the projects that were, `read` the logs."""

    def __init__(self, **containers):
        self.here, self.removed, self.read, self.output = containers, [], [], []

    def containers(self, *wanted):
        def has(labels, text):
            name, equals, value = text.partition("=")
            return name in labels and (not equals or labels[name] == value)

        return {i: labels for i, (labels, _) in self.here.items() if all(has(labels, w) for w in wanted)}

    def inspect(self, container):
        if container not in self.here:
            return None
        state = self.here[container][1]
        ports = {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "1234"}], "9000/tcp": None}
        return {"State": state, "NetworkSettings": {"Ports": ports if state == RUNNING else {}}}

    def log(self, container, *, follow, lines):
        self.read.append((container, follow, lines))
        yield from self.output

    def remove_project(self, project, *, grace_s):
        self.removed.append(project)
        return True


def started(engine, *, keep=True, state=RUNNING):
    """A container of this process: by `bench up`, or with `keep=False` by a run."""
    return owners.labels(engine, keep=keep) | {PROJECT: f"project-{engine}"}, state
