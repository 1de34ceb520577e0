"""The restoration study: which prompt works, how stable it is, how it compares."""

from __future__ import annotations

from convergebench.restoration.files import write_tables
from convergebench.restoration.means import printed
from convergebench.restoration.result import Restoration
from convergebench.restoration.study import judge_restorations

__all__ = ["Restoration", "judge_restorations", "printed", "write_tables"]
