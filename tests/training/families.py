"""Small encoders of other families than BERT, with the heads that training asks for."""

from typing import Any

import transformers

WORDS, LENGTH = 60, 12
_SIZES = {"vocab_size": WORDS, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2}
_WIDE = {**_SIZES, "intermediate_size": 32, "max_position_embeddings": 40, "pad_token_id": 0}
CONFIGS: dict[str, dict[str, Any]] = {
    "Bert": _WIDE,
    "Roberta": {**_WIDE, "type_vocab_size": 1},
    "Electra": {**_WIDE, "embedding_size": 16},
    "DistilBert": {"vocab_size": WORDS, "dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 2, "pad_token_id": 0},
    "ModernBert": {
        **_WIDE,
        "local_attention": 8,
        "cls_token_id": 1,
        "sep_token_id": 2,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
}


def small_model(family: str, head: str) -> Any:
    config = getattr(transformers, f"{family}Config")(**CONFIGS[family])
    return getattr(transformers, f"{family}For{head}")(config)
