# bench in a container, to measure servers that are running elsewhere: docs/docker.md.
# The base is any Linux with Python 3.11 or later. CI has no registry: it builds from a Debian made on the spot,
# with wheels fetched before and pip run from its own wheel (tests/compose/test_tool_image.py).
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
ARG PIP="python3 -m pip"
ARG PACKAGE=/src
ARG PIP_NO_INDEX=
ARG BENCH_COMMIT=
COPY . /src
RUN python3 -m venv --without-pip /opt/bench \
    && ${PIP} --python /opt/bench/bin/python install --no-cache-dir --find-links /src/wheels "${PACKAGE}" \
    && rm -rf /opt/bench/lib/python3*/site-packages/pandas/tests

FROM ${BASE}
COPY --from=build /opt/bench /opt/bench
# Results go to the working directory; engines and models that bench fetches, to the cache. Whoever `--user` names
# writes there.
RUN useradd --uid 1000 --create-home bench && mkdir --mode 1777 /work /cache
ENV PATH=/opt/bench/bin:$PATH BENCH_INSTALL="container image" BENCH_CACHE=/cache MPLCONFIGDIR=/tmp/matplotlib
USER bench
WORKDIR /work
ENTRYPOINT ["bench"]
CMD ["--help"]
