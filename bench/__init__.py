"""Measurements: workloads against numpy, in one run, outputs checked first."""
