"""Money per token, from a price that was given and the throughput that was measured. No price, no cost."""

from collections import Counter
from collections.abc import Mapping

from harness.model import Cost, Gpu, Price, Prices

_HOUR_S, _MILLION = 3600, 1_000_000
NO_PRICE = "no price given: see --price-per-hour, --price-per-gpu-hour, --prices"


def price(prices: Prices | None, gpu: Gpu | None, label: str = "") -> tuple[Price | None, str]:
    """The price of an hour, or why it is not known. A machine's price wins over one per GPU.

    `label`: the backend, where each has a machine of its own.
    """
    if not prices:
        return None, NO_PRICE
    if own := prices.backend_per_hour:
        if label in own:
            return _priced(prices, own[label], "the machine"), ""
        return None, f"no price for {label}; there is one for {', '.join(own)}"
    if prices.machine_per_hour is not None:
        return _priced(prices, prices.machine_per_hour, "the machine"), ""
    by_name = prices.gpu_per_hour
    if gpu is None or not gpu.engine_gpus:
        return None, "a price per GPU was given and the engine was not seen on one"
    used = [device.name or "" for device in gpu.devices if device.index in gpu.engine_gpus]
    unknown = sorted({name for name in used if name not in by_name and "*" not in by_name})
    if unknown:
        return None, f"no price for {', '.join(unknown)}; there is one for {', '.join(by_name)}"
    amount = sum(by_name[name if name in by_name else "*"] for name in used)
    counts = Counter(used)
    return _priced(prices, amount, ", ".join(f"{count} × {name}" for name, count in counts.items())), ""


def _priced(prices: Prices, amount: float, covers: str) -> Price:
    return Price(per_hour=amount, currency=prices.currency, covers=covers, source=prices.source)


def per_million(per_hour: float, per_s: float | None) -> float | None:
    """The price of a million tokens if the whole hour is charged to this rate."""
    return per_hour / _HOUR_S / per_s * _MILLION if per_s else None


def per_thousand(priced: Price | None, per_s: float | None) -> float | None:
    answers = per_million(priced.per_hour, per_s) if priced else None
    return None if answers is None else answers / 1000


def describe(priced: Price, rates: Mapping[str, float | None], good_tokens_per_s: float | None) -> Cost:
    """The `cost` object. Each figure charges the whole price to its own tokens: they do not add up.

    `good_tokens_per_s`: output tokens of the requests that kept the SLO; None where there is none.
    """
    output, prompt = rates["output_tokens_per_s"], rates["input_tokens_per_s"]
    both = output + prompt if output is not None and prompt is not None else None
    return Cost(
        price=priced,
        per_million_output_tokens=per_million(priced.per_hour, output),
        per_million_input_tokens=per_million(priced.per_hour, prompt),
        per_million_tokens=per_million(priced.per_hour, both),
        per_million_answer_tokens=per_million(priced.per_hour, rates.get("answer_tokens_per_s")),
        per_million_good_output_tokens=per_million(priced.per_hour, good_tokens_per_s),
        output_tokens_per_day=None if output is None else output * 24 * _HOUR_S,
    )
