// SPDX-License-Identifier: Apache-2.0

// Replaces what is shown by what is so now, while somebody looks. Without it the page says what was so
// when it was opened.
"use strict";
(() => {
  const every = 2000; // from the end of one answer to the next question
  const patience = 10000; // for an answer, and without a refresh
  const stale = document.getElementById("stale");
  const said = document.getElementById("said");
  let asked = Date.now(); // when the answer that is shown came
  let offset = 0; // how far the server's clock is ahead of this one

  // plain is what a main part says, but for its countdowns.
  const plain = (main) => {
    const copy = main.cloneNode(true);
    for (const time of copy.querySelectorAll("time[data-count], time[data-until]")) { time.dataset.until = ""; time.textContent = time.dateTime; }
    return copy.outerHTML;
  };
  let shown = plain(document.getElementById("now"));

  // path finds an element again in the main part that takes the place of this one.
  const path = (element) => element.id ? "#" + CSS.escape(element.id)
    : element.getAttribute("href") ? element.tagName + "[href=" + JSON.stringify(element.getAttribute("href")) + "]" : "";

  const replace = (next) => {
    const now = document.getElementById("now");
    const focus = now.contains(document.activeElement) ? path(document.activeElement) : "";
    const open = [...now.querySelectorAll("details[open][id]")].map((d) => d.id);
    const brief = now.dataset.brief;
    now.replaceWith(next);
    for (const id of open) { document.getElementById(id)?.setAttribute("open", ""); }
    if (focus) { (next.querySelector(focus) || next).focus({ preventScroll: true }); }
    if (next.dataset.brief !== brief) { said.textContent = next.dataset.brief; }
  };

  // outdate shows why, and since when, the page is not refreshed; "" ends it. Colors would show a state that may be over.
  const outdate = (why) => {
    stale.textContent = why && why + " The page shows the state at " + new Date(asked + offset).toISOString().slice(11, 19) + " UTC.";
    stale.hidden = !why;
    document.body.classList.toggle("outdated", Boolean(why));
  };

  const ask = async () => {
    if (document.hidden) { return; }
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed) { // a refresh would end it
      if (Date.now() - asked > patience) { outdate("Not refreshed while text is selected."); }
      return;
    }
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(patience) });
      const html = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = html.getElementById("now");
      if (!next) { throw new Error(answer.statusText || String(answer.status)); }
      if (!answer.ok && answer.status >= 500) { throw new Error(next.dataset.brief); }
      asked = Date.now();
      outdate("");
      document.getElementById("asof").replaceWith(document.adoptNode(html.getElementById("asof")));
      clock();
      if (plain(next) !== shown) {
        shown = plain(next);
        document.title = html.title;
        replace(document.adoptNode(next));
        tick();
      }
    } catch (error) {
      outdate(error instanceof TypeError || error.name === "TimeoutError" ? "weir page does not answer." : error.message);
    }
  };

  const clock = () => {
    offset = Date.parse(document.getElementById("asof").dateTime) - asked;
  };

  const words = (seconds) => {
    if (seconds <= 0) { return "now"; }
    const h = Math.floor(seconds / 3600), m = Math.floor(seconds / 60) % 60, s = seconds % 60;
    return "in " + (h ? h + " h " + m + " min" : m ? m + " min " + s + " s" : s + " s");
  };

  // tick counts down to the times that are to come.
  const tick = () => {
    const now = Date.now() + offset;
    for (const time of document.querySelectorAll("time[data-count], time[data-until]")) {
      const left = Math.ceil((Date.parse(time.dateTime) - now) / 1000);
      if ("count" in time.dataset) { time.textContent = words(left); } else if (left > 0) { time.dataset.until = words(left); } else { time.dataset.until = ""; }
    }
  };

  clock();
  tick();
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", ask);
  (async () => {
    for (;;) {
      await new Promise((done) => { setTimeout(done, every); });
      await ask();
    }
  })();
})();
