// SPDX-License-Identifier: Apache-2.0

// Refreshes the page while it is visible. Without it the page shows the state at the time it was opened.
"use strict";
(() => {
  const interval = 2000; // between a response and the next request
  const timeout = 10000; // of a request, and until the page is marked as outdated
  const stale = document.getElementById("stale");
  const announcement = document.getElementById("announcement");
  let refreshedAt = Date.now();
  let offset = 0; // of the server's clock, in ms

  // plain returns the HTML of the content without countdowns.
  const plain = (main) => {
    const copy = main.cloneNode(true);
    for (const time of copy.querySelectorAll("time[data-count], time[data-until]")) { time.dataset.until = ""; time.textContent = time.dateTime; }
    return copy.outerHTML;
  };
  let shown = plain(document.getElementById("content"));

  // path returns a selector for the same element in the new content.
  const path = (element) => element.id ? "#" + CSS.escape(element.id)
    : element.getAttribute("href") ? element.tagName + "[href=" + JSON.stringify(element.getAttribute("href")) + "]" : "";

  const replace = (next) => {
    const current = document.getElementById("content");
    const focus = current.contains(document.activeElement) ? path(document.activeElement) : "";
    const open = [...current.querySelectorAll("details[open][id]")].map((d) => d.id);
    const summary = current.dataset.summary;
    current.replaceWith(next);
    for (const id of open) { document.getElementById(id)?.setAttribute("open", ""); }
    if (focus) { (next.querySelector(focus) || next).focus({ preventScroll: true }); }
    if (next.dataset.summary !== summary) { announcement.textContent = next.dataset.summary; }
  };

  // outdate shows why and since when the page is not refreshed, and removes its colors; "" ends this.
  const outdate = (reason) => {
    stale.textContent = reason && reason + " The page shows the state at " + new Date(refreshedAt + offset).toISOString().slice(11, 19) + " UTC.";
    stale.hidden = !reason;
    document.body.classList.toggle("outdated", Boolean(reason));
  };

  const refresh = async () => {
    if (document.hidden) { return; }
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed) { // a refresh would end it
      if (Date.now() - refreshedAt > timeout) { outdate("Not refreshed while text is selected."); }
      return;
    }
    try {
      const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(timeout) });
      const html = new DOMParser().parseFromString(await response.text(), "text/html");
      const next = html.getElementById("content");
      if (!next) { throw new Error(response.statusText || String(response.status)); }
      if (!response.ok && response.status >= 500) { throw new Error(next.dataset.summary); }
      refreshedAt = Date.now();
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
    offset = Date.parse(document.getElementById("asof").dateTime) - refreshedAt;
  };

  const formatWait = (seconds) => {
    if (seconds <= 0) { return "now"; }
    const h = Math.floor(seconds / 3600), m = Math.floor(seconds / 60) % 60, s = seconds % 60;
    return "in " + (h ? h + " h " + m + " min" : m ? m + " min " + s + " s" : s + " s");
  };

  // tick updates the countdowns.
  const tick = () => {
    const now = Date.now() + offset;
    for (const time of document.querySelectorAll("time[data-count], time[data-until]")) {
      const left = Math.ceil((Date.parse(time.dateTime) - now) / 1000);
      if ("count" in time.dataset) { time.textContent = formatWait(left); } else if (left > 0) { time.dataset.until = formatWait(left); } else { time.dataset.until = ""; }
    }
  };

  clock();
  tick();
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", refresh);
  (async () => {
    for (;;) {
      await new Promise((done) => { setTimeout(done, interval); });
      await refresh();
    }
  })();
})();
