"use strict";
// The page is whole without this script: it makes the answers and tables sortable.

(() => {
  const list = document.getElementById("answer-list");
  const answers = list ? [...list.children] : [];
  const scoresOf = new Map(answers.map((answer) => [answer, JSON.parse(answer.dataset.scores)]));
  const textOf = new Map(); // lower case, made when it is first searched

  // Filter and order ---------------------------------------------------------------------------------------------

  const form = document.getElementById("filter");

  function matches(answer, metric, label, words) {
    const scores = scoresOf.get(answer);
    const looked = metric ? [scores[metric]].filter(Boolean) : Object.values(scores);
    if (!looked.length || (label && !looked.some(([, state]) => state === label))) return false;
    if (!words) return true;
    if (!textOf.has(answer)) textOf.set(answer, answer.textContent.toLowerCase());
    return textOf.get(answer).includes(words);
  }

  function valueOf(answer, metric, missing) {
    const scores = scoresOf.get(answer);
    const values = (metric ? [scores[metric] || [null]] : Object.values(scores)).map(([value]) => value).filter((value) => value !== null);
    return values.length ? values.reduce((sum, value) => sum + value) / values.length : missing;
  }

  function ordered(order, metric) {
    const last = Infinity;
    const by = {
      low: (one, other) => valueOf(one, metric, last) - valueOf(other, metric, last),
      high: (one, other) => valueOf(other, metric, -last) - valueOf(one, metric, -last),
      row: (one, other) => one.dataset.row - other.dataset.row,
    }[order];
    return by ? [...answers].sort((one, other) => by(one, other) || 0) : answers;
  }

  function show() {
    const { metric, label, order, text } = form.elements;
    const words = text.value.trim().toLowerCase();
    let shown = 0;
    for (const answer of answers) {
      answer.hidden = !matches(answer, metric.value, label.value, words);
      shown += !answer.hidden;
    }
    list.append(...ordered(order.value, metric.value));
    document.getElementById("found").value = `${shown} of ${answers.length} answers` + (shown ? "" : ": none matches");
  }

  if (form) {
    const unfold = document.getElementById("unfold");
    form.hidden = false;
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(show));
    unfold.addEventListener("click", () => {
      const open = unfold.textContent === "Open all";
      for (const answer of answers) answer.open = open && !answer.hidden;
      unfold.textContent = open ? "Close all" : "Open all";
    });
    show();
  }

  // Failing answers: by a column's value, twenty-five at a time ---------------------------------------------------

  const choose = document.getElementById("choose");

  if (choose) {
    const rows = [...document.getElementById("failing-rows").rows];
    const groupsOf = new Map(rows.map((row) => [row, JSON.parse(row.dataset.groups)]));
    const { column, value } = choose.elements;
    const choices = JSON.parse(value.dataset.choices);
    const page = 25;
    let first = 0;

    const list = () => {
      const found = rows.filter((row) => !column.value || !value.value || (groupsOf.get(row)[column.value] || []).includes(value.value));
      first = Math.max(0, Math.min(first, found.length - 1));
      first -= first % page;
      const shown = new Set(found.slice(first, first + page));
      for (const row of rows) row.hidden = !shown.has(row);
      document.getElementById("earlier").disabled = first === 0;
      document.getElementById("later").disabled = first + page >= found.length;
      document.getElementById("listed").value = found.length ? `${first + 1} to ${first + shown.size} of ${found.length}` : "none";
    };

    column.addEventListener("input", () => {
      const known = choices[column.value] || [];
      value.replaceChildren(new Option("any", ""), ...known.map(([name, count]) => new Option(`${name} (${count})`, name)));
    });
    choose.addEventListener("input", () => { first = 0; list(); });
    choose.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("earlier").addEventListener("click", () => { first -= page; list(); });
    document.getElementById("later").addEventListener("click", () => { first += page; list(); });
    choose.hidden = false;
    list();
  }

  // Tables -------------------------------------------------------------------------------------------------------

  function sortKey(row, column) {
    const text = row.cells[column].textContent.trim();
    const number = Number.parseFloat(text.replace(/,/g, "").replace("−", "-"));
    return Number.isNaN(number) ? text : number;
  }

  function compared(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return one.localeCompare(other);
  }

  function sortBy(table, header, column) {
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].sort((one, other) => compared(sortKey(one, column), sortKey(other, column)));
    table.tBodies[0].append(...(descending ? rows.reverse() : rows));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(table, header, column));
    });
  }

  // Links into folded answers, and paper -------------------------------------------------------------------------

  function openTarget() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const answer = target && target.closest("details.answer");
    if (!answer) return;
    if (answer.hidden) form.reset();
    answer.hidden = false;
    for (let item = target; item; item = item.parentElement.closest("details")) item.open = true;
    if (target.classList.contains("body")) answer.scrollIntoView();
    else target.scrollIntoView({ block: "center" });
  }
  addEventListener("hashchange", openTarget);
  openTarget();

  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")].filter((item) => !item.closest("[hidden]"));
    for (const item of unfolded) item.open = true;
  });
  addEventListener("afterprint", () => {
    for (const item of unfolded) item.open = false;
    unfolded = [];
  });
})();
