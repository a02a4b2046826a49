// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sample = `package p

import "errors"

type q struct {
	n   int
	log logger
}

func (q *q) take(all []int) (int, error) {
	defer q.unlock()
	for _, v := range all {
		if v == 3 && q.n < v {
			continue
		}
		q.n = v
		q.n += v
		q.log.Info("taken")
		if q.n > 7 {
			q.log.Info("many")
		}
		q.keep(func() bool { return v > 1 })
	}
	if q.n == 0 {
		return 0, errors.New("none")
	}
	q.n++
	return q.n, nil
}

func none() error { return nil }

func yes() bool { return true }
`

// Operators skip changes that have no effect or affect only logs.
func TestOperators(t *testing.T) {
	mutants, err := findMutants("p/p.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, m := range mutants {
		d := strings.Split(strings.TrimSpace(m.formatDiff([]byte(sample))), "\n")
		got.WriteString(m.Operator + ": " + strings.TrimSpace(d[len(d)-1]) + "\n")
	}
	const want = `remove defer: +
negate condition: + if !(v == 3 && q.n < v) {
swap operator: + if v != 3 && q.n < v {
change constant: + if v == 4 && q.n < v {
swap operator: + if v == 3 || q.n < v {
swap operator: + if v == 3 && q.n <= v {
break for continue: + break
remove statement: + _ = v
remove statement: + _ = v
remove call: +
return zero: + q.keep(func() bool { return *new(bool) })
swap operator: + q.keep(func() bool { return v >= 1 })
change constant: + q.keep(func() bool { return v > 2 })
negate condition: + if !(q.n == 0) {
swap operator: + if q.n != 0 {
change constant: + if q.n == 1 {
return zero: + return *new(int), *new(error)
change constant: + return 1, errors.New("none")
remove statement: +
return zero: + return *new(int), *new(error)
change constant: + func yes() bool { return false }
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// smallModule is a module whose test detects one kind of mutant.
var smallModule = map[string]string{
	"go.mod":               "module example.test/small\n\ngo 1.26\n",
	"p/p.go":               "package p\n\nfunc Larger(a, b int) int {\n\tif a > b {\n\t\treturn a\n\t}\n\treturn b\n}\n",
	"p/p_test.go":          "package p\n\nimport \"testing\"\n\nfunc TestLarger(t *testing.T) {\n\tif Larger(2, 1) != 2 {\n\t\tt.Error(\"no\")\n\t}\n}\n",
	"lab/simulate/none.go": "package simulate\n",
	pagePath:               "# Page\n\n" + beginMarker + endMarker + "after\n",
}

// enterSmallModule writes the module with this comparison to a temporary directory and changes to it.
func enterSmallModule(t *testing.T, comparison string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range smallModule {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(text, "a > b", comparison, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
}

// A run evaluates each mutant, writes the page, and reuses known results.
func TestRun(t *testing.T) {
	enterSmallModule(t, "a > b")
	var out strings.Builder
	args := []string{"-sample", "0", "-seeds", "0", "-state", "bin/state.jsonl", "-write", "./p"}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	// Killed: the negation, and zero for a. Survivors: zero for b, and >= for >.
	for _, want := range []string{
		"| `p` | 4 | 4 | seed 1 | 2 | not in it | 0 | 2 | 50 % | a tree without a commit |\n\nSurvivors in `p`:", "after\n",
		"p/p.go:4 swap operator\n- if a > b {\n+ if a >= b {\n", "p/p.go:7 return zero\n- return b\n+ return *new(int)\n",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the page lacks %q:\n%s", want, raw)
		}
	}
	if !strings.Contains(out.String(), "negate condition: killed by tests TestLarger") {
		t.Errorf("got\n%s", out.String())
	}
	first, begun := out.String(), time.Now()
	out.Reset()
	if err := run(t.Context(), args, &out); err != nil || out.String() != first {
		t.Errorf("the second run differs (%v, %s):\n%s", err, time.Since(begun), out.String())
	}
}

// A failure without a mutant aborts the run.
func TestUnsound(t *testing.T) {
	enterSmallModule(t, "a < b")
	err := run(context.Background(), []string{"-seeds", "0", "./p"}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "p without a change: killed by tests: TestLarger") {
		t.Errorf("got %v", err)
	}
}

// The page parses as a block written by this program, so updating one package retains the others.
func TestThePageHoldsTheBlock(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", pagePath))
	if err != nil {
		t.Fatal(err)
	}
	_, inside, _, err := splitPage(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseBlock(inside); err != nil {
		t.Fatal(err)
	}
}

// A woven mutant is enabled by its number.
func TestWoven(t *testing.T) {
	const text = `package p

func f(n int) (m int, err error) {
	defer func() { m++ }()
	for range n {
		if n > 3 {
			continue
		}
		m++
	}
	return m, nil
}
`
	mutants, err := findMutants("p/p.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := weaveFile("p/p.go", []byte(text), map[int]mutant{7: mutants[0]})
	if err != nil {
		t.Fatal(err)
	}
	const want = `package p

func f(n int) (m int, err error) {
switch wovenMutant {
case 7:
return func() (m int, err error) {
	
	for range n {
		if n > 3 {
			continue
		}
		m++
	}
	return m, nil
}()
}

	defer func() { m++ }()
`
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
