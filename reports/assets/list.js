(function () {
  "use strict";
  // The list of runs: opening, unpacking, filtering, links and keys. Charts are in report.js.
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const runs = all(".run");
  const visible = () => runs.filter((run) => !run.hidden);

  // --- details: a page with many runs has them compressed, in blocks ---------------------------

  const blocks = all("script.block");
  const unpacked = new Map(); // number of a block -> promise of its texts
  function unpack(number) {
    if (!unpacked.has(number)) {
      const bytes = Uint8Array.from(atob(blocks[number].textContent.trim()), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      unpacked.set(number, new Response(stream).json());
    }
    return unpacked.get(number);
  }
  async function fill(run) {
    const body = run.querySelector(".body[data-folded]");
    if (!body) return;
    const [block, place] = body.dataset.folded.split(".").map(Number);
    const texts = await unpack(block);
    if (!body.dataset.folded) return; // by another call
    delete body.dataset.folded;
    body.innerHTML = texts[place]; // written by the template, which escapes; scripts in it would not run
  }
  const show = async (run) => { await fill(run); window.onceproof.watch(run); };

  // --- opening --------------------------------------------------------------------------------

  const unfold = document.getElementById("unfold");
  const tell = () => { unfold.textContent = visible().every((run) => run.open) ? "Close all" : "Open all"; };
  runs.forEach((run) => {
    if (run.open) show(run);
    run.addEventListener("toggle", () => { if (run.open) show(run); tell(); });
  });
  unfold.addEventListener("click", () => {
    const open = !visible().every((run) => run.open);
    visible().forEach((run) => { run.open = open; });
  });

  // --- filters: the fragment has them, so a link opens the same view -----------------------------

  const VIEW = "#runs?";
  const field = document.getElementById("filter");
  const choices = all(".tools select"); // named as in data-…
  const radios = all("input[name=standing]");
  const texts = new Map(runs.map((run) => [run, run.querySelector("summary").textContent.toLowerCase()]));
  const standing = () => radios.find((radio) => radio.checked).value;
  const has = (run, name, value) => (name === "faults"
    ? value.split(" ").every((fault) => (run.dataset.faults || "none").split(" ").includes(fault))
    : run.dataset[name] === value);

  function wanted() { // what is chosen, without what is not
    const found = new URLSearchParams();
    if (field.value.trim()) found.set("text", field.value.trim());
    if (standing()) found.set("standing", standing());
    choices.forEach((choice) => { if (choice.value) found.set(choice.name, choice.value); });
    return found;
  }
  function filter() {
    const asked = wanted();
    const words = (asked.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    runs.forEach((run) => {
      const kept = Array.from(asked).every(([name, value]) => (name === "text" ? words.every((word) => texts.get(run).includes(word)) : has(run, name, value)));
      run.hidden = !kept;
    });
    document.getElementById("filtered").textContent = `${visible().length} of ${runs.length} runs shown`;
    document.getElementById("filtered").classList.toggle("hidden", !asked.size);
    document.getElementById("unfilter").hidden = !asked.size;
    tell();
    return asked;
  }
  function changed() {
    const asked = filter();
    history.replaceState(null, "", asked.size ? VIEW + asked : "#runs");
  }
  function restore(asked) {
    field.value = asked.get("text") || "";
    (radios.find((radio) => radio.value === (asked.get("standing") || "")) || radios[0]).checked = true;
    choices.forEach((choice) => {
      const value = asked.get(choice.name) || "";
      choice.value = Array.from(choice.options).some((option) => option.value === value) ? value : "";
    });
    filter();
  }
  field.addEventListener("input", changed);
  [...radios, ...choices].forEach((choice) => choice.addEventListener("change", changed));
  document.getElementById("unfilter").addEventListener("click", () => { restore(new URLSearchParams()); changed(); field.focus(); });
  document.querySelector(".tools").hidden = runs.length < 2;

  // --- links and keys --------------------------------------------------------------------------

  async function follow() {
    if (location.hash.startsWith(VIEW)) {
      restore(new URLSearchParams(location.hash.slice(VIEW.length)));
      document.getElementById("runs").scrollIntoView({ behavior: "instant" });
      return;
    }
    const run = runs.find((each) => "#" + each.id === location.hash);
    if (!run) return;
    run.hidden = false;
    run.open = true;
    run.querySelector("summary").focus({ preventScroll: true });
    await fill(run); // its height is known only then
    run.scrollIntoView({ behavior: "instant" });
  }
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", (e) => { // the same link twice changes no hash
    const link = e.target.closest && e.target.closest('a[href^="#run"]');
    if (link && link.getAttribute("href") === location.hash) follow();
  });

  const STEPS = { ArrowDown: (i) => i + 1, ArrowUp: (i) => i - 1, Home: () => 0, End: (i, last) => last };
  document.getElementById("runs").addEventListener("keydown", (e) => { // from one run to the next
    const step = STEPS[e.key];
    if (!step || e.altKey || e.ctrlKey || e.metaKey || !e.target.matches(".run > summary")) return;
    const shown = visible();
    const next = shown[Math.min(shown.length - 1, Math.max(0, step(shown.indexOf(e.target.parentElement), shown.length - 1)))];
    next.querySelector("summary").focus();
    e.preventDefault();
  });

  // --- commands to copy ------------------------------------------------------------------------

  all(".copied").forEach((box) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", "Copy " + (box.dataset.what || "the command"));
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(box.querySelector("code")); // if the clipboard is refused it is selected at least
      try { await navigator.clipboard.writeText(box.querySelector("code").textContent); button.textContent = "Copied"; } catch { button.textContent = "Selected"; }
    });
    box.append(button);
  });

  tell();
  follow();
  document.body.dataset.drawnMs = String(Math.round(document.body.offsetHeight && performance.now())); // with its layout: tests read it
})();
