"""How reversible a pair of prompts is: exact, preserving, ambiguous, destroying or inventing.

`classify` decides by numbered rules (`rules.RULES`), `propose_inverse` finds a backward prompt for
a forward one, `labels` says how far the rules agree with labels given by hand.
"""

from convergebench.reversibility.inverse import Inverse, judge, propose_inverse
from convergebench.reversibility.rules import RULES, Verdict, classify

__all__ = ["RULES", "Inverse", "Verdict", "classify", "judge", "propose_inverse"]
