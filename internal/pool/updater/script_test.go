// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestCases runs the numbered cases of the updater's contract: scripts in testdata, in virtual time
// against real workers. Each command prints the events since the previous one. -rewrite updates the
// output; review the diff.
//
// The contract speaks of ticks. Here the next tick is the last attempt plus the interval, and new
// work runs 250 ms (the debounce) after its change.
func TestCases(t *testing.T) {
	const cases = 19
	paths, err := filepath.Glob("testdata/[0-9][0-9]_*")
	if err != nil || len(paths) != cases {
		t.Fatalf("%d scripts, want one for each of the %d cases: %v", len(paths), cases, err)
	}
	for i, path := range paths {
		name := filepath.Base(path)
		if number := fmt.Sprintf("%02d_", i+1); !strings.HasPrefix(name, number) {
			t.Errorf("%s stands where a script %s… should", name, number)
		}
		t.Run(name, func(t *testing.T) { runScript(t, path) })
	}
}

// runScript runs the script in a synctest bubble and compares the output. The parser runs outside,
// because it uses a timer per command.
func runScript(t *testing.T, path string) {
	var lines []datadriven.TestData
	datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
		lines = append(lines, *d)
		return d.Expected
	})
	var printed []string
	synctest.Test(t, func(t *testing.T) { printed = play(t, lines) })
	next := 0
	datadriven.RunTest(t, path, func(*testing.T, *datadriven.TestData) string {
		next++
		return printed[next-1]
	})
}

// play runs the lines in order. A violated invariant fails the test at once, even with -rewrite.
func play(t *testing.T, lines []datadriven.TestData) (printed []string) {
	s := &stage{t: t, start: time.Now()}
	s.empty()
	defer s.leave()
	for _, line := range lines {
		act, ok := verbs[line.Cmd]
		if !ok {
			line.Fatalf(t, "no such verb: %s", line.Cmd)
		}
		c := newCommand(t, line)
		act(s, c)
		c.everythingRead()
		synctest.Wait()
		out, breaches := s.flush()
		for _, breach := range breaches {
			t.Errorf("%s: law broken: %s\n%s", line.Pos, breach, out)
		}
		printed = append(printed, out)
	}
	return printed
}

// verbs are the script commands.
var verbs = map[string]func(*stage, *command){
	"lanes":          lanesVerb,
	"advance":        advanceVerb,
	"stop":           stopVerb,
	"pool":           poolVerb,
	"answer":         answerVerb,
	"change":         changeVerb,
	"gone":           goneVerb,
	"move":           moveVerb,
	"remove-service": removeServiceVerb,
	"queue":          queueVerb,
	"metrics":        metricsVerb,
}

// command is one script line: words, then name=value. Unused words and names are errors.
type command struct {
	t     *testing.T
	line  datadriven.TestData
	words []string
	named map[string]string
}

func newCommand(t *testing.T, line datadriven.TestData) *command {
	c := &command{t: t, line: line, named: map[string]string{}}
	for _, arg := range line.CmdArgs {
		if arg.Vals == nil {
			c.words = append(c.words, arg.Key)
			continue
		}
		c.named[arg.Key] = strings.Join(arg.Vals, ", ")
	}
	return c
}

func (c *command) wrong(format string, args ...any) {
	c.t.Helper()
	c.line.Fatalf(c.t, c.line.Cmd+": "+format, args...)
}

func (c *command) everythingRead() {
	c.t.Helper()
	if len(c.words)+len(c.named) > 0 {
		c.wrong("does not know %q %v", c.words, c.named)
	}
}

// word takes the next word.
func (c *command) word() string {
	c.t.Helper()
	if len(c.words) == 0 {
		c.wrong("lacks a word")
	}
	first := c.words[0]
	c.words = c.words[1:]
	return first
}

// says takes an optional word.
func (c *command) says(word string) bool {
	i := slices.Index(c.words, word)
	if i < 0 {
		return false
	}
	c.words = slices.Delete(c.words, i, i+1)
	return true
}

// value takes a name=value argument.
func (c *command) value(name string) (string, bool) {
	v, ok := c.named[name]
	delete(c.named, name)
	return v, ok
}

// only takes a value with a single allowed setting.
func (c *command) only(name, want string) bool {
	c.t.Helper()
	got, ok := c.value(name)
	if ok && got != want {
		c.wrong("%s can only be %s", name, want)
	}
	return ok
}

func (c *command) duration(name string, otherwise time.Duration) time.Duration {
	c.t.Helper()
	v, ok := c.value(name)
	if !ok {
		return otherwise
	}
	return c.parseDuration(v)
}

func (c *command) parseDuration(text string) time.Duration {
	c.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		c.wrong("%v", err)
	}
	return d
}

func (c *command) number(name string, otherwise int) int {
	c.t.Helper()
	v, ok := c.value(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		c.wrong("%v", err)
	}
	return n
}
