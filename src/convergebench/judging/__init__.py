"""Judges: models that look at pictures and answer questions, asked several times and recorded.

    from convergebench.judging import Question, Template, YesNo, open_judge

A judge is named `openai:…`, `gemini:…`, `anthropic:…` or `endpoint:MODEL`; `judges.toml` has ids
and prices. Every vote is kept, failures are null and counted, and nothing is paid for twice.
"""

from convergebench.judging.catalogue import catalogue, lacks, same_vendor
from convergebench.judging.judge import Judge, Patience
from convergebench.judging.opening import open_judge
from convergebench.judging.question import Choice, Number, Question, Template, YesNo
from convergebench.judging.verdict import Identity, Orders, Verdict, Vote

__all__ = [
    "Choice",
    "Identity",
    "Judge",
    "Number",
    "Orders",
    "Patience",
    "Question",
    "Template",
    "Verdict",
    "Vote",
    "YesNo",
    "catalogue",
    "lacks",
    "open_judge",
    "same_vendor",
]
