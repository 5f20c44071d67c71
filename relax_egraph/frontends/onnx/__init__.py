"""The importer of ONNX models; only this room imports the package onnx."""
