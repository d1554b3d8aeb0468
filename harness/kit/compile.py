"""llama-server compiled on the machine out of the kit's sources. The standard library only.

In the background, as it takes minutes: `start` returns at once, `state` says how far it is.
"""

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

from harness.host import kit_env
from harness.host.cpus import usable_cpus
from harness.host.helper_process import without_credentials
from harness.host.system_files import text_of
from harness.kit.parts import unpack

PACKAGE = "llama-cpp-python-0.3.36"  # whose sources they are, and the commit that llama-server reports
ARCHIVE = "llama.cpp.tar.xz"
LIMIT_S = 1500
_FLAGS = (
    *(
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DLLAMA_BUILD_NUMBER=0",
        f"-DLLAMA_BUILD_COMMIT={PACKAGE}",
    ),
    *("-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_OPENSSL=OFF"),
    *("-DLLAMA_USE_PREBUILT_UI=OFF", "-DGGML_NATIVE=ON"),
)
_BELOW = f"targets/{platform.machine()}-linux"  # where nvcc looks, in a folder of CUDA
_DRIVERS = (
    "/usr/local/nvidia/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/aarch64-linux-gnu",
)


def program(work: Path) -> Path:
    return work / "llama.cpp" / "build" / "bin" / "llama-server"


def start(kit: Path, work: Path) -> str:
    """Begins one build at a time, none if it is done; says in words which."""
    folder = work / "llama.cpp"
    if state(work) in ("built", "building"):
        return state(work)
    archive = kit / "sources" / ARCHIVE
    if not archive.is_file():
        return "not carried: make the kit with --engines llamacpp"
    missing = [name for name in ("cmake", "ninja", "g++") if not shutil.which(name)]
    if missing:
        return f"cannot be compiled here: {', '.join(missing)} is missing on PATH"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with archive.open("rb") as sources:
        unpack(sources, folder)
    script = folder / "compile.sh"
    script.write_text(_script(folder), encoding="utf-8")
    with (folder / "log.txt").open("wb") as log:
        # A session of its own: it goes on when what started it has ended.
        process = subprocess.Popen(
            ["sh", "-c", f"timeout {LIMIT_S} sh -e {script.name} && touch done || touch failed"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=without_credentials(os.environ),
        )
    process.returncode = 0  # nobody waits for it: its files say how it ended
    (folder / "pid").write_text(str(process.pid), encoding="ascii")
    return "building for CUDA" if cuda() else "building for the CPU alone: there is no nvcc or no NVIDIA GPU"


def state(work: Path) -> str:
    """absent, building, built or failed."""
    folder = work / "llama.cpp"
    for name, words in (("done", "built"), ("failed", "failed")):
        if (folder / name).is_file():
            return words
    try:
        pid = int((folder / "pid").read_text(encoding="ascii"))
        if Path(f"/proc/{pid}/cwd").readlink() == folder.resolve():
            return "building"  # else the number is another process's now
    except (OSError, ValueError):
        pass
    return "failed" if folder.is_dir() else "absent"


def progress(work: Path) -> str:
    """The last line of its log."""
    return text_of(work / "llama.cpp" / "log.txt").rpartition("\n")[2][:160]


def wait(work: Path, seconds: float) -> str:
    """The state after at most so long."""
    end = time.monotonic() + seconds
    while state(work) == "building" and time.monotonic() < end:
        time.sleep(1)
    return state(work)


def cuda() -> bool:
    """Whether there is a compiler for the GPU, and a GPU to say which kind to compile for."""
    return bool(shutil.which("nvcc")) and bool(_architecture())


def _architecture() -> str:
    """`90` of an H100; "" without a GPU."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return ""
    done = _run([smi, "--query-gpu=compute_cap", "--format=csv,noheader"])
    return "".join(done.stdout.split()[:1]).replace(".", "") if done.returncode == 0 else ""


def _script(folder: Path) -> str:
    jobs, flags = usable_cpus(), list(_FLAGS)
    if cuda():
        root = _toolkit(folder / "cuda")
        driver = (root / "lib64" / "libcuda.so").exists()
        flags += [
            *("-DGGML_CUDA=ON", f"-DCMAKE_CUDA_ARCHITECTURES={_architecture()}", "-DGGML_CUDA_NCCL=OFF"),
            *(f"-DCMAKE_CUDA_COMPILER={root}/bin/nvcc", f"-DCUDAToolkit_ROOT={root}"),
            *(f"-DCMAKE_CUDA_FLAGS=-I{root}/include", f"-DGGML_CUDA_NO_VMM={'OFF' if driver else 'ON'}"),
            *(f"-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,{root}/lib64", f"-DCMAKE_BUILD_RPATH={root}/lib64"),
        ]
    configure = " ".join(f"'{flag}'" for flag in flags)
    return (
        f"cd '{folder}'\ncmake -S llama.cpp -B build {configure}\n"
        f"cmake --build build --target llama-server -j {jobs}\n"
        "build/bin/llama-server --version\n"
    )


def _toolkit(root: Path) -> Path:
    """A folder of links to nvcc, the headers and the libraries of CUDA.

    Where CUDA was installed as Python packages, cuBLAS lies with torch, and its libraries have no name
    without a version, by which a linker looks for them.
    """
    # What is on PATH may be a script or a link; the compiler itself says where it lies.
    command = [shutil.which("nvcc") or "nvcc", "--dryrun", "-E", "none.cu"]
    output = _run(command).stderr
    here = next(
        (line.partition("_HERE_=")[2].strip() for line in output.splitlines() if "_HERE_=" in line), ""
    )
    tops, sites = [Path(here or command[0]).resolve().parent], kit_env.box_sites()
    for packages in ("nvidia/cu1*", "nvidia/cu*blas"):
        tops += sorted(folder for site in sites for folder in site.glob(packages) if folder.is_dir())
    libraries = [
        folder for top in tops for folder in (top / "lib64", top / "lib", top / "targets/x86_64-linux/lib")
    ]
    for name, places in (
        ("bin", [tops[0] / "bin"]),
        ("nvvm", [tops[0] / "nvvm"]),
        ("include", [top / "include" for top in tops]),
        ("lib64", [*libraries, *map(Path, _DRIVERS)]),
    ):
        (root / name).mkdir(parents=True, exist_ok=True)
        for folder in places:
            known = folder.iterdir() if folder.is_dir() else ()
            for file in known if str(folder) not in _DRIVERS else folder.glob("libcuda.so*"):
                _link(root / name / file.name, file)
                stem, so, _ = file.name.partition(".so.")
                if so:
                    _link(root / name / f"{stem}.so", file)
    for name, same in (("include", "include"), ("lib", "lib64")):
        (root / _BELOW).mkdir(parents=True, exist_ok=True)
        _link(root / _BELOW / name, root / same)
    return root


def _link(path: Path, file: Path) -> None:
    if not path.is_symlink():
        path.symlink_to(file)


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    env = without_credentials(os.environ)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
