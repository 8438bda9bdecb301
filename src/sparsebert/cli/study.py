"""`sparsebert study`: the paper's experiments as grids of runs, on this machine or a Ray cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsebert.cli import options

if TYPE_CHECKING:
    from sparsebert.studies.study import StudyConfig, StudyPlan


def study(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="importance, diagonal, pruning, patterns, ablation, stages or all.")],
    out: Annotated[Path, typer.Option(help="The study folder; what is finished in it is not made again.")],
    scale: Annotated[
        str, typer.Option(help="smoke (minutes, not evidence), laptop (CPU hours), paper (the paper's sizes).")
    ] = "smoke",
    protocol: Annotated[str, typer.Option(help="mlm (the paper's), or distill (a dense teacher).")] = "mlm",
    engine: Annotated[str, typer.Option(help="local, or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster, or auto.", show_default="local")] = None,
    model: Annotated[str | None, typer.Option(help="Where runs start.", show_default="the scale's own")] = None,
    corpus: Annotated[Path | None, typer.Option(help=options.PREPARED, show_default="built-in text")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder that holds the official task folders.", show_default="built-in tasks")
    ] = None,
    sts: Annotated[Path | None, typer.Option(help="distill: STS sets to score.", show_default="STS-B")] = None,
    finished: Annotated[
        Path | None, typer.Option(help="Finished runs to take over: another study folder, or what --record wrote.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Add finished runs to this small file, for version control.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Runs made at once.", show_default="processors / threads")] = None,
    threads: Annotated[int, typer.Option(help="Of each run; part of what determines its bits.")] = 1,
    gpus: Annotated[float, typer.Option(help="Of each run, on a Ray cluster.")] = 0.0,
    seeds: Annotated[int | None, typer.Option(help="Of every condition.", show_default="the scale's")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the graph, what is finished, and the estimated time.")
    ] = False,
    max_hours: Annotated[float | None, typer.Option(help="Stop after a checkpoint when they are over.")] = None,
    device_flops: Annotated[
        float | None,
        typer.Option(help="Operations a second one slot sustains, for estimates.", show_default="measured here"),
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Run the paper scale, not only show its cost.")] = False,
    set_: Annotated[list[str] | None, options.other_settings("Another size of the scale, e.g. adapt_steps=50.")] = None,
) -> None:
    """Run the experiments of the paper: what is missing, in the right order, once.

    A run is known by everything that determines it, so the same command goes on after any interruption, studies in
    one folder share their runs, and nothing finished is made again. `sparsebert report` turns the folder into a page.

    Examples:

    sparsebert study all --scale smoke --out smoke

    sparsebert study all --scale laptop --corpus CORPUS --data DIR --out lab --record kept.jsonl.zst

    sparsebert study all --scale laptop --protocol distill --corpus CORPUS --data DIR --sts DIR/sts --out lab2

    sparsebert study all --scale laptop --engine ray --address auto --corpus CORPUS --data DIR --out /shared/lab
    """
    options.require_folder(out)
    options.require_file(record, "--record")
    config = _config(context, set_)
    if dry_run or (scale == "paper" and not confirm):
        _tell(config, runs=dry_run)
    else:
        _run(config)


def _config(context: typer.Context, pairs: list[str] | None) -> "StudyConfig":
    """What the options ask for, by name; the number of seeds is one of the scale's sizes."""
    from sparsebert.settings import declared
    from sparsebert.studies.scales import sizes as known_sizes
    from sparsebert.studies.study import StudyConfig

    sizes = options.read_settings(pairs, known_sizes(), options.options_of(study))
    seeds, flops = context.params["seeds"], context.params["device_flops"]
    given = options.settings_given(context, declared(StudyConfig))
    return StudyConfig(**given, flops_per_second=flops, sizes=sizes | ({} if seeds is None else {"seeds": seeds}))


def _tell(config: "StudyConfig", *, runs: bool) -> None:
    """What the study would cost, and with it each of its runs."""
    from tempfile import TemporaryDirectory

    from sparsebert.studies.study import plan_study

    with TemporaryDirectory() as place:
        plan = plan_study(config, Path(place))
    typer.echo("\n".join([*(graph_lines(plan) + phase_lines(plan) if runs else []), *cost_lines(plan)]))
    if config.scale == "paper":
        typer.echo("nothing was run; the paper scale runs with --confirm, --corpus and --data")


def _run(config: "StudyConfig") -> None:
    from sparsebert.progress import for_this_terminal
    from sparsebert.studies.study import planned, record, run_study

    with planned(config) as plan:
        typer.echo("\n".join(cost_lines(plan)), err=True)
        try:
            run_study(plan, for_this_terminal(f"study {plan.name}", "run"))
        finally:
            # Also when time is up or a run failed: what is finished is kept.
            record(plan, plan.graph.runs.values())
        runs = len(plan.graph.runs)
        typer.echo(f"{plan.paths.out}: study {plan.name}, scale {plan.graph.scale.name}, {runs} runs finished")


def graph_lines(plan: "StudyPlan") -> list[str]:
    """Each run with its state, its estimated time and what it waits for; fine-tuning runs of one parent in a line."""
    from sparsebert.progress import duration

    missing = {run.id for run in plan.missing}
    lines, tasks = [], dict[str, list[str]]()
    for run in plan.graph.runs.values():
        if run.stage == "finetune":
            mark = (" taught" if run.condition.taught else "") + ("" if run.id in missing else " (finished)")
            tasks.setdefault(run.depends[0], []).append(f"{run.condition.task}{mark}")
    for run in plan.graph.runs.values():
        if run.stage == "finetune":
            continue
        state = duration(plan.estimator.seconds(run)) if run.id in missing else "finished"
        after = f" after {', '.join(one[:8] for one in run.depends)}" if run.depends else ""
        lines.append(f"{run.id[:8]}  {run.stage:<10} {run.condition.label(run.stage):<36} {state}{after}")
        if run.id in tasks:
            lines.append(f"          finetune   {', '.join(tasks[run.id])}")
    return lines


def phase_lines(plan: "StudyPlan") -> list[str]:
    """The order of what is missing, with the hours of one slot until each part is done."""
    lines, hours = [f"order{'runs':>27} {'hours':>9} {'in all':>9}"], 0.0
    for phase, cost in plan.by_phase().items():
        hours += cost.hours
        lines.append(f"  {phase.words:<24} {cost.runs:>5} {cost.hours:>9,.2f} {hours:>9,.2f}")
    return lines


def cost_lines(plan: "StudyPlan") -> list[str]:
    """How much there is to do, in runs, operations and hours."""
    from collections import Counter

    from sparsebert.progress import duration

    cost, slots = plan.cost, plan.config.num_workers
    counts = Counter(run.stage for run in plan.missing)
    stages = ", ".join(f"{count} {stage}" for stage, count in counts.items()) or "none"
    total = len(plan.graph.runs)
    scale = plan.graph.scale
    of = f", protocol {scale.protocol}" if scale.is_distilled else ""
    title = f"study {plan.name}, scale {scale.name}{of}"
    lines = [f"{title}: {total} runs, {total - cost.runs} finished; to make: {stages}"]
    rate = plan.estimator.flops_per_second
    lines.append(
        f"about {cost.flops:.3g} operations, {cost.hours:,.2f} hours of one slot at {rate:.3g} operations a second; "
        f"{duration(cost.seconds / slots)} on {slots}"
    )
    return lines
