"""Train the digit classifier once, with numpy, and write ``digits.npz``.

    pip install scikit-learn      # only for its copy of the images
    python examples/digits/train.py

The images are the 1,797 handwritten digits of 8 × 8 pixels that scikit-learn ships (the test set
of the UCI "Optical Recognition of Handwritten Digits").  The model is a multilayer perceptron,
64-128-10 with relu, trained by Adam on softmax cross-entropy on the first 1,437 images; weights
are stored as linear layers in the field store them: ``(out, in)``.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

HERE = Path(__file__).parent
TRAINED_ON = 1437
EPOCHS, BATCH, RATE, DECAY = 60, 32, 1e-3, 1e-4


def forward(x: Array, p: dict[str, Array]) -> tuple[Array, Array]:
    """The hidden layer and the logits."""
    hidden = np.maximum(x @ p["w0"].T + p["b0"], 0)
    return hidden, hidden @ p["w1"].T + p["b1"]


def gradients(x: Array, labels: Array, p: dict[str, Array]) -> dict[str, Array]:
    """The gradient of the mean cross-entropy, plus weight decay."""
    hidden, logits = forward(x, p)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = shifted / shifted.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)
    back = (error @ p["w1"]) * (hidden > 0)
    return {
        "w0": back.T @ x + DECAY * p["w0"],
        "b0": back.sum(axis=0),
        "w1": error.T @ hidden + DECAY * p["w1"],
        "b1": error.sum(axis=0),
    }


def train(images: Array, labels: Array) -> dict[str, Array]:
    """The parameters after `EPOCHS` passes of Adam over shuffled batches; seeded."""
    rng = np.random.default_rng(0)
    p = {
        "w0": rng.normal(0, np.sqrt(2 / 64), (128, 64)),
        "b0": np.zeros(128),
        "w1": rng.normal(0, np.sqrt(2 / 128), (10, 128)),
        "b1": np.zeros(10),
    }
    first = {k: np.zeros_like(v) for k, v in p.items()}
    second = {k: np.zeros_like(v) for k, v in p.items()}
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            step += 1
            for name, g in gradients(images[batch], labels[batch], p).items():
                first[name] = 0.9 * first[name] + 0.1 * g
                second[name] = 0.999 * second[name] + 0.001 * g * g
                mean = first[name] / (1 - 0.9**step)
                spread = second[name] / (1 - 0.999**step)
                p[name] -= RATE * mean / (np.sqrt(spread) + 1e-8)
    return {k: v.astype(np.float32) for k, v in p.items()}


def main() -> None:
    """Train, report the accuracy on images that were held out, and write the file."""
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    digits: Any = load_digits()
    images = (digits.data / 16).astype(np.float32)
    labels = digits.target.astype(np.uint8)
    p = train(images[:TRAINED_ON], labels[:TRAINED_ON])
    held_out = forward(images[TRAINED_ON:], p)[1].argmax(axis=1)
    print(f"held-out accuracy: {(held_out == labels[TRAINED_ON:]).mean():.4f}")
    pixels = digits.data.astype(np.uint8)  # 0..16; the model reads pixels / 16
    arrays: dict[str, Any] = {"pixels": pixels, "labels": labels, **p}
    np.savez_compressed(HERE / "digits.npz", **arrays)


if __name__ == "__main__":
    main()
