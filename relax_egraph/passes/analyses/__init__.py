"""Analyses that passes read: value ranges, lifetimes, memory plans.  None changes a module."""
