// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// smallModule is a module with two packages: an event is queued, and a loop calls a predicate and writes
// through an interface.
var smallModule = map[string]string{
	"go.mod": "module example.test/small\n\ngo 1.26\n",
	"cmd/weir/main.go": `package main

import (
	"example.test/small/azure"
	"example.test/small/lane"
)

func main() {
	l := lane.New(azure.Client{})
	l.Done = func(ok bool) { println(ok) }
	l.Add(1)
	l.Run()
}
`,
	"lane/lane.go": `package lane

type Azure interface{ Put(n int) bool }

type Lane struct {
	azure Azure
	queue []int
	Done  func(ok bool)
	work  func(n int)
}

func New(a Azure) *Lane {
	l := &Lane{azure: a}
	l.use(l.pass)
	return l
}

func (l *Lane) use(work func(n int)) { l.work = work }

func (l *Lane) Add(n int) {
	if !wanted(n) {
		return
	}
	l.hold(n)
}

func (l *Lane) hold(n int) { l.queue = append(l.queue, n) }

func (l *Lane) Run() {
	for _, n := range l.queue {
		l.work(n)
	}
}
`,
	"lane/pass.go": `package lane

func (l *Lane) pass(n int) {
	func() {
		if l.azure.Put(n) {
			return
		}
		l.Done(false)
	}()
	l.Done(true)
}

func wanted(n int) bool { return n > 0 }
`,
	"azure/client.go": `package azure

type Client struct{}

func (Client) Put(n int) bool { return n > 1 }
`,
	"azure/unshipped_test.go": "package azure\n",
}

func loadSmallModule(t *testing.T) *tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range smallModule {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := loadTree(t.Context(), dir, "./cmd/weir")
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestSizesAndCycles(t *testing.T) {
	tr := loadSmallModule(t)
	sizes := computeSizes(tr)
	if len(sizes) != 3 || sizes[0].Package != "lane" || sizes[0].Files != 2 || sizes[0].Lines != strings.Count(smallModule["lane/lane.go"]+smallModule["lane/pass.go"], "\n") {
		t.Errorf("got %+v", sizes)
	}
	imports := map[string]int{}
	for _, s := range sizes {
		imports[s.Package] = s.Imports
	}
	if want := map[string]int{"lane": 0, "azure": 0, "cmd/weir": 2}; !maps.Equal(imports, want) {
		t.Errorf("got imports %v, want %v", imports, want)
	}
	want := typeSize{Name: "Lane", Methods: 5, Fields: 4, Files: 2}
	if sizes[0].Types[0] != want {
		t.Errorf("got %+v, want %+v", sizes[0].Types[0], want)
	}
	if c := findCycles(tr); len(c) != 1 || c[0].Package != "lane" || !slices.Equal(c[0].Files, []string{"lane.go", "pass.go"}) {
		t.Errorf("got %+v", c)
	}
}

func TestWalks(t *testing.T) {
	g := newGraph(loadSmallModule(t), []string{"lane.(*Lane).Run"})
	for _, c := range []struct {
		name, walk string
		stays      []string
		returns    int
		shortest   int
		read       int
	}{
		{"a decision is not on the way", "q=lane.(*Lane).Add>lane.(*Lane).hold",
			[]string{"lane.(*Lane).Add", "lane.(*Lane).hold"}, 1, 2, 3},
		{"a field, an interface and a literal lead on", "put=lane.(*Lane).Run>azure.(Client).Put",
			[]string{"azure.(Client).Put", "lane.(*Lane).Run", "lane.(*Lane).pass"}, 2, 3, 4},
		{"back through a callback that another package sets", "back=lane.(*Lane).pass>cmd/weir.Done = func",
			[]string{"cmd/weir.Done = func", "lane.(*Lane).pass"}, 1, 2, 3},
		{"two legs are one walk", "both=lane.(*Lane).Add>lane.(*Lane).hold,lane.(*Lane).Run>azure.(Client).Put",
			[]string{"azure.(Client).Put", "lane.(*Lane).Add", "lane.(*Lane).Run", "lane.(*Lane).hold", "lane.(*Lane).pass"}, 3, 5, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := parseWalk(c.walk)
			if err != nil {
				t.Fatal(err)
			}
			got := g.measureWalk(w)
			var stays []string
			for _, f := range got.Functions {
				_, name, _ := strings.Cut(f, " ")
				stays = append(stays, name)
			}
			slices.Sort(stays)
			if got.Error != "" || !slices.Equal(stays, c.stays) || got.ReturnCount != c.returns || got.Shortest != c.shortest || got.Read != c.read {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWalksThatAreNotThere(t *testing.T) {
	g := newGraph(loadSmallModule(t), []string{"lane.(*Lane).Run"})
	for walk, want := range map[string]string{
		"x=lane.(*Lane).Nowhere>azure.(Client).Put": `no function is called "lane.(*Lane).Nowhere"`,
		"x=azure.(Client).Put>lane.(*Lane).Add":     "does not reach",
		"x=lane.(*Lane).Add>azure.(Client).Put":     "does not reach", // separated by a queue
	} {
		w, err := parseWalk(walk)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.measureWalk(w); !strings.Contains(got.Error, want) {
			t.Errorf("%s: got %+v, want an error with %q", walk, got, want)
		}
	}
	for _, walk := range []string{"", "=a>b", "x=a", "x=a>", "x=>b"} {
		if _, err := parseWalk(walk); err == nil {
			t.Errorf("%q is read as a walk", walk)
		}
	}
}

// The entries and ends of defaultWalks exist, and each segment connects.
func TestTheWalksOfThisHouse(t *testing.T) {
	tr, err := loadTree(t.Context(), "../..", "./cmd/weir")
	if err != nil {
		t.Fatal(err)
	}
	g := newGraph(tr, defaultLoops())
	for _, w := range defaultWalks() {
		if got := g.measureWalk(w); got.Error != "" {
			t.Errorf("%s: %s; default.go names where it begins and ends", w.name, got.Error)
		}
	}
}
