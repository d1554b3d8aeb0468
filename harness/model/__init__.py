"""The typed documents of a run: the only source of what is written and of the JSON schemas."""

from harness.model.agreement import *
from harness.model.baseline import *
from harness.model.cell import *
from harness.model.cell_facts import *
from harness.model.claim import *
from harness.model.client import *
from harness.model.comparison import *
from harness.model.conclusion import *
from harness.model.conditions import *
from harness.model.doctor import *
from harness.model.figures import *
from harness.model.history import *
from harness.model.identity import *
from harness.model.imported import *
from harness.model.issue import *
from harness.model.load import *
from harness.model.machine import *
from harness.model.manifest import *
from harness.model.metric import *
from harness.model.metric_table import *
from harness.model.plan import *
from harness.model.probe import *
from harness.model.record import *
from harness.model.summary import *
from harness.model.validity import *
from harness.model.workload import *
