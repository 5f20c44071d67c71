"""Processes in which rules of users run, which may not end."""
