"""Commands of bench, one module each: `Options`, `add_arguments(parser)`, `main(given)` -> Result, EPILOG."""
