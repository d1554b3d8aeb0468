"""Cells in formats that others read: figures in their places, the rest in a field of ours."""

from harness.report.exchange.formats import FORMATS, Document, documents
