"""A CPU build of torch, and never gigabytes of CUDA by accident."""

import os
import re
from pathlib import Path

from harness.engines.provide.pip import Pip, find_uv
from harness.errors import SetupError

_HINT = (
    "set BENCH_TORCH_INDEX to the URL of a package index with torch's CPU builds, "
    "or BENCH_TORCH_FIND_LINKS to a folder or page that holds one"
)


def accelerator_packages(distributions: dict[str, str]) -> list[str]:
    """Returns those of NAME: VERSION that only a GPU build of torch brings. (triton comes with CPU
    packages too.)
    """
    return sorted(
        name
        for name, version in distributions.items()
        if re.match(r"(nvidia|cuda|rocm|pytorch-triton)\b", name.lower().replace("_", "-"))
        or (name == "torch" and re.search(r"\+(cu|rocm|xpu)", version))
    )


def install_cpu_torch(pip: Pip, bin_folder: Path, version: str) -> str:
    """Puts torch `version` into pip's environment; answers in one sentence where it was found."""
    requirement = f"torch=={version}"
    for setting, flag in (("BENCH_TORCH_INDEX", "--index-url"), ("BENCH_TORCH_FIND_LINKS", "--find-links")):
        if os.environ.get(setting):
            # pip fills the variable in itself: the URL may hold a password, and every user of the machine can
            # read a command line.
            wanted = bin_folder.parent / "torch.txt"
            wanted.write_text(f'{flag} "${{{setting}}}"\n{requirement}\n', encoding="utf-8")
            offered = _accelerators(pip, requirement, "--requirement", str(wanted))
            if offered:
                raise SetupError(
                    f"{setting} offers a GPU build of {requirement} ({', '.join(offered[:3])} …)",
                    where=pip.label,
                    hint=_HINT,
                )
            pip.run(f"installing {requirement}", "install", "--requirement", str(wanted))
            return f"{requirement} from {setting}"
    try:
        offered = _accelerators(pip, requirement, requirement)
        if not offered:
            pip.run(f"installing {requirement}", "install", requirement)
            return f"{requirement} as pip finds it: a CPU build"
        refused = f"pip's settings offer a GPU build ({', '.join(offered[:3])} …)"
    except SetupError as error:
        refused = f"pip finds none ({error.what})"
    return _with_uv(pip, bin_folder, requirement, refused)


def _accelerators(pip: Pip, requirement: str, *wanted: str) -> list[str]:
    doing = f"looking for a CPU build of {requirement}"
    return accelerator_packages(pip.resolve(doing, *wanted))


def _with_uv(pip: Pip, bin_folder: Path, requirement: str, refused: str) -> str:
    """uv knows where the CPU builds are published."""
    uv = find_uv()
    try:
        if uv is None:
            pip.run("installing uv", "install", "uv")
            uv = str(bin_folder / "uv")
        pip.run_uv(
            uv, f"installing {requirement} with uv's CPU backend", requirement, "--torch-backend", "cpu"
        )
    except SetupError as error:
        raise SetupError(
            f"no CPU build of {requirement}: {refused}; uv: {error.what}",
            where=pip.label,
            hint=f"{_HINT}; {error.hint}",
        ) from error
    return f"{requirement} from uv's CPU backend: {refused}"
