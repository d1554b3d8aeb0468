"""Reasons an address does not lead to a list of models, and addresses that do."""

from contextlib import closing

from harness.client.client import Client
from harness.client.limits import Limits
from harness.errors import SetupError
from harness.probe.first_look import BUSY_HINT, FAILED, RATE_HINT, REDIRECTED, REFUSED, TOO_MANY


def hint_at(url: str, status: int, chosen: str | None) -> str:
    """What to do where `/v1/models` gave no list. `chosen`: the model that was named, which needs none.

    `status`: of its answer; 0: it gave none.
    """
    if status >= FAILED:
        return BUSY_HINT
    if status == TOO_MANY:
        return RATE_HINT
    scheme, _, rest = url.partition("://")
    origin = f"{scheme}://{rest.partition('/')[0]}"
    others = [f"{'http' if scheme == 'https' else 'https'}://{rest}"]
    others += [origin] if origin != url else []  # nothing may be behind the path
    for other in others:
        if _answers(other):
            return f"a server answers at {other}"
    if REDIRECTED <= status < REFUSED:
        return "use the address that it redirects to, up to /v1"
    running = "is an OpenAI-compatible server running there? Its address is what comes before /v1"
    if not status:
        return f"{running}; some refuse connections until their model is loaded"
    return f"{running}{'' if chosen else '; --model-name names the model where a server lists none'}"


def _answers(url: str) -> bool:
    with closing(Client(url)) as client:
        try:
            answer = client.ask("GET", "/v1/models", limits=Limits(total_s=2.0))
        except SetupError as error:
            return "CERTIFICATE" in error.what
    return answer.ok or answer.refuses_key
