import pytest

from sparsebert.errors import ConfigError, SparseBertError
from sparsebert.report.judging.statistics import MIN_SEEDS
from sparsebert.studies.scales import SCALES, Scale, find_scale
from sparsebert.tasks.table import GLUE as ALL_GLUE
from sparsebert.tasks.table import TASKS
from sparsebert.training.recipes import find_recipe


def test_the_paper_scale_is_the_paper_recipe() -> None:
    scale, recipe = SCALES["paper"], find_recipe("paper")
    assert (scale.model, scale.length, scale.batch_size) == (recipe.model, recipe.length, recipe.batch_size)
    assert scale.base_steps == recipe.steps_for(recipe.epoch_tokens)
    assert round(scale.warmup * scale.base_steps, -3) == recipe.warmup_steps
    assert not scale.finetune  # the tasks' own settings are the appendix's


def test_the_paper_scale_scores_every_task_there_is() -> None:
    assert set(SCALES["paper"].diagonal_tasks) == set(TASKS)
    assert SCALES["paper"].pattern_tasks == ALL_GLUE


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_every_scale_leaves_room_for_ninety_five_per_cent_sparsity_inside_the_border(scale: Scale) -> None:
    n = scale.length
    assert (4 * n - 4) / n**2 < 1 - max(scale.stage_sparsities)


def test_the_laptop_scale_has_as_many_seeds_and_the_tasks_that_the_findings_need() -> None:
    scale = SCALES["laptop"]
    assert scale.seeds > MIN_SEEDS
    assert scale.pruning_tasks
    assert set(scale.task_sparsities) <= set(scale.sparsities)
    assert set(scale.pattern_tasks) == set(scale.diagonal_tasks)


def test_seeds_that_are_asked_of_every_condition_hold_for_every_study() -> None:
    assert SCALES["laptop"].study_seeds
    assert SCALES["laptop"].changed({"seeds": 3}).study_seeds == {}
    assert SCALES["laptop"].changed({"seeds": 3, "study_seeds": {"stages": 4}}).study_seeds == {"stages": 4}


def test_a_size_can_be_changed_and_an_unknown_one_is_refused() -> None:
    assert SCALES["smoke"].changed({"pruning_tasks": ["rte"]}).pruning_tasks == ("rte",)
    with pytest.raises(ConfigError, match="no size 'lenght'"):
        SCALES["smoke"].changed({"lenght": 12})
    with pytest.raises(ConfigError, match="looks is 0"):
        SCALES["smoke"].changed({"looks": 0})
    for wrong in (0, "three"):
        with pytest.raises(ConfigError, match=r"study_seeds is .*diagonal.*each value a whole number of at least 1"):
            SCALES["smoke"].changed({"study_seeds": {"diagonal": wrong}})
    for wrong_counts in (2, {"rte": -1}):
        with pytest.raises(ConfigError, match=r"few_seeds is .*patterns.*each value a whole number of at least 0"):
            SCALES["smoke"].changed({"few_seeds": {"patterns": wrong_counts}})
    with pytest.raises(ConfigError, match="seeds is 0"):
        SCALES["smoke"].changed({"seeds": 0})
    with pytest.raises(SparseBertError, match="'imdb'"):
        SCALES["smoke"].changed({"pattern_tasks": ["imdb"]})
    with pytest.raises(ConfigError, match="finetune has no setting 'lenght'; did you mean length"):
        SCALES["smoke"].changed({"finetune": {"lenght": 12}})
    with pytest.raises(ConfigError, match="no scale 'huge'"):
        find_scale("huge")
