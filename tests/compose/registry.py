"""A registry on this machine with one image of one layer, for a daemon to pull from."""

import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_KIND = "application/vnd.docker.distribution.manifest.v2+json"


@contextmanager
def serving(size: int, bytes_per_s: float) -> Iterator[tuple[str, str]]:
    """Name of the image and its digest; the layer holds `size` bytes of noise and comes at that speed."""
    blobs, manifest = _image(size)
    digest = _digest(manifest)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            kind, body = "application/octet-stream", blobs.get(self.path.rpartition("/")[2])
            if "/manifests/" in self.path:
                kind, body = _KIND, manifest
            elif self.path == "/v2/":
                body = b"{}"
            self.send_response(200 if body is not None else 404)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body or b"")))
            self.send_header("docker-content-digest", digest)
            self.end_headers()
            for start in range(0, len(body or b"") if self.command == "GET" else 0, 1 << 18):
                part = body[start : start + (1 << 18)]
                self.wfile.write(part)
                time.sleep(len(part) / bytes_per_s)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}/made/here:1", digest
    finally:
        server.shutdown()
        server.server_close()


def _image(size: int) -> tuple[dict[str, bytes], bytes]:
    """Blobs by digest, and the manifest."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        entry = tarfile.TarInfo("noise")
        entry.size = size
        archive.addfile(entry, io.BytesIO(os.urandom(size)))
    layer = gzip.compress(tar.getvalue(), compresslevel=1)
    rootfs = {"type": "layers", "diff_ids": [_digest(tar.getvalue())]}
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": rootfs,
            "created": "2026-01-01T00:00:00Z",
        }
    ).encode()
    parts = [
        {"mediaType": f"application/vnd.docker.{kind}", "size": len(blob), "digest": _digest(blob)}
        for kind, blob in (("container.image.v1+json", config), ("image.rootfs.diff.tar.gzip", layer))
    ]
    manifest = {"schemaVersion": 2, "mediaType": _KIND, "config": parts[0], "layers": parts[1:]}
    return {_digest(config): config, _digest(layer): layer}, json.dumps(manifest).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"
