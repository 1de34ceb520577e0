"""The restoration study: which prompt works, how stable it is, how it compares."""
