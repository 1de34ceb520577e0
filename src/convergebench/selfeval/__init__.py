"""Self-evaluation: when does an editor itself notice what it does to the picture?

The summary of its reasoning is kept with every step. A judge says of each whether it mentions that
the given image is noisy, pixelated or full of artefacts; the first such step is the *delay*.
"""

from convergebench.selfeval.evaluation import evaluate
from convergebench.selfeval.result import SelfEvaluation
from convergebench.selfeval.rules import mentions_damage
from convergebench.selfeval.sections import Section, sections

__all__ = ["Section", "SelfEvaluation", "evaluate", "mentions_damage", "sections"]
