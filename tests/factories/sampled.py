"""The values that a source of the sampler puts."""


def read(source):
    """Values by name of one reading."""
    found = {}
    source.read(lambda name, value: found.update({name: value}))
    return found
