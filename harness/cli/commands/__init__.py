"""Commands of bench, one module each: `add_arguments(parser)` and `main(arguments)` -> exit code."""
