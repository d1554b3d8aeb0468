"""The machine a kit is for."""

import re
from dataclasses import dataclass

from harness.errors import SpecError

GLIBC = "2.28"  # as old as machines with a GPU that are still served
_OLDEST = 5  # of manylinux_2_N
_RESOLVED = (17, 28, *range(31, 41))  # those that uv resolves for
_OLDER = ("manylinux1", "manylinux2010", "manylinux2014")
_CPUS = ("x86_64", "aarch64")


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    cpu: str
    python: tuple[int, int]
    glibc: int  # the N of 2.N, at least

    @property
    def for_pip(self) -> tuple[str, ...]:
        """Flags with which pip takes the files for that machine."""
        number = f"{self.python[0]}{self.python[1]}"
        glibc = [f"manylinux_2_{minor}_{self.cpu}" for minor in range(self.glibc, _OLDEST - 1, -1)]
        platforms = [*glibc, *(f"{old}_{self.cpu}" for old in _OLDER)]
        flags = [word for platform in platforms for word in ("--platform", platform)]
        abis = [word for abi in (f"cp{number}", "abi3", "none") for word in ("--abi", abi)]
        return ("--python-version", number, "--implementation", "cp", *abis, *flags)

    @property
    def for_uv(self) -> tuple[str, ...]:
        python = ".".join(map(str, self.python))
        return ("--python-version", python, "--python-platform", f"{self.cpu}-manylinux_2_{self.glibc}")


def target(name: str, glibc: str = GLIBC) -> Target:
    """The target of a name such as `linux-x86_64-py312`; `glibc`: the oldest there. Raises SpecError."""
    found = re.fullmatch(r"linux-(\w+?)-py3(\d+)", name)
    if not found or found[1] not in _CPUS or int(found[2]) < 11:
        raise SpecError(
            f"'{name}' is no machine that a kit can be made for",
            where="--for",
            hint="write linux-x86_64-py312: its processor (x86_64, aarch64) and its Python (3.11 or newer)",
        )
    libc = re.fullmatch(r"2\.(\d+)", glibc)
    if not libc or int(libc[1]) not in _RESOLVED:
        raise SpecError(
            f"'{glibc}' is no C library that a kit can be made for",
            where="--glibc",
            hint=f"{', '.join(f'2.{minor}' for minor in _RESOLVED)}; `ldd --version` says what is there",
        )
    return Target(name, found[1], (3, int(found[2])), int(libc[1]))
