"""`python -m convergebench`."""

from convergebench.cli import main

main()
