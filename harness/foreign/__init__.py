"""The door for what others say: foreign bytes to values that nothing after it has to doubt."""

from harness.foreign.document import BadDocumentError, read_document
from harness.foreign.secrets import Secrets
from harness.foreign.text import inert, one_line

__all__ = ["BadDocumentError", "Secrets", "inert", "one_line", "read_document"]
