"""The figures of encoder_peers.py as a table, a picture and a page."""

from pathlib import Path
from typing import Any

START, END = "<!-- encoder-peers: made by benchmarks/encoder_peers.py -->\n", "<!-- end of encoder-peers -->"
Line = dict[str, Any]


def speeds(lines: list[Line], threads: int) -> dict[str, dict[str, float]]:
    """Tokens a second of each encoder, by what it read."""
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        if line["kind"] == "speed" and line["threads"] == threads:
            found.setdefault(line["encoder"], {})[line["input"]] = line["tokens_per_second"]
    return found


def qualities(lines: list[Line]) -> dict[str, Line]:
    return {line["encoder"]: line for line in lines if line["kind"] == "quality"}


def table(lines: list[Line], threads: int) -> str:
    """A row an encoder: tokens a second of each input, mean STS, distance to the dense model in float32."""
    found, judged = speeds(lines, threads), qualities(lines)
    inputs = list(dict.fromkeys(line["input"] for line in lines if line["kind"] == "speed"))
    rows = [["encoder", *inputs, "mean STS", "distance"], ["---"] * (len(inputs) + 3)]
    for encoder, each in found.items():
        quality = judged.get(encoder)
        last = ["", ""] if quality is None else [f"{quality['mean']:.2f}", f"{quality['distance']:.5f}"]
        rows.append([encoder, *(f"{each[one]:,.0f}" if one in each else "-" for one in inputs), *last])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def ratios(lines: list[Line], threads: int) -> str:
    """Ours in int8 against the fastest peer of each input, and against torch in float32."""
    found = speeds(lines, threads)
    ours, torch = found.get("ours int8", {}), found.get("torch float32", {})
    said = []
    for one in ours:
        peers = {name: each[one] for name, each in found.items() if not name.startswith("ours") and one in each}
        best = max(peers, key=lambda name: peers[name])
        said.append(f"{one}: {ours[one] / peers[best]:.2f}x {best}")
        said[-1] += f", {ours[one] / torch[one]:.2f}x torch float32" if one in torch else ""
    return "ours int8 against the fastest other one. " + "; ".join(said) + "."


def draw(lines: list[Line], path: Path) -> None:
    """Quality against tokens a second, one thread, a panel an input."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "encoder-peers"
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    found, judged = speeds(lines, 1), qualities(lines)
    inputs = list(dict.fromkeys(one for each in found.values() for one in each))
    figure, axes = plt.subplots(1, len(inputs), figsize=(3.2 * len(inputs), 3.4), sharey=True, squeeze=False)
    markers = {"float32": "o", "bfloat16": "s", "int8": "^"}
    colours = {"torch": "#777777", "ours": "#c0392b", "ONNX Runtime": "#2471a3", "OpenVINO": "#1e8449"}
    for panel, one in zip(axes[0], inputs, strict=True):
        for encoder, quality in judged.items():
            program, _, precision = encoder.rpartition(" ")
            if one in found.get(encoder, {}):
                place = found[encoder][one], quality["mean"]
                panel.scatter(*place, marker=markers[precision], color=colours[program], label=encoder)
        panel.set(xscale="log", xlabel="tokens a second", title=f"{one} tokens" if one.isdigit() else one)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda speed, _: f"{speed / 1000:g}k"))
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.3)
    axes[0][0].set_ylabel("mean of five STS sets")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=6, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def report(lines: list[Line]) -> str:
    """Everything that is known so far, in Markdown."""
    about = next((line for line in lines if line["kind"] == "about"), None)
    parts = [] if about is None else [about["text"]]
    for threads in sorted({line["threads"] for line in lines if line["kind"] == "speed"}):
        clock = "CPU time" if threads == 1 else "wall time"
        word = "One thread" if threads == 1 else f"{threads} threads"
        parts += [f"{word}, tokens a second by {clock}; {ratios(lines, threads)}", table(lines, threads)]
    missing = [f"{line['encoder']} was left out: {line['why']}." for line in lines if line["kind"] == "missing"]
    return "\n\n".join([*parts, *dict.fromkeys(missing)])


def write_page(page: Path, lines: list[Line]) -> None:
    """Put the report between the page's two comments."""
    before, rest = page.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    page.write_text(f"{before}{START}{report(lines)}\n{END}{after}", encoding="utf-8")
