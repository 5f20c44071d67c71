"""Networks of text and sound."""

from importlib import import_module
from typing import Any

from bench.architectures.subject import BATCHES, SEQUENCES, Input, Subject

torch: Any = import_module("torch")  # optional: absent when types are checked
transformers: Any = import_module("transformers")
nn: Any = torch.nn

WORDS = 500
TEXT = {
    "input_ids": Input(("batch", "sequence"), WORDS),
    "attention_mask": Input(("batch", "sequence"), is_mask=True),
}
FRAMES = 100

LAYERS = 3
_SMALL = {
    "vocab_size": WORDS,
    "hidden_size": 128,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 352,
    "max_position_embeddings": 128,
}


class First(nn.Module):
    """The first output of a model of transformers: its last hidden state, or its logits."""

    def __init__(self, model: Any, **options: bool) -> None:
        super().__init__()
        self.model, self.options = model, {"return_dict": False, **options}

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        """The output for tokens and their mask."""
        return self.model(input_ids, attention_mask=attention_mask, **self.options)[0]


def bert() -> Any:
    """Attention both ways."""
    return First(transformers.BertModel(transformers.BertConfig(**_SMALL)))


def gpt2() -> Any:
    """Causal attention with learned positions."""
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=128, n_embd=128, n_layer=LAYERS, n_head=4
    )
    return First(transformers.GPT2LMHeadModel(config), use_cache=False)


def t5() -> Any:
    """Attention with a bias of relative positions."""
    config = transformers.T5Config(
        vocab_size=WORDS, d_model=128, d_kv=32, d_ff=256, num_layers=LAYERS, num_heads=4
    )
    return First(transformers.T5EncoderModel(config))


def llama() -> Any:
    """Causal attention of grouped heads, rotary positions, gated perceptrons."""
    config = transformers.LlamaConfig(**_SMALL, num_key_value_heads=2)
    return First(transformers.LlamaForCausalLM(config), use_cache=False)


def qwen() -> Any:
    """The same with norms of queries and keys."""
    config = transformers.Qwen3Config(**_SMALL, num_key_value_heads=2, head_dim=32)
    return First(transformers.Qwen3ForCausalLM(config), use_cache=False)


class Encoded(nn.Module):
    """The encoder of Whisper."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, features: Any) -> Any:
        """The output for a spectrogram, whose number of frames the positions fix."""
        return self.encoder(features, return_dict=False)[0]


def whisper() -> Any:
    """Convolutions along time, and attention."""
    config = transformers.WhisperConfig(
        d_model=128,
        encoder_layers=LAYERS,
        encoder_attention_heads=4,
        encoder_ffn_dim=512,
        num_mel_bins=40,
        max_source_positions=FRAMES // 2,
    )
    encoder = import_module("transformers.models.whisper.modeling_whisper").WhisperEncoder
    return Encoded(encoder(config))


class LSTM(nn.Module):
    """Two bidirectional layers on a text."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 64)
        self.lstm = nn.LSTM(64, 96, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(192, 16)

    def forward(self, input_ids: Any) -> Any:
        """The logits of each word."""
        return self.head(self.lstm(self.words(input_ids))[0])


SUBJECTS = (
    Subject("bert", bert, TEXT, SEQUENCES, LAYERS),
    Subject("gpt2", gpt2, TEXT, SEQUENCES, LAYERS),
    Subject("t5", t5, TEXT, SEQUENCES, LAYERS),
    Subject("llama", llama, TEXT, SEQUENCES, LAYERS),
    Subject("qwen", qwen, TEXT, SEQUENCES, LAYERS),
    Subject("whisper", whisper, {"features": Input(("batch", 40, FRAMES))}, BATCHES, LAYERS),
    Subject("lstm", LSTM, {"input_ids": TEXT["input_ids"]}, SEQUENCES, 2),
)
