"""What a broken promise raises."""


class ContractBroken(AssertionError):
    """A plug-in does not do what its seam promises."""
