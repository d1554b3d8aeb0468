"""The machine: what limited each cell, what it used, how it scales, what it cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.model import CellResult
from harness.model.json_path import number_at
from harness.model.numbers import GIB, as_given, number, percent_figure
from harness.report.html.medians import Shown, every_row, folded, median, medians, of_repeats, where
from harness.report.html.source import Source, backend_table
from harness.report.html.tags import Html, join, section, tag, text_table
from harness.report.tables.engines import engine_tables
from harness.report.view import Row, cell_name, charged
from harness.report.wording import NOT_KNOWN, or_unknown, plain


def _gib(size: float) -> str:
    return number(size / GIB)


# Path in a cell → heading, and how its value is shown; a column that no cell has is left out.
USED: Mapping[str, tuple[str, Shown]] = {
    "gpu.utilisation_pct.mean": ("GPU busy, %", number),
    "gpu.dram_active_pct.mean": ("GPU memory bandwidth, %", number),
    "gpu.memory_used_bytes.max": ("GPU memory, peak GiB", _gib),
    "energy.gpu_w": ("GPU power, W", number),
    "energy.gpu_idle_w": ("idle, W", number),
    "energy.cpu_w": ("CPU power, W", number),
    "energy.cpu_idle_w": ("idle, W", number),
    "energy.joules_per_output_token": ("J per output token", number),
    "energy.joules_per_output_token_above_idle": ("above idle", number),
    "energy.output_tokens_per_s_per_watt": ("tokens/s per W", number),
    "server.cpu_cores": ("engine, CPU cores", number),
    "host.client_cores": ("load generator, cores", number),
    "host.other_cores": ("other work, cores", number),
    "server.rss_bytes.max": ("engine memory, peak GiB", _gib),
    "server.running.mean": ("running", number),
    "server.waiting.mean": ("waiting", number),
    "server.kv_use.max": ("KV cache, peak %", percent_figure),
    "server.preemptions": ("preemptions", number),
    "server.acceptance_rate": ("speculative tokens kept, %", percent_figure),
}
COSTS = {
    "per_million_output_tokens": "of output",
    "per_million_input_tokens": "of input",
    "per_million_tokens": "of both",
    "per_million_answer_tokens": "of output without its reasoning",
    "per_million_good_output_tokens": "of output within the SLO",
}
EXPLAINED = (
    "Sampled during the load, means over the measured window. What limited a cell is named by fixed rules on "
    "these numbers: the first that holds, client before KV cache, GPU, CPU and queue."
)
NO_GPU = "No GPU was seen in use: the engine's CPU cores take the place of GPU utilisation."
COST_EXPLAINED = "Each figure charges the whole price of the hour to its own tokens: they do not add up."


def machine(source: Source) -> Html | None:
    """None in runs that were neither sampled nor priced."""
    engines = join(map(text_table, engine_tables(source.summary))) or None
    parts = (engines, _used(source), _load_nodes(source), _scaling(source), _costs(source))
    return section("machine", "What the machine was doing", *parts) if any(parts) else None


def _used(source: Source) -> Html | None:
    cells = [cell for cell in source.summary.cells if cell.limiter or cell.host]
    if not cells:
        return None
    paths = [path for path in USED if any(number_at(cell, path) is not None for cell in cells)]
    rows = ((cell.label, [cell_name(cell), _limiter(cell), *_values(cell, paths)]) for cell in cells)
    head = ["cell", "limited by", *(USED[path][0] for path in paths)]
    on_gpus = any(cell.gpu and cell.gpu.engine_gpus for cell in cells)
    no_gpu = None if on_gpus else tag("p", NO_GPU, class_="muted")
    every = backend_table(source, "What limited each cell, and what it used", head, rows, "used")
    return join([tag("p", EXPLAINED), no_gpu, _by_backend(source, paths), folded(len(cells), every)])


def _load_nodes(source: Source) -> Html | None:
    rows = []
    cells = [cell for cell in source.summary.cells if cell.load_nodes]
    for cell in cells:
        for node in cell.load_nodes:
            memory = node.memory_used_bytes.max / GIB if node.memory_used_bytes else None
            traffic = [
                None if rate is None else rate / 1e6
                for rate in (node.net_received_bytes_per_s, node.net_sent_bytes_per_s)
            ]
            values = (node.busy_cores, node.client_cores, node.stolen_cores, memory, *traffic)
            subject = f"{cell_name(cell)}, {node.name} ({node.address})"
            rows.append((cell.label, [subject, str(node.cpus), *map(or_unknown, values)]))
    if not rows:
        return None
    head = ["cell, load node", "CPUs", "busy cores", "load generator, cores", "stolen, cores",
            "memory, peak GiB", "received, MB/s", "sent, MB/s"]  # fmt: skip
    return folded(len(cells), backend_table(source, "What the load nodes used", head, rows, "numbers"))


def _by_backend(source: Source, paths: Sequence[str]) -> Html:
    rows = []
    for group, row in every_row(source):
        if any(cell.limiter or cell.host for cell in row.cells):
            used = (median(row, path, USED[path][1]) for path in paths)
            rows.append((row.label, [where(source, group, row), _limiters(row), *used]))
    head = ["backend, load", "limited by", *(USED[path][0] for path in paths)]
    return backend_table(source, f"What was used{of_repeats(source)}", head, rows, "used")


def _limiters(row: Row) -> str:
    """Leaves out their numbers, which differ from repeat to repeat."""
    counts = Counter(
        cell.limiter.code.replace("-", " ") if cell.limiter else _limiter(cell) for cell in row.cells
    )
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{words} ({count} of {len(row.cells)})" for words, count in counts.most_common())


def _limiter(cell: CellResult) -> str:
    limiter = cell.limiter
    if limiter:
        return plain(limiter.sentence)
    return f"{NOT_KNOWN} ({plain(cell.null_reasons.get('limiter') or 'not reported')})"


def _values(cell: CellResult, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        value = number_at(cell, path)
        yield NOT_KNOWN if value is None else USED[path][1](value)


def _scaling(source: Source) -> Html | None:
    """A row per backend and concurrency; the last column says from where on requests queue."""
    rows = []
    for label, scaling in source.summary.scaling.items():
        for index, load in enumerate(scaling.concurrency):
            memory = scaling.peak_gpu_memory_bytes[index] or scaling.peak_process_memory_bytes[index]
            values = (scaling.output_tokens_per_s[index], scaling.speedup[index],
                      memory and memory / GIB, scaling.running[index], scaling.waiting[index],
                      scaling.in_flight_before_queueing)  # fmt: skip
            rows.append((label, [f"{label}, {as_given(load)} in flight", *map(or_unknown, values)]))
    if not rows:
        return None
    head = ["backend", "output tokens/s", "times the lowest load's", "peak memory, GiB", "running", "waiting",
            "in flight before requests queue"]  # fmt: skip
    return backend_table(source, "Scaling with concurrency, medians of the repeats", head, rows, "numbers")


def _costs(source: Source) -> Html | None:
    cells = [cell for cell in source.summary.cells if cell.cost]
    prices = charged(source.summary)
    if not prices:
        return None
    bases = [
        plain(f"{as_given(price.per_hour)} {price.currency} per hour for {price.covers} ({price.source})")
        + plain(owners)
        for price, owners in prices.items()
    ]
    currency = next(iter(prices)).currency  # one for all: a run has one list of prices
    columns = {f"cost.{key}": f"a million tokens {words}, {currency}" for key, words in COSTS.items()}
    rows = (
        (cell.label, [cell_name(cell), *(or_unknown(number_at(cell, path)) for path in columns)])
        for cell in cells
    )
    every = backend_table(source, "What a million tokens cost", ["cell", *columns.values()], rows, "numbers")
    paid = [(group, row) for group, row in every_row(source) if any(cell.cost for cell in row.cells)]
    result = medians(source, "What a million tokens cost", columns, paid)
    return join([tag("p", f"{'; '.join(bases)}. {COST_EXPLAINED}"), result, folded(len(cells), every)])
