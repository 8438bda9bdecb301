/* Explorer: one head of a layer on a canvas; slide the sparsity or the threshold and see what stays. */
"use strict";
(() => {
  let data = null;
  const at = (id) => document.getElementById(`x-${id}`);
  const canvas = at("canvas"), profile = at("profile"), range = at("range");
  const state = { source: null, head: 0, row: -1, column: -1, frozen: false };
  const HEAT = ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"];
  const heat = HEAT.map((code) => [0, 2, 4].map((place) => parseInt(code.slice(place, place + 2), 16)));

  // Unpacking: sixteen bits a value (the upper half alone where mirror images are equal), or one bit an entry.
  const bytesOf = (packed) => Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const bitsOf = (packed, heads, size) => {
    const bytes = bytesOf(packed), row = Math.ceil(size / 8);
    return Array.from({ length: heads }, (_, head) => Uint8Array.from({ length: size }, (_, entry) => (bytes[head * row + (entry >> 3)] >> (entry & 7)) & 1));
  };
  // Heads of all layers are counted through: those of the first layer, then those of the second.
  const unpack = (source) => {
    const { n } = source, size = n * n, heads = source.layers * source.heads;
    const bits = source.kind === "kept" ? source.packed : source.frozen;
    if (bits) source.kept = bitsOf(bits, heads, size);
    const bytes = source.kind === "kept" ? null : bytesOf(source.packed);
    source.values = source.kind === "kept" ? source.kept : Array.from({ length: heads }, (_, head) => {
      const values = new Float32Array(size);
      const levels = new Uint16Array(bytes.buffer), scale = (source.high - source.low) / 65535;
      let place = head * (source.halved ? (n * (n + 1)) / 2 : size);
      for (let row = 0; row < n; row++) {
        for (let column = source.halved ? row : 0; column < n; column++) {
          const value = source.low + scale * levels[place++];
          values[row * n + column] = value;
          if (source.halved) values[column * n + row] = value;
        }
      }
      return values;
    });
    source.sorted = source.kind === "kept" ? [] : source.values.map((values) => Float32Array.from(values).sort().reverse());
    delete source.packed;
  };

  // What a head keeps: its highest entries, as many as the sparsity asks for, or all above the threshold.
  const isStated = () => state.source.kind === "kept";
  const showsValues = () => at("values").checked && !isStated();
  const nameOf = (head) => {
    const { layers, heads } = state.source, name = `head ${(head % heads) + 1}`;
    return layers === 1 ? name : `layer ${Math.floor(head / heads) + 1}, ${name}`;
  };
  const mode = () => document.querySelector("input[name=x-mode]:checked").value;
  const limits = () => ({ low: state.source.low, high: state.source.high });
  const threshold = (head) => {
    const { source } = state, share = range.value / 1000;
    if (mode() === "threshold") return limits().low + share * (limits().high - limits().low);
    const count = Math.round((1 - share) * source.n * source.n);
    return count ? source.sorted[head][count - 1] : Infinity;
  };
  const keptOf = (head) => {
    if (isStated() || state.frozen) {
      const kept = state.source.kept[head];
      return { kept, count: kept.reduce((sum, bit) => sum + bit, 0) };
    }
    const bound = threshold(head), values = state.source.values[head], kept = new Uint8Array(values.length);
    let count = 0;
    const most = mode() === "sparsity" ? Math.round((1 - range.value / 1000) * values.length) : values.length;
    // Entries above the bound first; those equal to it fill what is left, in order, so the count is exact.
    for (let entry = 0; entry < values.length; entry++) if (values[entry] > bound) { kept[entry] = 1; count++; }
    for (let entry = 0; entry < values.length && count < most; entry++) if (values[entry] === bound && !kept[entry]) { kept[entry] = 1; count++; }
    return { kept, count };
  };

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const rgb = (code) => [1, 3, 5].map((place) => parseInt(code.slice(place, place + 2), 16));
  const heatOf = (share) => {
    const place = Math.min(Math.max(share, 0), 1) * (heat.length - 1), below = Math.min(Math.floor(place), heat.length - 2);
    return heat[below].map((start, channel) => start + (place - below) * (heat[below + 1][channel] - start));
  };

  // The extremes are left out: single entries would make all others look alike.
  const rangeOf = (head) => [0.995, 0.005].map((share) => state.source.sorted[head][Math.floor(state.source.sorted[head].length * share)]);

  const paint = (head, kept, showValues) => {
    const { n, values } = state.source, image = new ImageData(n, n), pixels = new Uint32Array(image.data.buffer);
    const opaque = ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red;
    if (showValues) {
      const [low, high] = rangeOf(head), shades = Array.from({ length: 256 }, (_, level) => opaque(heatOf(level / 255)));
      const scale = 255 / (high - low || 1);
      for (let entry = 0; entry < n * n; entry++) pixels[entry] = shades[Math.min(255, Math.max(0, Math.round((values[head][entry] - low) * scale)))];
    } else {
      const ink = opaque(rgb(colour("--kept")));
      for (let entry = 0; entry < n * n; entry++) if (kept[entry]) pixels[entry] = ink;
    }
    const sheet = document.createElement("canvas");
    sheet.width = sheet.height = n;
    sheet.getContext("2d").putImageData(image, 0, 0);
    return sheet;
  };

  const sized = (target) => {
    const ratio = window.devicePixelRatio || 1, box = target.getBoundingClientRect();
    target.width = Math.round(box.width * ratio);
    target.height = Math.round(box.height * ratio);
    const context = target.getContext("2d");
    context.clearRect(0, 0, target.width, target.height);
    return context;
  };

  const draw = () => {
    const { source, head } = state, { kept, count } = keptOf(head), size = source.n * source.n;
    state.kept = kept;
    state.sheet = paint(head, kept, showsValues());
    drawStage();
    drawProfile(kept);
    at("ramp").hidden = !showsValues();
    if (showsValues()) ["low", "high"].forEach((end, place) => { at(end).textContent = rangeOf(head)[place].toFixed(3); });
    const all = source.values.reduce((sum, _, other) => sum + (other === head ? count : keptOf(other).count), 0);
    const percent = (share) => `${(100 * share).toFixed(2)} %`;
    at("sparsity").textContent = percent(1 - count / size);
    at("all").textContent = percent(1 - all / (size * source.values.length));
    at("kept").textContent = `${count.toLocaleString("en")} of ${size.toLocaleString("en")}`;
    at("keys").textContent = (count / source.n).toFixed(1);
    const told = isStated() ? "" : mode() === "sparsity" ? `${(range.value / 10).toFixed(1)} % removed` : `values above ${threshold(head).toFixed(4)}`;
    at("range-said").textContent = isStated() ? source.said : state.frozen ? "as it was frozen" : told;
    canvas.dataset.kept = String(count);
  };

  const drawStage = () => {
    const context = sized(canvas), { n } = state.source, cell = canvas.width / n;
    context.imageSmoothingEnabled = false;
    context.drawImage(state.sheet, 0, 0, canvas.width, canvas.height);
    if (state.row >= 0) {
      context.fillStyle = colour("--ink");
      context.globalAlpha = 0.13;
      context.fillRect(0, state.row * cell, canvas.width, cell);
      context.fillRect(state.column * cell, 0, cell, canvas.height);
      context.globalAlpha = 1;
      context.strokeStyle = colour("--c2");
      context.lineWidth = Math.max(2, cell / 5);
      context.strokeRect(state.column * cell, state.row * cell, cell, cell);
    }
    tellEntry();
  };

  const drawProfile = (kept) => {
    const context = sized(profile), { n } = state.source, width = profile.width / n;
    const shown = showsValues() ? state.source.values[state.head] : kept;
    const sums = new Float64Array(n), totals = new Float64Array(n);
    // Off the border: it would hide what distances there are.
    for (let row = 1; row < n - 1; row++) {
      for (let column = 1; column < n - 1; column++) {
        totals[Math.abs(row - column)]++;
        sums[Math.abs(row - column)] += shown[row * n + column];
      }
    }
    const means = sums.slice(0, Math.max(1, n - 2)).map((sum, distance) => sum / (totals[distance] || 1));
    // Shares are drawn from 0 to 1; values differ little beside zero, so theirs from the lowest to the highest.
    const [low, high] = showsValues() ? [Math.min(...means), Math.max(...means)] : [0, 1];
    context.fillStyle = colour("--line");
    context.fillRect(0, profile.height - 1, profile.width, 1);
    context.fillStyle = colour("--kept");
    means.forEach((mean, distance) => {
      const tall = ((mean - low) / (high - low || 1)) * (profile.height - 2);
      context.fillRect(distance * width, profile.height - tall, Math.max(1, width - 1), tall);
    });
    const where = "at each distance |offset|, from 0 on the left, off the border";
    at("profile-said").textContent = showsValues() ? `Mean value ${where}: from ${low.toFixed(4)} to ${high.toFixed(4)}` : `Share kept ${where}`;
  };

  const tellEntry = () => {
    const { row, column, source, head } = state;
    if (row < 0) return;
    const entry = row * source.n + column, offset = column - row;
    const value = isStated() ? "" : `value ${source.values[head][entry].toFixed(4)}, `;
    const place = offset === 0 ? "the diagonal" : `offset ${offset > 0 ? "+" : "\u2212"}${Math.abs(offset)}`;
    at("entry").textContent = `query ${row} → key ${column}, ${place}\n${value}${state.kept[entry] ? "kept" : "not kept"}`;
  };

  const point = (event) => {
    const box = canvas.getBoundingClientRect(), { n } = state.source;
    state.column = Math.min(n - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * n)));
    state.row = Math.min(n - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * n)));
    drawStage();
  };

  const headButton = (head) => {
    const { source } = state, button = document.createElement("button"), small = document.createElement("canvas");
    small.width = small.height = source.n;
    if (source.n < 64) small.style.imageRendering = "pixelated";  // drawn larger than it is: entries stay squares
    small.getContext("2d").drawImage(paint(head, keptOf(head).kept, showsValues()), 0, 0);
    button.type = "button";
    button.setAttribute("aria-label", nameOf(head));
    button.append(small, source.layers === 1 ? `Head ${head + 1}` : "");
    button.addEventListener("click", () => { state.head = head; pressHead(); draw(); });
    return button;
  };

  const drawHeads = () => {
    const { source } = state, rows = source.values.length, box = at("heads");
    box.classList.toggle("layers", source.layers > 1);
    box.style.gridTemplateColumns = source.layers > 1 ? `auto repeat(${source.heads}, minmax(34px, 1fr))` : "";
    box.replaceChildren(...(rows === 1 ? [] : source.values.flatMap((_, head) => {
      if (source.layers === 1 || head % source.heads) return [headButton(head)];
      const name = document.createElement("span");
      name.textContent = `Layer ${head / source.heads + 1}`;
      return [name, headButton(head)];
    })));
    pressHead();
  };

  const pressHead = () => {
    at("layer").value = String(Math.floor(state.head / state.source.heads));
    at("head").value = String(state.head % state.source.heads);
    at("heads").querySelectorAll("button").forEach((button, head) => button.setAttribute("aria-pressed", String(head === state.head)));
  };

  let waiting = 0;
  const refresh = () => {
    draw();
    clearTimeout(waiting);
    waiting = setTimeout(drawHeads, 60);
  };

  const options = (select, titles) => select.replaceChildren(...titles.map((title, place) => new Option(title, String(place))));
  const choose = (place) => {
    const source = data.sources[place];
    if (source.packed) unpack(source);
    Object.assign(state, { source, head: 0, row: -1, column: -1, frozen: false });
    options(at("layer"), Array.from({ length: source.layers }, (_, layer) => `Layer ${layer + 1}`));
    options(at("head"), Array.from({ length: source.heads }, (_, head) => `Head ${head + 1}`));
    at("layers").hidden = source.layers === 1;
    at("head").disabled = source.heads === 1;
    at("slide").disabled = at("values").disabled = isStated();
    at("values").checked = Boolean(source.as_values);
    at("frozen").hidden = !source.frozen;
    at("note").textContent = source.heads === 1 ? `${source.n} positions, one picture for all heads.` : `${source.n} positions, ${source.heads} heads${source.layers > 1 ? ` in each of ${source.layers} layers` : ""}.`;
    if (data.left_out) at("note").textContent += ` ${data.left_out} more sources are too large for this page.`;
    at("entry").textContent = "Point at an entry.";
    if (source.frozen) asFrozen(); else refresh();
  };
  const asFrozen = () => {
    const { source } = state, size = source.n * source.n * source.values.length;
    const count = source.kept.reduce((sum, head) => sum + head.reduce((part, bit) => part + bit, 0), 0);
    state.frozen = true;
    document.querySelector("input[name=x-mode][value=sparsity]").checked = true;
    range.value = Math.round(1000 * (1 - count / size));
    refresh();
  };

  at("source").addEventListener("change", (event) => choose(Number(event.target.value)));
  ["layer", "head"].forEach((which) => at(which).addEventListener("change", () => {
    state.head = Number(at("layer").value) * state.source.heads + Number(at("head").value);
    pressHead();
    draw();
  }));
  at("frozen").addEventListener("click", asFrozen);
  range.addEventListener("input", () => { state.frozen = false; refresh(); });
  at("values").addEventListener("change", refresh);
  document.querySelectorAll("input[name=x-mode]").forEach((radio) => radio.addEventListener("change", () => {
    // Stay where the reader was: the slider moves to the same pattern in the other unit.
    state.frozen = false;
    const { n, sorted, low, high } = state.source, values = sorted[state.head];
    if (mode() === "threshold") {
      const count = Math.round((1 - range.value / 1000) * n * n);
      range.value = Math.round((1000 * (values[Math.max(0, count - 1)] - low)) / (high - low || 1));
    } else {
      const bound = low + (range.value / 1000) * (high - low);
      range.value = Math.round(1000 * (1 - values.filter((value) => value > bound).length / (n * n)));
    }
    refresh();
  }));
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") { state.row = -1; drawStage(); } });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const { n } = state.source, clamp = (place) => Math.min(n - 1, Math.max(0, place));
    state.row = clamp(state.row + move[0]);
    state.column = clamp(state.column + move[1]);
    drawStage();
  });
  window.addEventListener("resize", () => state.source && draw());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.source && refresh());

  // Reading megabytes can wait until the reader comes near.
  const box = document.getElementById("explorer-box");
  const start = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    start.disconnect();
    data = JSON.parse(document.getElementById("explorer-data").textContent);
    options(at("source"), data.sources.map((source) => source.title));
    choose(0);
  }, { rootMargin: "600px" });
  start.observe(box);
})();
