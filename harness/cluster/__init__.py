"""Load from several machines: placed and followed by Ray, on one clock, merged from raw records."""
