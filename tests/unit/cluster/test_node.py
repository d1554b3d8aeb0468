"""A load node whose disk is full: the coordinator hears the reason, and nothing waits for its workers."""

import errno
from contextlib import contextmanager

import pytest

from harness.cluster import node as nodes
from harness.cluster.node import Node
from harness.cluster.worker_pool import reason_of
from harness.host.access import Access
from harness.load.job import ClosedLoop, LoadJob
from harness.load.messages import Share
from harness.load.transport import Transport


def full(*_where):
    raise OSError(errno.ENOSPC, "No space left on device", "/tmp/load")


@contextmanager
def full_on_entry(_purpose):
    full()
    yield


@pytest.fixture
def node():
    made = Node("127.0.0.1", b"0" * 32)
    yield made
    made.close()


def share(tmp_path):
    job = LoadJob("http://127.0.0.1:1", Access(), (), ClosedLoop(1))
    return Share(job, (), 0, tmp_path, Transport.KERNEL_STAMPS)


@pytest.mark.parametrize(
    ("owner", "name", "refusal"), [(nodes.scratch, "folder", full_on_entry), (nodes, "write_bodies", full)]
)
def test_a_node_that_cannot_write_raises_the_reason(monkeypatch, node, tmp_path, owner, name, refusal):
    monkeypatch.setattr(owner, name, refusal)
    node.open(0.0)
    node.start(share(tmp_path), [b"{}"])
    for asked in (lambda: node.hear(60.0, 0.0), node.end):
        with pytest.raises(RuntimeError, match=r"^/tmp/load: no space left on device$"):
            asked()


def test_the_reason_is_what_the_node_raised_and_not_the_traceback_that_ray_makes_of_it():
    error = RuntimeError("ray::Node.hear() (pid=1)\n  File node.py\nRuntimeError: the disk is full")
    assert reason_of(error) == "ray::Node.hear() (pid=1)"
    error.cause = RuntimeError("the disk is full")
    assert reason_of(error) == "the disk is full"
