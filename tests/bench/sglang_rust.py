"""sglang's Rust load client without its engine. Arguments: its extension (…/_bench.*.so), then its flags."""

import importlib.util
import sys


def main() -> None:
    extension, *flags = sys.argv[1:]
    found = importlib.util.spec_from_file_location("_bench", extension)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.run_argv(["sglang-bench", *flags])


if __name__ == "__main__":
    main()
