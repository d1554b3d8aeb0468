"""Documents as data: what is said of a run or of a comparison, in order, whatever draws it."""
