"""Records of a run, on the disk and read again.

`manifest` has the conditions, `stored` each cell as it ends, `origin` what the user's cache remembers;
`verified` computes a stored run again, and `loaded` opens runs for comparison.
"""
