// Pictures of a run below its charts: the same time axis, cursor and zoom, because each is a chart of uPlot too.
// report.js calls the function of a picture with the options of a chart and the tools it has; it returns the columns of
// the chart, or null if there is nothing to draw.
window.onceproofPictures = (function () {
  "use strict";
  const SIDE = 96; // left of every picture, so that they line up
  const LANE = 26, BAR = 15, STRIP = 4, DOTS = 250, LAG = 170;
  const SEEN_THROUGH = 0.75; // of bars, above the fault windows
  const parsed = new WeakMap();

  function pictures(charts) {
    const script = charts.querySelector("script.pictures");
    if (!parsed.has(script)) parsed.set(script, JSON.parse(script.textContent));
    return parsed.get(script);
  }
  const short = (name) => (name.length > 14 ? name.slice(0, 6) + "…" + name.slice(-7) : name);
  const ratio = () => window.devicePixelRatio || 1;

  function clipped(u, draw) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx);
    ctx.restore();
  }

  // Text in a box, if it fits; a part of it would mislead.
  function label(ctx, text, left, right, middle) {
    if (right - left < ctx.measureText(text).width + 8 * ratio()) return;
    ctx.fillText(text, left + 4 * ratio(), middle);
  }

  // --- lanes: a bar from each state to the next ------------------------------------------------

  function lanes(all, run, options, tools, bar) {
    const names = all.map((lane) => short(lane.name));
    options.height = 50 + all.length * LANE;
    options.scales.y = { dir: -1, range: [0, all.length] };
    options.axes.push(Object.assign({}, tools.axis, {
      size: SIDE, grid: { show: false }, splits: () => names.map((_, i) => i + 0.5), values: () => names, filter: (u, splits) => splits,
    }));
    options.series.push({ show: true, paths: () => null, points: { show: false } });
    options.legend = { show: false };
    options.plugins.unshift({ hooks: { draw: (u) => clipped(u, (ctx) => {
      ctx.font = `${11 * ratio()}px ${tools.colour("sans")}`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      all.forEach((lane, i) => {
        const middle = u.valToPos(i + 0.5, "y", true);
        lane.states.forEach(([from, ...state], n) => {
          const until = n + 1 < lane.states.length ? lane.states[n + 1][0] : run.end;
          const edges = [from, until].map((t) => Math.min(u.bbox.left + u.bbox.width, Math.max(u.bbox.left, u.valToPos(Math.max(t, run.first), "x", true))));
          if (edges[1] > edges[0]) bar(ctx, edges[0], edges[1], middle, state, lane);
        });
      });
    }) } });
    return [[run.first, run.end], [null, null]];
  }

  function leaders(box, run, options, tools) {
    const all = pictures(box.closest(".charts"));
    const r = ratio();
    return lanes(all.leaders, run, options, tools, (ctx, left, right, middle, [leader, inSync], lane) => {
      const top = middle - (BAR + STRIP) / 2 * r;
      ctx.strokeStyle = tools.colour("line");
      ctx.lineWidth = r;
      if (leader >= 0) {
        ctx.fillStyle = tools.colour("lane-" + (leader % 8));
        ctx.globalAlpha = SEEN_THROUGH;
        ctx.fillRect(left, top, right - left, BAR * r);
        ctx.globalAlpha = 1;
      } else ctx.setLineDash([4 * r, 3 * r]);
      ctx.strokeRect(left, top, right - left, BAR * r);
      ctx.setLineDash([]);
      ctx.fillStyle = tools.colour("ink");
      const fewer = inSync < lane.of ? `, ${inSync} of ${lane.of} in sync` : "";
      const name = leader >= 0 ? all.nodes[leader] : "no leader";
      label(ctx, right - left < ctx.measureText(name + fewer).width + 8 * r && fewer ? `${inSync} of ${lane.of}` : name + fewer, left, right, top + BAR / 2 * r);
      ctx.fillStyle = tools.colour("in-sync");
      const share = lane.of ? Math.min(1, inSync / lane.of) : 0;
      const high = Math.max(1, STRIP * share) * r;
      ctx.fillRect(left, top + (BAR + 1) * r, right - left, share === 1 ? STRIP * r : high / 2);
    });
  }

  function members(box, run, options, tools) {
    const r = ratio();
    return lanes(pictures(box.closest(".charts")).members, run, options, tools, (ctx, left, right, middle, [held]) => {
      ctx.fillStyle = tools.colour(held ? "lane-0" : "line");
      const high = (held ? BAR : 2) * r;
      ctx.globalAlpha = SEEN_THROUGH;
      ctx.fillRect(left, middle - high / 2, right - left, high);
      ctx.globalAlpha = 1;
      ctx.fillStyle = tools.colour("soft");
      if (held) ctx.fillRect(left, middle - high / 2, r, high); // an edge where it begins
      ctx.fillStyle = tools.colour("ink");
      label(ctx, held, left, right, middle);
    });
  }

  // --- messages ---------------------------------------------------------------------------------

  // A mark of the size s around (x, y) for each fate; pictures.py has the same marks as characters.
  const line = (ctx, ...points) => { ctx.beginPath(); points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y))); };
  const cross = (ctx, x, y, s) => { line(ctx, [x - s, y - s], [x + s, y + s]); ctx.stroke(); line(ctx, [x - s, y + s], [x + s, y - s]); ctx.stroke(); };
  const plus = (ctx, x, y, s) => { line(ctx, [x - s, y], [x + s, y]); ctx.stroke(); line(ctx, [x, y - s], [x, y + s]); ctx.stroke(); };
  const filled = (corners) => (ctx, x, y, s) => { line(ctx, ...corners.map(([a, b]) => [x + a * s, y + b * s])); ctx.fill(); };
  const corners = (n, inner) => Array.from({ length: inner ? 2 * n : n }, (_, i) => {
    const turn = (i * 2 * Math.PI) / (inner ? 2 * n : n) - Math.PI / 2;
    const far = inner && i % 2 ? inner : 1.2;
    return [far * Math.cos(turn), far * Math.sin(turn)];
  });
  const MARKS = [
    filled(corners(8)), filled([[-1, -1], [1, -1], [1, 1], [-1, 1]]), filled([[0, -1.2], [1.1, 0.9], [-1.1, 0.9]]),
    cross, plus, filled([[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]]), filled(corners(5, 0.5)), filled(corners(5)),
  ];
  const OUTCOMES = 3; // fates that are no anomalies

  function messages(box, run, options, tools) {
    const dots = pictures(box.closest(".charts")).dots;
    if (!dots) return null;
    let t = dots.first;
    const times = dots.step.map((step) => Math.min(run.end, Math.max(run.first, (t += step) / 1000)));
    const waits = dots.ack.filter((ms) => ms !== null && ms > 0);
    const low = 10 ** Math.floor(Math.log10(waits.length ? Math.min(...waits) : 1));
    const high = Math.max(low * 10, 10 ** Math.ceil(Math.log10(waits.length ? Math.max(...waits) : 10)));
    const none = high * 3; // the height of messages without an outcome, above all others
    const heights = dots.ack.map((ms) => (ms === null ? none : Math.max(low, ms)));
    const splits = Array.from({ length: Math.round(Math.log10(high / low)) + 1 }, (_, i) => low * 10 ** i);
    options.height = DOTS;
    options.scales.y = { distr: 3, log: 10, range: [low / 1.5, none * 1.6] };
    options.axes.push(Object.assign({}, tools.axis, {
      size: SIDE, splits: () => [...splits, none], filter: (u, all) => all, values: (u, all) => all.map((v) => (v === none ? "no outcome" : tools.latency(v))),
    }));
    options.series.push({ show: true, paths: () => null, points: { show: false } });
    options.legend = { show: false };
    options.plugins.unshift({ hooks: { draw: (u) => clipped(u, (ctx) => {
      const r = ratio();
      for (let fate = 0; fate < dots.fates; fate += 1) { // anomalies last, above all others
        const place = Math.min(fate, MARKS.length - 1);
        const anomaly = fate >= OUTCOMES;
        ctx.fillStyle = ctx.strokeStyle = tools.colour("fate-" + place);
        ctx.lineWidth = 1.6 * r;
        ctx.globalAlpha = fate === 0 ? 0.5 : 1;
        const size = (anomaly ? 4 : fate === 0 ? 1.5 : 2.4) * r;
        for (let i = 0; i < times.length; i += 1) {
          if (dots.fate[i] !== fate || times[i] < u.scales.x.min || times[i] > u.scales.x.max) continue;
          MARKS[place](ctx, u.valToPos(times[i], "x", true), u.valToPos(heights[i], "y", true), size);
        }
      }
    }) } });
    return [[run.first, ...times, run.end], [null, ...heights, null]];
  }

  // --- lag --------------------------------------------------------------------------------------

  function lag(box, run, options, tools) {
    const { t0, dt, partitions } = pictures(box.closest(".charts")).lag;
    const times = partitions[0].behind.map((_, i) => t0 + i * dt);
    const together = times.map((_, i) => partitions.reduce((sum, one) => sum + (one.behind[i] || 0), 0));
    const value = (u, v) => (v == null ? "–" : tools.thousands.format(v));
    const padded = (values) => [null, ...values, null];
    options.height = LAG;
    options.scales.y = { range: (u, low, high) => [0, Math.max(1, high * 1.06)] };
    options.axes.push(Object.assign({}, tools.axis, { size: SIDE, values: (u, ticks) => ticks.map((v) => tools.thousands.format(v)) }));
    options.series.push(tools.line("together", { stroke: tools.colour("ink"), value, spanGaps: true }));
    const drawn = partitions.length > 1 ? partitions : [];
    drawn.forEach((one, i) => options.series.push(tools.line(one.name, { stroke: tools.colour("fate-" + [0, 6, 5, 4, 3, 1, 2][i % 7]), width: 1, dash: i < 7 ? [] : [4, 3], value, spanGaps: true })));
    const edge = (t) => Math.min(run.end, Math.max(run.first, t));
    return [[run.first, ...times.map(edge), run.end], padded(together), ...drawn.map((one) => padded(one.behind))];
  }

  return { leaders, members, messages, lag };
})();
