"""Tables of a run as data, the same for a terminal, for Markdown and for the page."""
