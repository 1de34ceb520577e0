// What the viewer tells beside the pictures: a step's record, its scores, and their curve.
window.ConvergeBench = window.ConvergeBench || {};
ConvergeBench.facts = (element, file) => {
  "use strict";
  const dollars = (cost) => (cost === 0 ? "$0" : `$${cost < 0.01 ? cost.toPrecision(2) : cost.toFixed(cost < 1 ? 3 : 2)}`);
  const seconds = (time) => (time < 10 ? `${time.toFixed(1)} s` : `${Math.round(time)} s`);
  const bytes = (count) =>
    count < 1000 ? `${count} B` : count < 1e6 ? `${Math.round(count / 1000)} kB` : `${(count / 1e6).toFixed(1)} MB`;
  const number = (value) => (typeof value === "number" ? String(value).replace("-", "−") : value);

  const spent = (chain, step) =>
    chain.steps.slice(0, step).reduce((sum, one) => sum + (one.cost || 0) + (one.lost || 0), 0);

  function list(texts) {
    const made = element("ul");
    made.append(...texts.map((text) => element("li", "", text)));
    return made;
  }

  // One row of facts per thing that at least one of the chains knows.
  function rows(chains, at, data) {
    const text = (index) => (index === undefined ? "" : data.texts[index]);
    const texts = (indices) => (indices || []).map(text);
    const of = (chain) => (at === 0 ? { frame: chain.source, prompt: undefined } : chain.steps[at - 1]);
    const told = [
      ["Outcome", (s) => (at === 0 ? "the source" : s.outcome || "edited")],
      ["Why", (s) => text(s.detail)],
      ["Sent instead", (s) => text(s.effective)],
      ["Asked for", (s) => [s.resolution, text(s.asked)].filter(Boolean).join(", ")],
      ["Returned", (s) => (s.frame ? returned(s.frame, text) : "")],
      ["Picture", (s) => texts(s.frame && s.frame.notes).join("; ")],
      ["Cost", (s) => (s.cost === undefined ? "" : [dollars(s.cost), text(s.basis)].filter(Boolean).join(", "))],
      ["Lost calls", (s) => (s.lost ? dollars(s.lost) : "")],
      ["Cost so far", (s, chain) => (spent(chain, at) ? dollars(spent(chain, at)) : "")],
      ["Took", (s) => (s.seconds ? seconds(s.seconds) : "")],
      ["Calls made", (s) => s.attempts],
      ["Model", (s) => text(s.model)],
      ["Request", (s) => text(s.request)],
      ["Seed", (s) => s.seed],
      ["Settings", (s) => text(s.parameters)],
      ["Usage", (s) => text(s.usage)],
      ["Caveats", (s) => (s.caveats ? list(texts(s.caveats)) : "")],
    ];
    return told
      .map(([name, get]) => [name, chains.map((chain) => (of(chain) ? get(of(chain), chain) : ""))])
      .filter(([, values]) => values.some((value) => value !== undefined && value !== ""));
  }

  function returned(frame, text) {
    const words = [frame.size ? frame.size.join("×") : "", text(frame.format), bytes(frame.bytes)];
    const label = words.filter(Boolean).join(", ");
    if (!frame.file) return `${label}, file missing`;
    const link = element("a", "", label);
    link.href = file(frame);
    link.title = "the frame as received";
    return link;
  }

  function cell(value) {
    const made = element("td");
    made.append(value === undefined ? "" : value);
    return made;
  }

  function scores(chains, at, data) {
    const found = [];
    data.metrics.forEach((metric, index) => {
      const values = chains.map((chain) => {
        const step = at && chain.steps[at - 1];
        return (step && step.scores && step.scores[index]) || null;
      });
      if (!values.some(Boolean)) return;
      const plain = values.map((v) => (v ? (v[0] === "∞" ? Infinity : v[0]) : NaN)).filter((v) => v === v);
      const best = metric.higher ? Math.max(...plain) : Math.min(...plain);
      const several = plain.length > 1 && new Set(plain).size > 1;
      const row = element("tr");
      const head = element("th", "", metric.name);
      head.scope = "row";
      head.title = [metric.title, metric.origin && `measured by ${metric.origin}`].filter(Boolean).join("; ");
      head.append(element("span", "quiet", metric.higher ? " ↑" : " ↓"));
      row.append(head);
      for (const value of values) {
        const made = element("td", "num");
        if (value) {
          const is = value[0] === "∞" ? Infinity : value[0];
          made.append(element(several && is === best ? "strong" : "span", "", number(value[0])));
          if (value[1] !== undefined) {
            made.append(element("span", "v-c", `C ${value[1].toFixed(2)}`));
            made.style.setProperty("--c", value[1]);
            made.classList.add("has-c");
          }
        }
        row.append(made);
      }
      found.push(row);
    });
    return found;
  }

  function headings(chains, names) {
    const row = element("tr");
    row.append(element("td"));
    for (const chain of chains) {
      const head = element("th");
      head.scope = "col";
      head.append(...names(chain));
      row.append(head);
    }
    return row;
  }

  function draw(place, chains, at, data, names) {
    const table = element("table", "v-table");
    place.dataset.count = chains.length;
    const body = element("tbody");
    if (chains.length > 1) {
      const head = element("thead");
      head.append(headings(chains, names));
      table.append(head);
    }
    const measured = scores(chains, at, data);
    if (measured.length) {
      const title = element("tr", "v-group");
      const cell = element("th", "", "Against home ");
      cell.append(element("span", "quiet", "C: 1 is home, 0 another picture"));
      cell.colSpan = chains.length + 1;
      title.append(cell);
      body.append(title, ...measured);
    }
    const title = element("tr", "v-group");
    const head = element("th", "", "This step");
    head.colSpan = chains.length + 1;
    title.append(head);
    body.append(title);
    for (const [name, values] of rows(chains, at, data)) {
      const row = element("tr");
      const head = element("th", "", name);
      head.scope = "row";
      row.append(head, ...values.map(cell));
      body.append(row);
    }
    table.append(body);
    const open = new Set([...place.querySelectorAll("details[open]")].map((one) => one.dataset.chain));
    place.replaceChildren(table, ...chains.flatMap((chain) => reasoning(chain, at, data, names, open, chains.length > 1)));
  }

  function reasoning(chain, at, data, names, open, several) {
    const step = at && chain.steps[at - 1];
    if (!step || step.reasoning === undefined) return [];
    const made = element("details", "v-reasoning");
    made.dataset.chain = chain.id;
    made.open = open.has(chain.id);
    const summary = element("summary", "", "Reasoning");
    if (several) summary.append(" of ", ...names(chain));
    made.append(summary, element("p", "", data.texts[step.reasoning]));
    return [made];
  }

  // -- the curve above the slider ------------------------------------------------------------------

  function curve(svg, range, chains, metric, last, at, data, ink) {
    const make = (tag, told) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(told)) made.setAttribute(name, value);
      return made;
    };
    const index = data.metrics.findIndex((one) => one.name === metric);
    const lines = chains.map((chain) =>
      chain.steps.flatMap((step, number) => {
        const value = step.scores && step.scores[index] && step.scores[index][0];
        return typeof value === "number" ? [[number + 1, value]] : [];
      }),
    );
    const values = lines.flat().map(([, value]) => value);
    svg.replaceChildren();
    range.textContent = "";
    if (!values.length) return;
    const low = Math.min(...values);
    const high = Math.max(...values);
    const up = data.metrics[index].higher; // better is up, whichever way the metric goes
    const place = ([step, value]) => {
      const share = high === low ? 0.5 : (value - low) / (high - low);
      return [(100 * step) / Math.max(1, last), 36 - 32 * (up ? share : 1 - share)];
    };
    const here = (100 * at) / Math.max(1, last);
    svg.append(make("path", { d: `M${here} 0V40`, class: "here" }));
    lines.forEach((line, which) => {
      const points = line.map(place);
      const group = make("g", { class: `${ink(chains[which])}` });
      group.append(make("path", { d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join(""), class: "line" }));
      for (const [x, y] of points.length > 60 ? [] : points) {
        group.append(make("path", { d: `M${x.toFixed(2)} ${y.toFixed(2)}h0`, class: "dot" }));
      }
      svg.append(group);
    });
    range.textContent = low === high ? number(low) : `${number(up ? low : high)} … ${number(up ? high : low)}`;
  }

  return { draw, curve };
};
