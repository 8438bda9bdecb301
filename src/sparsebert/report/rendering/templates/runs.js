/* A number that is a mean over several runs shows them all. */
"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("run-data").textContent);
  const card = document.getElementById("run-card");

  const line = (id) => {
    const [label, seed, folder, score, loss, measure] = runs[id];
    const item = document.createElement("li"), anchor = document.createElement("a"), value = document.createElement("span");
    anchor.href = folder;
    anchor.textContent = label;
    value.className = "value";
    const figure = score !== null ? score.toFixed(2) : loss !== null ? `${measure} ${loss.toFixed(4)}` : "";
    value.textContent = `seed ${seed} ${figure}`.trim();
    item.append(anchor, value);
    return item;
  };

  const show = (anchor, ids) => {
    const words = document.createElement("p"), list = document.createElement("ul");
    words.textContent = `${ids.length} runs behind this`;
    list.append(...ids.map(line));
    card.replaceChildren(words, list);
    card.hidden = false;
    const box = anchor.getBoundingClientRect();
    const left = Math.max(12, Math.min(box.left, document.documentElement.clientWidth - card.offsetWidth - 12));
    card.style.left = `${left + window.scrollX}px`;
    card.style.top = `${box.bottom + 6 + window.scrollY}px`;
    list.querySelector("a").focus({ preventScroll: true });
  };

  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[data-runs]");
    if (anchor && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      const ids = anchor.dataset.runs.split(" ").filter((id) => runs[id]);
      if (ids.length > 1) {
        event.preventDefault();
        show(anchor, ids);
        return;
      }
    }
    if (!event.target.closest("#run-card")) card.hidden = true;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") card.hidden = true; });
})();
