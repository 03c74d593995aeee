(function () {
  "use strict";
  // Errors are counted where a test can read them: a page that fails in silence looks like one that works.
  const root = document.documentElement;
  let errors = 0;
  const note = (text) => { errors += 1; root.dataset.errors = String(errors); root.dataset.error = String(text); };
  root.dataset.errors = "0";
  window.addEventListener("error", (e) => note(e.message || "error"));
  window.addEventListener("unhandledrejection", (e) => note(e.reason));
  document.addEventListener("securitypolicyviolation", (e) => note("blocked: " + e.violatedDirective + " " + e.blockedURI));

  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const thousands = new Intl.NumberFormat("en");
  const HEIGHT = 236;
  const drawn = new Map(); // chart element -> uPlot

  // --- charts ---------------------------------------------------------------------------------

  function read(charts) {
    const run = JSON.parse(charts.querySelector("script").textContent);
    run.t = run.acked.map((_, i) => run.t0 + (i + 0.5) * run.dt); // a rate belongs to the middle of its bucket
    return run;
  }

  // Fault windows: shaded beneath the lines, bite and label on top of them.
  function windowsPlugin(windows) {
    const ratio = () => window.devicePixelRatio || 1;
    const across = (u, t) => Math.min(u.bbox.left + u.bbox.width, Math.max(u.bbox.left, u.valToPos(t, "x", true)));
    function shade(u) {
      const { ctx, bbox } = u;
      ctx.save();
      for (const w of windows) {
        const open = across(u, w.open);
        const heal = across(u, w.heal === null ? w.healed : w.heal);
        const healed = across(u, w.healed);
        ctx.fillStyle = colour("held");
        ctx.fillRect(open, bbox.top, Math.max(heal - open, ratio()), bbox.height);
        ctx.fillStyle = colour("healing");
        ctx.fillRect(heal, bbox.top, healed - heal, bbox.height);
      }
      ctx.restore();
    }
    function mark(u) {
      const { ctx, bbox } = u;
      const r = ratio();
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top - 18 * r, bbox.width, bbox.height + 18 * r);
      ctx.clip();
      ctx.font = `${11 * r}px ${colour("sans")}`;
      ctx.textBaseline = "bottom";
      ctx.textAlign = "left";
      let free = -Infinity; // labels are above the plot and never over one another
      for (const w of windows) {
        const open = across(u, w.open);
        if (w.healed < u.scales.x.min || w.open > u.scales.x.max) continue;
        ctx.fillStyle = ctx.strokeStyle = colour("bite");
        const long = windows.length > 1 ? `${w.n} ${w.label}` : w.label;
        const label = [long, String(w.n)].find((text) => open > free && open + ctx.measureText(text).width <= bbox.left + bbox.width);
        if (label) { ctx.fillText(label, open, bbox.top - 3 * r); free = open + ctx.measureText(label).width + 8 * r; }
        if (w.bite === null || w.bite < u.scales.x.min || w.bite > u.scales.x.max) continue;
        const x = Math.round(across(u, w.bite)) + 0.5;
        ctx.lineWidth = 1.25 * r;
        ctx.setLineDash([4 * r, 3 * r]);
        ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      }
      ctx.restore();
    }
    return { hooks: { drawClear: shade, draw: mark } };
  }

  const rate = (u, v) => (v == null ? "–" : thousands.format(Math.round(v)));
  const latency = (v) => (v >= 1000 ? +(v / 1000).toPrecision(3) + " s" : +v.toPrecision(3) + " ms");

  function draw(box) {
    const charts = box.closest(".charts");
    const run = read(charts);
    const id = charts.closest(".run").id;
    const line = (name, more) => Object.assign({ label: name, stroke: colour(name), width: 1.6, points: { show: false } }, more);
    const axis = { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: `11px ${colour("sans")}` };
    const options = {
      width: box.clientWidth, height: HEIGHT, padding: [20, 12, 0, 0],
      cursor: { sync: { key: id }, points: { size: 6 }, drag: { x: true, y: false } },
      scales: { x: { time: false } },
      axes: [Object.assign({ values: (u, ticks) => ticks.map((t) => +t.toFixed(3) + " s"), size: 30, gap: 4 }, axis)],
      series: [{ label: "at", value: (u, v) => (v == null ? "–" : v.toFixed(2) + " s") }],
      plugins: [windowsPlugin(run.windows)],
    };
    let columns;
    const picture = window.onceproofPictures[box.dataset.kind];
    if (picture) {
      const span = { first: run.t0, end: run.t0 + run.acked.length * run.dt };
      columns = picture(box, span, options, { axis, line, colour, thousands, latency });
      if (!columns) { box.textContent = "Not known for this run."; drawn.set(box, null); return; }
    } else if (box.dataset.kind === "rates") {
      columns = [run.t, run.attempted, run.acked, run.delivered];
      options.scales.y = { range: (u, low, high) => [0, Math.max(1, high * 1.06)] };
      options.axes.push(Object.assign({ size: 54, values: (u, ticks) => ticks.map((t) => thousands.format(t)) }, axis));
      options.series.push(line("attempted", { dash: [4, 3], value: rate }), line("acked", { fill: colour("acked-fill"), value: rate }), line("delivered", { value: rate }));
    } else {
      const above = (v) => (v > 0 ? v : null); // a log scale has no zero
      columns = [run.t, run.p50.map(above), run.p99.map(above)];
      const known = columns.slice(1).flat().filter((v) => v !== null);
      if (!known.length) { box.textContent = "No acknowledgement, so no latency."; drawn.set(box, null); return; }
      const low = 10 ** Math.floor(Math.log10(Math.min(...known)));
      const high = Math.max(low * 10, 10 ** Math.ceil(Math.log10(Math.max(...known))));
      options.scales.y = { distr: 3, log: 10, range: [low, high] };
      const decade = (t) => Math.abs(Math.log10(t) - Math.round(Math.log10(t))) < 1e-9;
      options.axes.push(Object.assign({ size: 54, splits: () => Array.from({ length: Math.round(Math.log10(high / low)) + 1 }, (_, i) => low * 10 ** i), filter: (u, ticks) => ticks.map((t) => (decade(t) ? t : null)), values: (u, ticks) => ticks.map((t) => (t === null ? "" : latency(t))) }, axis));
      const value = (u, v) => (v == null ? "–" : latency(v));
      options.series.push(line("p50", { value }), line("p99", { value }));
    }
    box.textContent = "";
    drawn.set(box, new uPlot(options, columns, box));
    root.dataset.charts = String(drawn.size);
  }

  function redraw() {
    for (const [box, chart] of Array.from(drawn)) { if (chart) { chart.destroy(); draw(box); } }
  }

  // Hundreds of runs: a chart is drawn when its run is open and near the screen.
  const MARGIN = 500;
  const near = new IntersectionObserver((entries) => {
    for (const e of entries) {
      if (e.isIntersecting && !drawn.has(e.target)) { near.unobserve(e.target); draw(e.target); }
    }
  }, { rootMargin: MARGIN + "px" });
  function isNear(box) {
    const place = box.getBoundingClientRect();
    return place.bottom > -MARGIN && place.top < innerHeight + MARGIN;
  }
  const widths = new ResizeObserver((entries) => {
    for (const e of entries) {
      const chart = drawn.get(e.target);
      const width = Math.floor(e.contentRect.width);
      if (chart && width > 0 && Math.abs(chart.width - width) > 1) chart.setSize({ width, height: chart.height });
    }
  });
  const watch = (run) => all(".chart", run).forEach((box) => {
    if (!drawn.has(box)) { if (isNear(box)) draw(box); else near.observe(box); }
    widths.observe(box);
  });

  window.onceproof = { watch }; // for list.js

  // --- theme and paper ------------------------------------------------------------------------

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("beforeprint", () => { // on paper: light, and what is open has its charts
    root.dataset.print = "";
    all(".run[open]:not([hidden]) .chart").forEach((box) => { if (!drawn.has(box)) draw(box); });
    redraw();
  });
  window.addEventListener("afterprint", () => { delete root.dataset.print; redraw(); });
})();
