"""Storage of a run on disk, and stored runs read again.

`manifest` writes the conditions, `stored` each cell as it ends, `origin` a record in the user's cache.
`verified` computes a stored run again, and `loaded` opens runs for comparison.
"""
