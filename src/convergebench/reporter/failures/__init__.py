"""The page of failures: rates by editor and step, and a gallery with evidence.

from convergebench import failures
from convergebench.reporter.failures import write_failures
write_failures(failures.find("my-run"), Path("my-run/report"))
"""

from __future__ import annotations

from convergebench.reporter.failures.page import write_failures

__all__ = ["write_failures"]
