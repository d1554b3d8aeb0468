"""Makes the requests of a run, from a seed or from recorded traffic, and the times they are sent."""
