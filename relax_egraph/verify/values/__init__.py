"""The values of instances, and the comparison of values of one e-class."""
