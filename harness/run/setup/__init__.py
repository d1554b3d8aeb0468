"""Settings of a run, checked before anything is started.

`options` has what was asked for, `prepare` makes one checked record per backend of it; noise floors and the
division of each backend are known here, and `provision` brings engines and weights.
"""
