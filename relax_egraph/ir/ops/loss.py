"""Losses, and dropout."""
