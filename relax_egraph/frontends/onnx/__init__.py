"""ONNX models become modules; the only door to the package onnx."""
