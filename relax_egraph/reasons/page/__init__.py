"""The reasons of an optimization as one HTML page that needs no network."""
