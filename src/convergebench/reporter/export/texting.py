r"""Any text as LaTeX that pdflatex and lualatex both set, whatever signs it holds.

Nothing but ASCII comes out: letters with accents become accent commands, common signs their own
commands, and all other signs `\cbchar{…}` with the number of the sign, which prints it as
U+… unless a document that has a font for it says otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

PROVIDED: Final = r"\providecommand{\cbchar}[1]{\texttt{U+#1}}"
"""Stands at the head of every fragment."""

SPECIAL: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "^": r"\textasciicircum{}",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "%": r"\%",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\texttt{\char34}",
    "`": r"\`{}",
    # A row that begins with one of these would be read as an argument of the line end before it.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    # These become one sign when two of them meet, or one meets a quotation mark.
    "-": "{-}",
    ",": "{,}",
    "'": "{'}",
    "?": "{?}",
    "!": "{!}",
}
LIGATED: Final = frozenset("-,'?!")
BREAKS: Final = frozenset(":,/=@_.")

MATHS: Final = {
    "≥": r"\geq", "≤": r"\leq", "≠": r"\neq", "≈": r"\approx", "×": r"\times", "·": r"\cdot",
    "÷": r"\div", "±": r"\pm", "−": "-", "→": r"\rightarrow", "←": r"\leftarrow",
    "↑": r"\uparrow", "↓": r"\downarrow", "∞": r"\infty", "√": r"\surd", "∆": r"\Delta",
    "°": r"^\circ", "²": "^2", "³": "^3", "¹": "^1", "∈": r"\in", "∑": r"\sum", "µ": r"\mu",
    "▲": r"\bigtriangleup", "▼": r"\bigtriangledown",
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon",
    "ζ": r"\zeta", "η": r"\eta", "θ": r"\theta", "ι": r"\iota", "κ": r"\kappa", "λ": r"\lambda",
    "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "ο": "o", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma",
    "ς": r"\varsigma", "τ": r"\tau", "υ": r"\upsilon", "φ": r"\varphi", "χ": r"\chi",
    "ψ": r"\psi", "ω": r"\omega",
    "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi",
    "Σ": r"\Sigma", "Υ": r"\Upsilon", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
    **{sign: rf"\mathrm{{{like}}}" for sign, like in
       zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧ", "ABEZHIKMNOPTX", strict=True)},
}  # fmt: skip
"""Signs that TeX has in its mathematics."""

WORDS: Final = {
    "–": "--", "—": "---", "…": r"\dots{}", "‘": "`", "’": "'", "“": "``", "”": "''",
    "§": r"\S{}", "¶": r"\P{}", "©": r"\copyright{}", "†": r"\dag{}", "‡": r"\ddag{}",
    "£": r"\pounds{}", "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}",
    "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}", "å": r"\aa{}",
    "Å": r"\AA{}", "¡": "!`", "¿": "?`", "\u00a0": "~", "\u2009": r"\,", "\u202f": r"\,",
    "\u2011": "{-}", "\u2010": "{-}",
}  # fmt: skip

ACCENTS: Final = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
    "\u0323": "d", "\u0331": "b",
}  # fmt: skip
"""Those that every font encoding has; the ogonek is not among them."""

BELOW: Final = ("\u0327", "\u0323", "\u0331")


def tex(text: str, *, breaks: bool = False) -> str:
    """A text as LaTeX.

    Args:
        text: Any text; line ends become blanks.
        breaks: Whether long names may be broken after their punctuation.
    """
    out = []
    signs = re.sub(r"\s*[\r\n\t\v\f\u0085\u2028\u2029]\s*", " ", text)
    for place, sign in enumerate(signs):
        before = signs[place - 1] if place else ""
        out.append(_sign(sign, before))
        if breaks and sign in BREAKS:
            out.append(r"\allowbreak{}")
    return "".join(out)


def _sign(sign: str, before: str) -> str:
    if sign in LIGATED and before not in LIGATED:
        return sign
    if sign in SPECIAL:
        return SPECIAL[sign]
    if " " <= sign <= "~":
        return sign
    if sign in MATHS:
        return rf"\ensuremath{{{MATHS[sign]}}}"
    if sign in WORDS:
        return WORDS[sign]
    base, *marks = list(unicodedata.normalize("NFD", sign))
    if len(marks) == 1 and base.isascii() and base.isalpha() and marks[0] in ACCENTS:
        # A letter that wears its accent above loses its dot.
        bare = base if marks[0] in BELOW or base not in "ij" else rf"\{base}"
        return rf"\{ACCENTS[marks[0]]}{{{bare}}}"
    return rf"\cbchar{{{ord(sign):04X}}}"
