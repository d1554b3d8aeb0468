"""Settings of a run, checked before anything is started.

`options` has the flags, and `prepare` makes one checked record per backend of them. `noise` keeps noise
floors, `division` says whether a backend runs as shipped, and `provision` brings engines and weights.
"""
