"""Models of transformers as users have them: exported with dynamic sizes, random weights.

``python -m bench.exports FOLDER [WORDS]`` exports each model to FOLDER, where it stays, takes it
from there to a running program, compares with torch and times it beside onnxruntime.
"""
