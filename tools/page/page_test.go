// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pages are the pages of a cluster with problems.
var pages = []struct{ name, path string }{
	{"overview", ""},
	{"pools", "pools"},
	{"services", "services"},
	{"found", "pools?find=check"},
	{"wrong", "wrong?cause=TooManyRequests"},
	{"pool", "pool/shop/checkout.kubernetes"},
	{"service", "service/shop/checkout"},
	{"refused", "service/shop/voice"},
	{"node", "node/aks-pool1-31200003-vmss000003"},
	{"calls", "calls"},
	{"failed-calls", "calls?failed=true"},
}

// tooWide returns the elements that extend beyond the window.
const tooWide = `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest(".visually-hidden, .skip"))
	.map((e) => e.tagName + "." + e.className + " " + e.textContent.slice(0, 60))`

// lowContrast returns the texts with a contrast below 4.5.
const lowContrast = `(() => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return { rgb: m.slice(0, 3), a: m.length > 3 ? m[3] : 1 }; };
	const light = (rgb) => { const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a === 1) { return c.rgb; } } return [255, 255, 255]; };
	const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest("svg")) { continue; }
		const a = light(parse(getComputedStyle(e).color).rgb), b = light(behind(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) { out.push(ratio.toFixed(2) + ": " + walk.currentNode.data.trim().slice(0, 40)); }
	}
	return out;
})()`

// Each page, in light mode, dark mode and on a phone: nothing is clipped, contrast suffices, no external
// resource is loaded, and the browser reports no problem.
func TestPages(t *testing.T) {
	_, api := serve(t, "troubled.json")
	address, _ := weirPage(t, api.URL)
	for _, sheet := range pages {
		for _, l := range []browserConfig{desktop, night, phone} {
			t.Run(sheet.name+" "+l.name, func(t *testing.T) {
				b := openTab(t, l, address+sheet.path)
				if wide := evaluate[[]string](b, tooWide); len(wide) > 0 || evaluate[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth") {
					t.Errorf("wider than the window: %q", wide)
				}
				if texts := evaluate[[]string](b, lowContrast); len(texts) > 0 {
					t.Errorf("hard to read: %q", texts)
				}
				paper := evaluate[string](b, "getComputedStyle(document.body).backgroundColor")
				if dark := strings.HasPrefix(paper, "rgb(16,"); dark != l.dark {
					t.Errorf("the paper is %s", paper)
				}
				if n := evaluate[int](b, `document.querySelectorAll("h1").length`); n != 1 {
					t.Errorf("%d first headings", n)
				}
				b.saveScreenshot(sheet.name + "-" + l.name)
			})
		}
	}
}

// If everything is in sync, the page says little else.
func TestInSync(t *testing.T) {
	_, api := serve(t, "in-sync.json")
	address, _ := weirPage(t, api.URL)
	for _, l := range []browserConfig{desktop, phone} {
		b := openTab(t, l, address)
		if text := evaluate[string](b, "document.querySelector('main').innerText"); !strings.HasPrefix(text, "In sync: 34 BackendPools, 1 Service.") || strings.Contains(text, "What is wrong") {
			t.Error(text)
		}
		b.saveScreenshot("insync-" + l.name)
	}
}

// Untrusted text from other namespaces is escaped: no script runs and nothing is fetched.
func TestUntrustedText(t *testing.T) {
	_, api := serve(t, "hostile.json")
	address, _ := weirPage(t, api.URL)
	for _, path := range []string{"", "pools", "service/shop/web", "pool/shop/web.kubernetes"} {
		b := openTab(t, phone, address+path)
		if evaluate[bool](b, "'alerted' in window") || evaluate[int](b, "document.querySelectorAll('main script, main img, style').length") > 0 {
			t.Errorf("%s: what others wrote is part of the page", path)
		}
		if wide := evaluate[[]string](b, tooWide); len(wide) > 0 {
			t.Errorf("%s: wider than the window: %q", path, wide)
		}
		b.saveScreenshot("hostile-" + strings.ReplaceAll(path, "/", "-"))
	}
}

// Keyboard navigation: skip links, visible focus, and opening a pool.
func TestKeyboard(t *testing.T) {
	_, api := serve(t, "troubled.json")
	address, _ := weirPage(t, api.URL)
	b := openTab(t, desktop, address)
	const focused = `(() => { const e = document.activeElement; return (e.innerText || e.id || e.tagName).trim(); })()`
	var way []string
	for range 9 {
		b.do(chromedp.KeyEvent(kb.Tab))
		way = append(way, evaluate[string](b, focused))
		if seen := evaluate[bool](b, `(() => { const e = document.activeElement, r = e.getBoundingClientRect(); return r.width > 1 && r.left >= 0 && (e.className === "skip" || getComputedStyle(e).outlineStyle !== "none"); })()`); !seen {
			t.Errorf("one does not see that one is at %q", way[len(way)-1])
		}
	}
	if want := []string{"Skip to content", "Weir", "Overview", "Pools", "Services", "Calls", "find", "Find", "edge/mail"}; !slices.Equal(way[:8], want[:8]) {
		t.Errorf("%q, want %q", way, want)
	}
	if !strings.Contains(way[8], "/") {
		t.Errorf("after the search comes %q", way[8])
	}
	b.do(chromedp.Navigate(address), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	if at := evaluate[string](b, focused); at != way[8] {
		t.Errorf("past the links at the top one is at %q, want %q", at, way[8])
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitUntil(`document.querySelector("h1").innerText.includes("` + way[8] + `")`)
}

// The page updates without a reload: focus is retained, screen readers announce a new verdict, and
// countdowns advance.
func TestLiveUpdate(t *testing.T) {
	cluster, api := serve(t, "troubled.json")
	address, _ := weirPage(t, api.URL)
	b := openTab(t, desktop, address)
	evaluate[any](b, `window.loaded = "once"; document.querySelector("#balancers ~ article h3 a[href*='balancer=edge']").focus()`)
	first := evaluate[string](b, `document.querySelector("time[data-count]").innerText`)
	b.waitUntil(`document.querySelector("time[data-count]").innerText !== ` + fmt.Sprintf("%q", first))
	if !strings.HasPrefix(first, "in ") {
		t.Errorf("the next try is %q", first)
	}
	cluster.file.Store("in-sync.json")
	b.waitUntil(`document.querySelector("h1").innerText.startsWith("In sync: 34 BackendPools")`)
	if got := evaluate[string](b, `window.loaded + " " + document.activeElement.innerText + " " + document.querySelector("[role=status]").textContent`); !strings.HasPrefix(got, "once edge In sync: 34 BackendPools") {
		t.Errorf("loaded, focus and what is said: %q", got)
	}
}

// The last state remains on the page when the API server or weir page fails, with its age, and without colors: green would
// show a state that may be over.
func TestStaleData(t *testing.T) {
	cluster, api := serve(t, "in-sync.json")
	address, stop := weirPage(t, api.URL)
	b := openTab(t, desktop, address)
	b.waitUntil(`document.getElementById("stale").hidden`)
	b.ignoreProblems() // the errors below are expected
	cluster.file.Store("")
	b.waitUntil(`document.getElementById("stale").checkVisibility() && document.getElementById("stale").innerText.includes("cannot be reached. The page shows the state at ")`)
	b.saveScreenshot("stale")
	if got := evaluate[string](b, `getComputedStyle(document.querySelector("main")).filter`); got != "grayscale(1)" {
		t.Errorf("colors of an old state: %q", got)
	}
	cluster.file.Store("in-sync.json")
	b.waitUntil(`document.getElementById("stale").hidden && getComputedStyle(document.querySelector("main")).filter === "none"`)
	stop()
	b.waitUntil(`document.getElementById("stale").checkVisibility() && document.getElementById("stale").innerText.startsWith("weir page does not answer. The page shows the state at ")`)
	if !evaluate[bool](b, `document.querySelector("h1").innerText.startsWith("In sync: ")`) {
		t.Error("what was so is gone")
	}
}

// A page that is not refreshed shows why: text is selected, and a refresh would end the selection, or there is no
// response in time. The test does not wait the ten seconds of either.
func TestAPageThatIsNotRefreshed(t *testing.T) {
	_, api := serve(t, "in-sync.json")
	address, _ := weirPage(t, api.URL)
	b := openTab(t, desktop, address)
	b.waitUntil(`document.getElementById("stale").hidden`)
	evaluate[any](b, `window.clock = Date.now; Date.now = () => window.clock() + 11000; document.getSelection().selectAllChildren(document.querySelector("h1"))`)
	b.waitUntil(`document.getElementById("stale").innerText.startsWith("Not refreshed while text is selected. The page shows the state at ")`)
	evaluate[any](b, `Date.now = window.clock; document.getSelection().removeAllRanges()`)
	b.waitUntil(`document.getElementById("stale").hidden`)
	evaluate[any](b, `AbortSignal.timeout = () => AbortSignal.abort(new DOMException("", "TimeoutError"))`)
	b.waitUntil(`document.getElementById("stale").innerText.startsWith("weir page does not answer.")`)
}

// The page works without JavaScript.
func TestWithoutScript(t *testing.T) {
	_, api := serve(t, "troubled.json")
	address, _ := weirPage(t, api.URL)
	b := openTab(t, browserConfig{name: "no script", wide: 800, noScript: true}, address)
	verdict, next := runAction(b, chromedp.Text("h1")), runAction(b, chromedp.Text("time.next"))
	if !strings.HasPrefix(verdict, "Something is wrong with 4 of 34 BackendPools and 1 of 3 Services.") || !strings.HasPrefix(next, "in ") {
		t.Errorf("%q, %q", verdict, next)
	}
}

// With 10,000 pools, a quarter of them failing, the overview loads in a few seconds with a small DOM.
func TestTenThousandPools(t *testing.T) {
	var some, many []map[string]any
	if err := json.Unmarshal(readFixture(t, "troubled.json"), &some); err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		p := map[string]any{}
		for name, of := range some[1+i%20] {
			p[name] = of
		}
		p["metadata"] = map[string]any{"namespace": fmt.Sprintf("team-%03d", i%100), "name": fmt.Sprintf("pool-%05d", i)}
		many = append(many, p)
	}
	raw, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "many.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	_, api := serve(t, file)
	address, _ := weirPage(t, api.URL)
	began := time.Now()
	b := openTab(t, desktop, address)
	elements := evaluate[int](b, "document.querySelectorAll('*').length")
	t.Logf("%s, %d elements", time.Since(began).Round(time.Millisecond), elements)
	if elements > 3000 {
		t.Errorf("%d elements", elements)
	}
	b.saveScreenshot("many")
	b.do(chromedp.Navigate(address + "pools?page=50"))
	b.waitUntil(`document.querySelector(".chosen").innerText.startsWith("9801 to 10000 of 10000")`)
}
