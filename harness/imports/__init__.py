"""Results of other tools as run folders: recognised by content, kept as our records, marked as imported.

A reader turns a file into `Taken`; `folder` writes that as cells. From there on everything is computed by
the rooms that compute our own, with "not known" where the file says nothing.
"""

from harness.imports.choose import entries_below, is_result, results_among
from harness.imports.detect import READERS, TOOLS, is_data, read
from harness.imports.folder import imported
from harness.imports.repeats import Part
from harness.imports.taken import Taken
