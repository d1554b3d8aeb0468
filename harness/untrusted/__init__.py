"""Foreign bytes to values that nothing after it has to doubt."""

from harness.untrusted.document import LIMIT, BadDocumentError, read_document, read_tables
from harness.untrusted.secrets import Secrets
from harness.untrusted.text import inert, is_unicode, one_line
