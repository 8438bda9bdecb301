import pytest
import torch
from torch import Tensor, nn

from sparsebert.training.row_gradients import RowGradients


class Reader(nn.Module):
    """Looks up two pieces of text in one table, as an objective does that cuts its batch."""

    def __init__(self, **settings: object) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(5000, 4, **settings)  # type: ignore[arg-type]
        self.mixed = nn.Linear(4, 3)

    def forward(self, *texts: Tensor) -> Tensor:
        return sum(self.mixed(self.table(text)).square().sum() for text in texts)  # type: ignore[return-value]


def texts(seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(50, (3, 7), generator=draw), torch.randint(50, (2, 4), generator=draw)


def gathered(reader: Reader, tables: RowGradients, *seeds: int) -> Tensor:
    reader.zero_grad()
    tables.begin()
    for seed in seeds:
        with tables.gathered():
            reader(*texts(seed)).backward()
    tables.give()
    assert reader.table.weight.grad is not None
    return reader.table.weight.grad.clone()


def whole(reader: Reader, *seeds: int) -> Tensor:
    """What torch itself gives."""
    reader.zero_grad()
    for seed in seeds:
        reader(*texts(seed)).backward()
    assert reader.table.weight.grad is not None
    return reader.table.weight.grad.clone()


@pytest.mark.parametrize("seeds", [(1,), (1, 2), (1, 2, 3)])
def test_gathered_gradients_are_those_of_the_whole_table(seeds: tuple[int, ...]) -> None:
    reader = Reader()
    torch.testing.assert_close(gathered(reader, RowGradients(reader), *seeds), whole(reader, *seeds))


def test_words_that_come_once_get_the_same_bits() -> None:
    reader, text = Reader(), torch.randperm(5000, generator=torch.Generator().manual_seed(1))[:60].view(3, 20)
    reader(text).backward()
    assert reader.table.weight.grad is not None
    wanted = reader.table.weight.grad.clone()
    reader.zero_grad()
    tables = RowGradients(reader)
    tables.begin()
    with tables.gathered():
        reader(text).backward()
    tables.give()
    assert torch.equal(reader.table.weight.grad, wanted)


def test_a_step_starts_from_nothing_whatever_the_one_before_left() -> None:
    reader = Reader()
    tables = RowGradients(reader)
    first = gathered(reader, tables, 1)
    reader.table.weight.grad.mul_(3.0)  # type: ignore[union-attr]  # as clipping does, in place
    assert not torch.equal(gathered(reader, tables, 2), first)
    assert torch.equal(gathered(reader, tables, 1), first)


def test_micro_batches_are_summed_one_by_one_as_over_ranks() -> None:
    reader = Reader()
    tables = RowGradients(reader)
    alone = gathered(reader, tables, 1), gathered(reader, tables, 2)
    assert torch.equal(gathered(reader, tables, 1, 2), alone[0] + alone[1])


def test_a_step_whose_gradients_were_not_finite_leaves_nothing_behind() -> None:
    reader = Reader()
    tables = RowGradients(reader)
    first = gathered(reader, tables, 1)
    with tables.gathered():
        (reader(*texts(2)) * torch.inf).backward()
    tables.give()
    assert reader.table.weight.grad is not None
    assert not reader.table.weight.grad.isfinite().all()
    assert torch.equal(gathered(reader, tables, 1), first)


def test_small_tables_are_left_to_torch() -> None:
    table = nn.Embedding(512, 4)
    with RowGradients(table).gathered():
        assert not table.sparse


def test_a_hook_sees_the_gradient_of_the_whole_table() -> None:
    reader = Reader()
    reader.table.weight.register_hook(lambda gradient: gradient.mul_(2.0))
    plain = whole(Reader(), 1)
    torch.testing.assert_close(gathered(reader, RowGradients(reader), 1), 2.0 * plain)


def test_wrapped_tables_learn_through_their_wrapper() -> None:
    """peft hands the frozen table's own settings to what it computes beside it."""
    from peft import LoraConfig, get_peft_model

    reader = get_peft_model(Reader(), LoraConfig(target_modules=["table"], r=2))
    tables = RowGradients(reader)
    tables.begin()
    with tables.gathered():
        reader(*texts(1)).backward()
    tables.give()
    learned = [weight.grad for weight in reader.parameters() if weight.requires_grad]
    assert learned
    assert all(gradient is not None and not gradient.is_sparse for gradient in learned)


def test_padding_has_no_gradient() -> None:
    reader = Reader(padding_idx=0)
    found = gathered(reader, RowGradients(reader), 1, 2, 3, 4)
    assert not found[0].any()
    assert found.any()


def test_a_table_that_also_scores_words_is_left_to_torch() -> None:
    reader = Reader()
    reader.scores = nn.Linear(4, 5000, bias=False)
    reader.scores.weight = reader.table.weight
    tables = RowGradients(reader)
    assert torch.equal(gathered(reader, tables, 1), whole(reader, 1))
    with tables.gathered():
        assert not reader.table.sparse


def test_a_gradient_that_reaches_the_whole_table_is_added() -> None:
    reader = Reader()
    tables = RowGradients(reader)
    tables.begin()
    with tables.gathered():
        reader(*texts(1)).backward()
    with tables.gathered():
        (reader(*texts(2)) + reader.table.weight.square().sum()).backward()
    tables.give()
    found = reader.table.weight.grad
    reader.zero_grad()
    (reader(*texts(1)) + reader(*texts(2)) + reader.table.weight.square().sum()).backward()
    torch.testing.assert_close(found, reader.table.weight.grad)


def test_a_frozen_table_stays_without_a_gradient() -> None:
    reader = Reader()
    reader.table.weight.requires_grad_(False)
    tables = RowGradients(reader)
    tables.begin()
    with tables.gathered():
        reader(*texts(1)).backward()
    tables.give()
    assert reader.table.weight.grad is None
    assert reader.mixed.weight.grad is not None


def test_tables_are_as_they_were_after_an_error() -> None:
    reader = Reader()
    tables = RowGradients(reader)
    with pytest.raises(IndexError), tables.gathered():
        reader(torch.tensor([[5000]]))
    assert not reader.table.sparse
