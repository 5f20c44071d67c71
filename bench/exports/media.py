"""Networks of images and of sound."""

from typing import Any

from bench.architectures.subject import Input
from bench.exports.network import PIXELS, POSITIONS, SOUND, TEXT, WORDS, networks_of

Config = dict[str, Any]

_LAYERS: Config = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 384,
}
_PATCHES: Config = {**_LAYERS, "image_size": 64, "patch_size": 8}
_FRAMES = 100
_MELS = 40

IMAGES = networks_of(
    "vision",
    PIXELS,
    vit=("ViTModel", _PATCHES),
    beit=("BeitModel", {**_PATCHES, "use_relative_position_bias": True}),
    dinov2=("Dinov2Model", {**_PATCHES, "mlp_ratio": 3}),
    swin=(
        "SwinModel",
        {
            "image_size": 64,
            "patch_size": 2,
            "embed_dim": 32,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
    ),
    convnext=(
        "ConvNextModel",
        {"hidden_sizes": [32, 64, 96, 128], "depths": [1, 1, 2, 1], "image_size": 64},
    ),
    segformer=(
        "SegformerModel",
        {
            "hidden_sizes": [32, 64, 96, 128],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 3, 4],
        },
    ),
)

CONVOLUTIONAL = networks_of(
    "convolutional",
    PIXELS,
    regnet=(
        "RegNetModel",
        {"embedding_size": 32, "hidden_sizes": [48, 96, 144, 192], "depths": [1, 2, 2, 1]},
    ),
    efficientnet=(
        "EfficientNetModel",
        {
            "image_size": 64,
            "width_coefficient": 0.5,
            "depth_coefficient": 0.5,
            "hidden_dim": 640,
        },
    ),
    mobilenet_v1=("MobileNetV1Model", {"image_size": 64, "depth_multiplier": 0.5}),
    mobilevit=(
        "MobileViTModel",
        {
            "image_size": 64,
            "hidden_sizes": [48, 64, 96],
            "neck_hidden_sizes": [16, 32, 64, 96, 128, 160, 320],
        },
    ),
    poolformer=(
        "PoolFormerModel",
        {"hidden_sizes": [32, 64, 96, 128], "depths": [1, 1, 1, 1]},
    ),
)

CLIPS = networks_of(
    "vision and text",
    {**TEXT, **PIXELS},
    clip=(
        "CLIPModel",
        {
            "projection_dim": 64,
            "text_config": {
                **_LAYERS,
                "vocab_size": WORDS,
                "max_position_embeddings": POSITIONS,
                "bos_token_id": 1,
                "eos_token_id": 2,
                "pad_token_id": 0,
            },
            "vision_config": _PATCHES,
        },
    ),
)

_CONVOLUTIONS: Config = {
    **_LAYERS,
    "vocab_size": 32,
    "conv_dim": [64, 64, 64, 64],
    "conv_stride": [5, 4, 4, 2],
    "conv_kernel": [10, 8, 4, 4],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 4,
    "apply_spec_augment": False,
}

SOUNDS = networks_of(
    "audio",
    SOUND,
    wav2vec2=("Wav2Vec2Model", _CONVOLUTIONS),
    hubert=("HubertModel", {**_CONVOLUTIONS, "feat_extract_norm": "layer"}),
    wavlm=("WavLMModel", {**_CONVOLUTIONS, "num_buckets": 32, "max_bucket_distance": 64}),
)

SPECTRA = (
    *networks_of(
        "audio",
        {"input_values": Input(("batch", _FRAMES, _MELS))},
        ast=("ASTModel", {**_LAYERS, "max_length": _FRAMES, "num_mel_bins": _MELS}),
    ),
    *networks_of(
        "audio",
        {
            "input_features": Input(("batch", _MELS, _FRAMES)),
            "decoder_input_ids": Input(("batch", "target"), WORDS),
        },
        whisper=(
            "WhisperForConditionalGeneration",
            {
                "vocab_size": WORDS,
                "d_model": 128,
                "encoder_layers": 2,
                "decoder_layers": 2,
                "encoder_attention_heads": 4,
                "decoder_attention_heads": 4,
                "encoder_ffn_dim": 256,
                "decoder_ffn_dim": 256,
                "num_mel_bins": _MELS,
                "max_source_positions": _FRAMES // 2,
                "max_target_positions": POSITIONS,
                "use_cache": False,
                "pad_token_id": 0,
                "bos_token_id": 1,
                "eos_token_id": 2,
                "decoder_start_token_id": 1,
            },
        ),
    ),
)
