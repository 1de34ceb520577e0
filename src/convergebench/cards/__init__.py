"""What is installed and what it can do: cards of metrics and editors, and one edit as a trial."""
