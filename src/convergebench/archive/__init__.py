"""What a bundle is: ZIP structures, the names of a run's files, and reading it untrusted."""
