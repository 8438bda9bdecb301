/* Tables: sorting by a column, and each table as a CSV file. */
"use strict";
(() => {
  const cellAt = (row, column) => row.children[column];
  const valueOf = (cell) => (cell && cell.dataset.value !== undefined ? cell.dataset.value : cell ? cell.textContent : "");

  const compare = (a, b) => {
    // Empty cells stand last, whichever way the table is sorted.
    const x = Number(a), y = Number(b);
    return a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y) ? x - y : a.localeCompare(b, "en", { numeric: true });
  };

  const sortBody = (body, column, direction) => {
    const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
    rows.sort((one, other) => {
      const a = valueOf(cellAt(one, column)), b = valueOf(cellAt(other, column));
      if (a === "" || b === "") return (a === "") - (b === "");
      return direction * compare(a, b);
    });
    rows.forEach((row) => body.append(row));
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.sort");
    if (!button) return;
    const heading = button.closest("th"), table = button.closest("table");
    const rising = heading.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll(":scope > thead th").forEach((other) => other.setAttribute("aria-sort", "none"));
    heading.setAttribute("aria-sort", rising ? "descending" : "ascending");
    [...table.tBodies].forEach((body) => sortBody(body, Number(button.dataset.column), rising ? -1 : 1));
  });

  // A text that a spreadsheet would run as a formula is written as text.
  const guarded = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const field = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  const csvOf = (table) => {
    const headings = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.classList.contains("group"));
    const hasPaper = headings.map((_, column) => rows.some((row) => cellAt(row, column)?.dataset.paper !== undefined));
    const hasGroups = Boolean(table.querySelector("tr.group"));
    const first = headings.flatMap((title, column) => (hasPaper[column] ? [title, `${title} (paper)`] : [title]));
    const lines = [hasGroups ? ["Group", ...first] : first];
    for (const row of rows) {
      const values = headings.flatMap((_, column) => {
        const cell = cellAt(row, column);
        return hasPaper[column] ? [valueOf(cell), cell?.dataset.paper ?? ""] : [valueOf(cell)];
      });
      const group = row.parentElement.querySelector("tr.group")?.textContent ?? "";
      lines.push(hasGroups ? [group, ...values] : values);
    }
    return lines.map((line) => line.map((text) => field(guarded(text))).join(",")).join("\r\n") + "\r\n";
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.csv");
    if (!button) return;
    const table = document.getElementById(`table-${button.dataset.name}`);
    const address = URL.createObjectURL(new Blob(["\ufeff", csvOf(table)], { type: "text/csv" }));
    const anchor = document.createElement("a");
    anchor.href = address;
    anchor.download = `${button.dataset.name}.csv`;
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
})();
