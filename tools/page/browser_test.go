// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "write a picture of each sheet into this folder")

var (
	program string          // path of the weir binary
	browser context.Context // shared by all tests
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-page-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", program, "./cmd/weir") // flags as in make build
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building weir: %v\n%s", err, out)
		return 1
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, "there is no chromium: make page installs it on Debian:", err)
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.WSURLReadTimeout(5*time.Minute),
		chromedp.NoSandbox) // unavailable to root and in most containers; only local pages are loaded
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	browser, end = chromedp.NewContext(ctx)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "starting chromium:", err)
		return 1
	}
	return m.Run()
}

// weirPage starts weir page against an API server and returns its address; stop ends it.
func weirPage(t *testing.T, api string) (address string, stop func()) {
	t.Helper()
	return weirPageWith(t, api, "--operator-url", api)
}

// weirPageWith is weirPage with extra flags.
func weirPageWith(t *testing.T, api string, flags ...string) (address string, stop func()) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"clusters":[{"name":"c","cluster":{"server":"`+api+`"}}],"contexts":[{"name":"aks-west","context":{"cluster":"c"}}],"current-context":"aks-west"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, append([]string{"page", "--listen", "127.0.0.1:0", "--kubeconfig", kubeconfig}, flags...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() { once.Do(func() { end(); _ = cmd.Wait() }) }
	t.Cleanup(stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("weir page says %q: %v", line, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "Weir's page: ")), stop
}

// browserConfig is a browser configuration.
type browserConfig struct {
	name     string
	wide     int64
	dark     bool
	phone    bool
	noScript bool
}

var (
	desktop = browserConfig{name: "light", wide: 1200}
	night   = browserConfig{name: "dark", wide: 1200, dark: true}
	phone   = browserConfig{name: "phone", wide: 360, phone: true}
)

// tab is a browser tab with the problems that it reported.
type tab struct {
	context.Context

	t        *testing.T
	mu       sync.Mutex
	complain []string
	ignores  bool
}

// openTab returns a tab showing an address. The test fails if the browser reported a problem, requested
// anything but the page's own resources, or opened a dialog.
func openTab(t *testing.T, l browserConfig, address string) *tab {
	t.Helper()
	b := &tab{t: t}
	ctx, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil { // a deadline on the first tab would end the browser
		t.Fatal(err)
	}
	b.Context, end = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(end)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(b, func(event any) { b.recordProblem(at, event) }); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	b.do(
		newCommand(log.Enable, cdp.Empty{}), newCommand(network.Enable, network.EnableParams{}), newCommand(runtime.Enable, cdp.Empty{}),
		newCommand(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.wide, Height: 800, DeviceScaleFactor: 1, Mobile: l.phone}),
		newCommand(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		newCommand(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript}),
		chromedp.Navigate(address),
		chromedp.WaitVisible("body"),
	)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complain {
			t.Errorf("%s: %s", address, c)
		}
	})
	return b
}

// recordProblem records problems reported by the browser.
func (t *tab) recordProblem(at *url.URL, event any) {
	note := func(format string, of ...any) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.ignores {
			t.complain = append(t.complain, fmt.Sprintf(format, of...))
		}
	}
	switch e := event.(type) {
	case *log.EventEntryAdded:
		note("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		note("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		note("console.%s", e.Type)
	case *cdppage.EventJavascriptDialogOpening:
		note("a dialog: %s", e.Message)
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != at.Host {
			note("a request to %s", e.Request.URL)
		}
	case *network.EventRequestWillBeSentExtraInfo: // headers as sent
		if e.Headers["Referer"] != nil {
			note("the address is told by %v", e.Headers["Referer"])
		}
	}
}

// ignoreProblems is for the rest of a test that expects problems: the browser reports them late.
func (t *tab) ignoreProblems() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ignores = true
}

// newCommand returns an action that runs a DevTools command.
func newCommand[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.t.Helper()
	if err := chromedp.Do(t, actions...); err != nil {
		t.t.Fatal(err)
	}
}

// runAction returns the result of an action.
func runAction[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// evaluate evaluates a JavaScript expression.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	return runAction(b, chromedp.Evaluate[T](expression))
}

// waitUntil waits until a JavaScript expression is true. It ignores errors during navigation.
func (t *tab) waitUntil(expression string) {
	t.t.Helper()
	holds := chromedp.Evaluate[bool]("(() => { try { return !!(" + expression + "); } catch { return false; } })()")
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		current, err := chromedp.Run(t, holds)
		if current && err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.t.Fatalf("%v: not %s, but\n%s", err, expression, evaluate[string](t, "document.body.innerText"))
		}
	}
}

// saveScreenshot saves a screenshot of the whole page, if enabled.
func (t *tab) saveScreenshot(name string) {
	t.t.Helper()
	if *shots == "" {
		return
	}
	picture, err := reduceColors(runAction(t, chromedp.FullScreenshot(100)))
	if err != nil {
		t.t.Fatal(err)
	}
	if err := os.MkdirAll(*shots, 0o750); err != nil {
		t.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o600); err != nil {
		t.t.Fatal(err)
	}
}

// reduceColors reduces a picture to its 256 most frequent colors, about a third of the size.
func reduceColors(picture []byte) ([]byte, error) {
	in, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	n, area := map[color.RGBA]int{}, in.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			n[color.RGBAModel.Convert(in.At(x, y)).(color.RGBA)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(n), func(a, b color.RGBA) int {
		return cmp.Or(n[b]-n[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for _, c := range colors {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[color.RGBAModel.Convert(in.At(x, y)).(color.RGBA)])
		}
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out)
	return b.Bytes(), err
}
