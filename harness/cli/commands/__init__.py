"""Commands of bench, one module each: `add_arguments(parser)`, `main(arguments)` -> exit code, and EPILOG."""
