// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"short", "short"}, {"one two three", "one two|three"}, {"exactly ten", "exactly|ten"},
		{"0123456789abc", "0123456789|abc"}, {"a\x1b[31mred\n", "a [31mred"}, {"a b cdefghijklmno", "a b cdefgh|ijklmno"},
	} {
		if got := strings.Join(wrapText(strings.TrimRight(c.text, "\n"), 10), "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestWrapLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~]{0,300}`).Draw(t, "text")
		rows := wrapText(text, rapid.IntRange(4, 100).Draw(t, "columns"))
		if collapseSpaces(strings.Join(rows, "")) != collapseSpaces(text) {
			t.Fatalf("%q became %q", text, rows)
		}
	})
}

func collapseSpaces(s string) string { return strings.ReplaceAll(s, " ", "") }

// Printed lines fit the page and have no control characters, and there are no colors without a
// terminal.
func TestLinesArePlainAndFitThePage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		p := newPrinter(&out)
		text := rapid.String().Draw(t, "text")
		p.printLine(redText, "cluster", text)
		p.printDetail(text)
		p.printPlain(text)
		for row := range strings.Lines(out.String()) {
			row = strings.TrimSuffix(row, "\n")
			if utf8.RuneCountInString(row) > width || strings.ContainsAny(row, "\x1b\r\n\t") {
				t.Fatalf("%q", row)
			}
		}
	})
}

func TestVerbatimLines(t *testing.T) {
	var out bytes.Buffer
	newPrinter(&out).printVerbatim(plainText, "a  b\x1b[31m", "c\td ")
	if out.String() != "a  b [31m\nc d\n" {
		t.Errorf("%q", out.String())
	}
}

// closedPipe accepts a limited number of writes.
type closedPipe struct{ left int }

func (c *closedPipe) Write(p []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

func TestPrinterReportsClosedOutputOnce(t *testing.T) {
	var reported []error
	p := newPrinter(&closedPipe{left: 1})
	p.onWriteError = func(err error) { reported = append(reported, err) }
	p.printPlain("one")
	if len(reported) != 0 {
		t.Error(reported)
	}
	p.printPlain("two", "three")
	if len(reported) != 1 || !errors.Is(reported[0], syscall.EPIPE) {
		t.Error(reported)
	}
}

func TestColourOnATerminal(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out)
	p.isColored = true
	p.writeText(greenText, "in sync  ")
	if out.String() != "\x1b[32min sync\x1b[0m\n" {
		t.Errorf("%q", out.String())
	}
}

func TestTable(t *testing.T) {
	s := Summary{
		Total: PoolSummary{Changes: 12345, LagP50: 1234, LagP99: 98765, StormMax: 1500, Writes: 7, Throttled: 3, Lost: 1},
		Pools: []PoolSummary{{Name: "web", Changes: 12, Conflicts: 2, Retrying: 4}, {Name: "api"}, {Name: "db", Failed: 5, ForeignLost: 1}},
	}
	want := `                                         web       api        db  together
changes in the cluster                    12         0         0     12345
lag, median                            0.0 s     0.0 s     0.0 s     1.2 s
lag, 99th percentile                   0.0 s     0.0 s     0.0 s    98.8 s
lag in the storm, longest              0.0 s     0.0 s     0.0 s     1.5 s
writes of the pool                         0         0         0         7
  throttled (429)                          0         0         0         3
  conflicts (409, 412)                     2         0         0         0
Retrying events                            4         0         0         0
Failed events                              0         0         5         0
lost addresses                             0         0         0         1
surplus addresses                          0         0         0         0
lost addresses of others                   0         0         1         0`
	if got := strings.Join(s.formatTable(), "\n"); got != want {
		t.Errorf("\n%s", got)
	}
}

func TestTrafficInWords(t *testing.T) {
	for want, traffic := range map[string]traffic{
		"0 reads, 0 writes, 0 polls":                            {},
		"1 read, 1 write, 1 poll, 3 throttled, 1 conflict":      {Reads: 1, Writes: 1, Polls: 1, Throttled: 3, Conflicts: 1},
		"2 reads, 12 writes, 3 polls, 1 throttled, 2 conflicts": {Reads: 2, Writes: 12, Polls: 3, Throttled: 1, Conflicts: 2},
	} {
		if got := traffic.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
