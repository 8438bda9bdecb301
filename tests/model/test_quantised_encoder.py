"""All layers in one call of the kernel: the bits of the layers one by one, which serve whatever asks for more."""

import copy
import pickle
import threading
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from sparsebert import patterns, quantize, sparsify
from sparsebert.attention.sparse_library import ISA_VARIABLE, ISAS, library
from sparsebert.errors import LayerError
from sparsebert.layers.int8_steps import Steps
from sparsebert.model import quantised_encoder
from sparsebert.model.packing import packed_inputs
from tests.training.families import CONFIGS, LENGTH, WORDS

PATTERN = patterns.from_offsets(length=LENGTH, offsets=[[-1, 1], [-2, 1]], border=True)


def int8_model(family: str = "Bert", pattern: Any = PATTERN, **settings: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**CONFIGS[family], **settings})
    model = getattr(transformers, f"{family}Model")(config).eval()
    return quantize(sparsify(model, pattern, backend="sparse"))


def ids(rows: int = 3, length: int = LENGTH, seed: int = 1) -> Tensor:
    return torch.randint(5, WORDS, (rows, length), generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls each run of steps had."""
    found: list[int] = []
    whole = Steps.run

    def counted(steps: Steps) -> None:
        found.append(len(steps.calls))
        whole(steps)

    monkeypatch.setattr(Steps, "run", counted)
    return found


@torch.no_grad()
def states(model: Any, **given: Any) -> Tensor:
    found: Tensor = model(**given)[0]
    return found


@torch.no_grad()
def one_by_one(model: Any, **given: Any) -> Tensor:
    """The same by its layers."""
    encoder = model.encoder
    whole, encoder.forward = encoder.forward, lambda *a, **k: type(encoder).forward(encoder, *a, **k)
    try:
        return states(model, **given)
    finally:
        encoder.forward = whole


@pytest.mark.parametrize("family", ["Bert", "Roberta", "Electra"])
def test_one_call_gives_the_bits_of_the_layers_one_by_one(family: str, runs: list[int]) -> None:
    model, real = int8_model(family), torch.ones(3, LENGTH, dtype=torch.int64)
    real[1, 7:] = 0
    packed = packed_inputs(model, ids().flatten(), torch.tensor([12, 5, 12, 7]))
    for given in ({"input_ids": ids()}, {"input_ids": ids(), "attention_mask": real}, packed):
        expected = one_by_one(model, **given)
        before = len(runs)
        assert torch.equal(states(model, **given), expected)
        assert runs[before:] == [10]  # two layers: four products and attention each


@pytest.mark.parametrize("token", [False, True])
def test_every_length_and_anchor_is_served(token: bool, runs: list[int]) -> None:
    model = int8_model(pattern=PATTERN.anchored("token") if token else PATTERN)
    for length in (1, 2, 7, LENGTH, 24, 40):  # beyond the pattern it is rebuilt by its rule
        given = {"input_ids": ids(2, length)}
        assert torch.equal(states(model, **given), one_by_one(model, **given))
    assert len(runs) == 6


def test_rows_under_patterns_of_several_lengths_are_left_to_the_layers(runs: list[int]) -> None:
    model, real = int8_model(), torch.ones(2, 40, dtype=torch.int64)
    real[1, 5:] = 0
    given = {"input_ids": ids(2, 40), "attention_mask": real}
    assert torch.equal(states(model, **given), one_by_one(model, **given))
    assert not runs


def test_what_was_returned_is_not_written_to_again(runs: list[int]) -> None:
    model = int8_model()
    first = states(model, input_ids=ids(seed=1))
    kept = first.clone()
    second = states(model, input_ids=ids(seed=2))
    assert torch.equal(first, kept)
    assert torch.equal(second, one_by_one(model, input_ids=ids(seed=2)))
    assert len(runs) == 2


def test_steps_are_kept_for_so_many_rows_and_the_oldest_shapes_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantised_encoder, "_KEPT_ROWS", 30)
    model = int8_model()
    kept = model.encoder.forward.ready
    for rows, length, expected in (
        (2, 5, [(2, 5)]),
        (1, 12, [(2, 5), (1, 12)]),
        (2, 5, [(1, 12), (2, 5)]),
        (1, 10, [(2, 5), (1, 10)]),
        (3, 11, [(2, 5), (1, 10)]),
    ):
        given = {"input_ids": ids(rows, length)}
        assert torch.equal(states(model, **given), one_by_one(model, **given))
        assert [shape[:2] for shape in kept] == expected


def test_a_change_of_pattern_or_weights_is_followed() -> None:
    model, given = int8_model(), {"input_ids": ids()}
    before = states(model, **given)
    layer = model.encoder.layer[0]

    def changed() -> Tensor:
        found = states(model, **given)
        assert torch.equal(found, one_by_one(model, **given))
        return found

    model.set_pattern(patterns.window(LENGTH, radius=1))
    seen = [before, changed()]
    layer.output.dense.weight = layer.output.dense.weight.flip(1).clone()  # other memory
    seen.append(changed())
    layer.output.LayerNorm.weight.data = layer.output.LayerNorm.weight.data * 2
    seen.append(changed())
    layer.output.dense.scale.mul_(0.5)  # the same memory
    seen.append(changed())
    assert all(not torch.equal(one, other) for one, other in zip(seen[-4:], seen[-3:], strict=False))


def test_hidden_states_and_hooks_are_served_by_the_layers(runs: list[int]) -> None:
    model, given = int8_model(), {"input_ids": ids()}
    last = states(model, **given)
    with torch.no_grad():
        found = model(**given, output_hidden_states=True)
    assert torch.equal(found.last_hidden_state, last)
    assert len(found.hidden_states) == 3
    assert len(runs) == 1
    assert torch.equal(states(model, **given), last)
    assert len(runs) == 2  # what transformers left behind to collect them is asleep
    other, called = int8_model(), []
    other.encoder.layer[1].register_forward_hook(lambda *_: called.append(1))
    assert torch.equal(states(other, **given), last)
    assert called == [1]
    assert len(runs) == 2


def test_a_model_that_was_asked_for_hidden_states_before_it_was_quantised_is_asked_again(runs: list[int]) -> None:
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**CONFIGS["Bert"])).eval()
    sparsify(model, PATTERN, backend="sparse")
    with torch.no_grad():
        model(ids(), output_hidden_states=True)
        quantize(model)
        assert len(model(ids(), output_hidden_states=True).hidden_states) == 3
        assert not runs
        model(ids())
    assert len(runs) == 1


def test_an_encoder_that_is_to_train_or_under_autocast_is_left_to_the_layers(runs: list[int]) -> None:
    model, given = int8_model(), {"input_ids": ids()}
    with torch.autocast("cpu", torch.bfloat16):
        found = states(model, **given)
    assert not runs
    assert torch.equal(found, states(model, **given))  # attention is in bfloat16 by itself
    runs.clear()
    with pytest.raises(LayerError, match="do not train"):
        model.train()(**given)
    assert not runs


def test_other_arguments_are_left_to_the_layers_and_no_rows_are_none(runs: list[int]) -> None:
    model, hidden = int8_model(), torch.randn(2, LENGTH, 16)
    with torch.no_grad():
        plain = model.encoder(hidden).last_hidden_state
        other = model.encoder(hidden, encoder_hidden_states=hidden).last_hidden_state
        assert model.encoder(hidden[:0]).last_hidden_state.shape == (0, LENGTH, 16)
    assert torch.equal(plain, other)
    assert len(runs) == 1


def test_activations_that_the_kernel_has_not_are_left_to_the_layers(runs: list[int]) -> None:
    assert states(int8_model(hidden_act="silu"), input_ids=ids()).isfinite().all()
    assert not runs
    assert states(int8_model(hidden_act="relu"), input_ids=ids()).isfinite().all()
    assert len(runs) == 1


def test_threads_that_share_a_model_do_not_disturb_each_other() -> None:
    model = int8_model()
    given = [ids(4, seed=seed) for seed in range(4)]
    expected = [states(model, input_ids=each) for each in given]
    wrong = []

    def work(number: int) -> None:
        for _ in range(30):
            if not torch.equal(states(model, input_ids=given[number]), expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_thread_gives_the_bits_of_two(runs: list[int]) -> None:
    model, before, found = int8_model(), torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(states(model, input_ids=ids()))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)
    assert len(runs) == 2


@pytest.mark.parametrize("name", ISAS)
def test_every_instruction_set_is_followed(name: str, runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    if ISAS.index(name) > library().sb_best_isa():
        pytest.skip(f"this processor has no {name}")
    model, given = int8_model(), {"input_ids": ids()}
    usual = states(model, **given)
    monkeypatch.setenv(ISA_VARIABLE, name)
    found = states(model, **given)
    assert torch.equal(found, one_by_one(model, **given))
    torch.testing.assert_close(found, usual, rtol=0, atol=0.05)  # codes may round the other way
    assert len(runs) == 2


def test_copies_run_by_themselves() -> None:
    model, given = int8_model(), {"input_ids": ids()}
    expected = states(model, **given)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(states(twin, **given), expected)
        twin.encoder.layer[0].output.LayerNorm.weight.data.zero_()
        assert not torch.equal(states(twin, **given), expected)
    assert torch.equal(states(model, **given), expected)
