"""How an engine failed to serve a load: one value, of which sentences, hints and what follows are made."""

from typing import Literal, NamedTuple

EndKind = Literal["died", "hung", "overloaded", "refused", "slow", "stopped"]

LATER_LOADS = ("slow", "stopped")  # kinds after which further loads go to the engine
_DID: dict[EndKind, str] = {  # all others
    "died": "died",
    "hung": "hung",
    "overloaded": "was overloaded",
    "refused": "refused requests",
}
_LOWER = "lower the load, shorten inputs or answers, or raise --set request.timeout_s; if it hung, {log}"
_HINTS: dict[EndKind, str] = {
    "died": "{log}",
    "hung": "{log}; in another run, `py-spy dump --pid PID` of it shows where it stands; "
    "try a lower load too",
    "overloaded": "{log}; lower the load; does it, or a proxy before it, notice that a client leaves?",
    "refused": "{log}; where a load was too much, lower it, or raise the limits of a gateway before it",
    "slow": _LOWER,
    "stopped": _LOWER,
}


class Ending(NamedTuple):
    """What an engine did that did not serve a load to its end, and `why` that is known, in one sentence.

    `slow`: it answered once the load was gone. `stopped`: the run was, before that could be asked.
    """

    kind: EndKind
    why: str

    def sentence(self, when: str = "") -> str:
        """`the engine hung during 003-vllm-c4-r1: 3 requests in a row had no answer within 1 s`.

        Only of an engine that no further load goes to.
        """
        return f"the engine {_DID[self.kind]}{when}: {self.why}"

    def hint(self, log: str) -> str:
        """`log`: what to do with its log, such as `see logs/vllm-r0.log`."""
        return _HINTS[self.kind].format(log=log)
