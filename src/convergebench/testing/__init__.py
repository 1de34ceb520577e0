"""For authors of plug-ins: does this editor, or this metric, keep its side of the contract?

Call `check_editor` or `check_metric` from a test. They return nothing when all is well and raise
`ContractBroken`, with one sentence that says what was done and what went wrong, when it is not.
"""

from convergebench.testing.contract import ContractBroken
from convergebench.testing.editors import check_editor
from convergebench.testing.metrics import check_metric

__all__ = ["ContractBroken", "check_editor", "check_metric"]
