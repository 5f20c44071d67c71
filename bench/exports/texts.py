"""Encoders, decoders, and encoders with decoders, of text."""

from typing import Any

from bench.exports.network import IDS, POSITIONS, TEXT, TEXT_TO_TEXT, WORDS, networks_of

Config = dict[str, Any]

BASE: Config = {
    "vocab_size": WORDS,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 384,
    "max_position_embeddings": POSITIONS,
}
SPECIAL: Config = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODER: Config = {**BASE, **SPECIAL, "use_cache": False}
GROUPED: Config = {**DECODER, "num_key_value_heads": 2, "head_dim": 32}

_DISENTANGLED: Config = {
    **BASE,
    "relative_attention": True,
    "position_buckets": 16,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}
_MODERN: Config = {**BASE, **SPECIAL, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 16}
_WIDTHS: Config = {
    "vocab_size": WORDS,
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "max_position_embeddings": POSITIONS,
    "use_cache": False,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
    **SPECIAL,
}

ENCODERS = networks_of(
    "encoder",
    TEXT,
    bert=("BertModel", BASE),
    roberta=("RobertaModel", {**BASE, **SPECIAL, "max_position_embeddings": POSITIONS + 1}),
    distilbert=(
        "DistilBertModel",
        {
            "vocab_size": WORDS,
            "dim": 128,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 384,
            "max_position_embeddings": POSITIONS,
        },
    ),
    albert=("AlbertModel", {**BASE, "embedding_size": 64}),
    electra=("ElectraModel", {**BASE, "embedding_size": 64}),
    deberta_v2=("DebertaV2Model", _DISENTANGLED),
    mpnet=("MPNetModel", {**BASE, **SPECIAL, "max_position_embeddings": POSITIONS + 1}),
    modernbert=("ModernBertModel", _MODERN),
    convbert=("ConvBertModel", {**BASE, "embedding_size": 128}),
)

DECODERS = networks_of(
    "decoder",
    TEXT,
    gpt2=(
        "GPT2LMHeadModel",
        {
            "vocab_size": WORDS,
            "n_positions": POSITIONS,
            "n_embd": 128,
            "n_layer": 2,
            "n_head": 4,
            "use_cache": False,
            **SPECIAL,
        },
    ),
    gpt_neox=("GPTNeoXForCausalLM", DECODER),
    opt=("OPTForCausalLM", {**DECODER, "ffn_dim": 384, "word_embed_proj_dim": 128}),
    bloom=(
        "BloomForCausalLM",
        {
            "vocab_size": WORDS,
            "hidden_size": 128,
            "n_layer": 2,
            "n_head": 4,
            "use_cache": False,
            **SPECIAL,
        },
    ),
    llama=("LlamaForCausalLM", GROUPED),
    mistral=("MistralForCausalLM", {**GROUPED, "sliding_window": 16}),
    qwen3=("Qwen3ForCausalLM", GROUPED),
    gemma3=("Gemma3ForCausalLM", {**GROUPED, "sliding_window": 16, "query_pre_attn_scalar": 32}),
    phi3=("Phi3ForCausalLM", GROUPED),
    falcon=("FalconForCausalLM", {**DECODER, "ffn_hidden_size": 384}),
    olmo2=("Olmo2ForCausalLM", GROUPED),
)

TRANSLATORS = networks_of(
    "encoder-decoder",
    TEXT_TO_TEXT,
    t5=(
        "T5ForConditionalGeneration",
        {
            "vocab_size": WORDS,
            "d_model": 128,
            "d_kv": 32,
            "d_ff": 256,
            "num_layers": 2,
            "num_heads": 4,
            "use_cache": False,
            "decoder_start_token_id": 0,
        },
    ),
    bart=("BartForConditionalGeneration", _WIDTHS),
    marian=("MarianMTModel", {**_WIDTHS, "decoder_vocab_size": WORDS}),
)

_MIXTURE: Config = {**GROUPED, "num_experts_per_tok": 2, "experts_implementation": "batched_mm"}
_LATENT: Config = {
    "q_lora_rank": 48,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 16,
    "v_head_dim": 32,
}
_SPARSE: Config = {"moe_intermediate_size": 64, "intermediate_size": 128}

MIXTURES = networks_of(
    "mixture of experts",
    TEXT,
    mixtral=("MixtralForCausalLM", {**_MIXTURE, "num_local_experts": 8, "intermediate_size": 64}),
    qwen3_moe=(
        "Qwen3MoeForCausalLM",
        {**_MIXTURE, **_SPARSE, "num_experts": 16, "num_experts_per_tok": 4},
    ),
    olmoe=("OlmoeForCausalLM", {**_MIXTURE, "num_experts": 8, "intermediate_size": 64}),
    granitemoe=(
        "GraniteMoeForCausalLM",
        {**_MIXTURE, "num_local_experts": 8, "intermediate_size": 64},
    ),
    gpt_oss=(
        "GptOssForCausalLM",
        {**_MIXTURE, "num_local_experts": 8, "intermediate_size": 64, "sliding_window": 16},
    ),
    deepseek_v3=(
        "DeepseekV3ForCausalLM",
        {
            **_MIXTURE,
            **_SPARSE,
            **_LATENT,
            "num_key_value_heads": 4,
            "head_dim": 16,
            "n_routed_experts": 8,
            "n_group": 4,
            "topk_group": 2,
            "first_k_dense_replace": 1,
        },
    ),
)

_STATE: Config = {
    "vocab_size": WORDS,
    "hidden_size": 64,
    "state_size": 16,
    "num_hidden_layers": 2,
    "use_cache": False,
    **SPECIAL,
}

CHUNKED = networks_of(
    "state space",
    IDS,
    mamba_2=(
        "Mamba2ForCausalLM",
        {**_STATE, "num_heads": 4, "head_dim": 32, "n_groups": 1, "chunk_size": 32},
    ),
)

UNROLLED = networks_of(
    "state space",
    IDS,
    fixed=("sequence",),
    mamba=("MambaForCausalLM", _STATE),
    falcon_mamba=("FalconMambaForCausalLM", _STATE),
    recurrent_gemma=(
        "RecurrentGemmaForCausalLM",
        {**GROUPED, "num_hidden_layers": 3, "attention_window_size": 16},
    ),
)
