// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/words"
)

const (
	// KeptLogs is of how many attempts the logs are kept.
	KeptLogs = 5
	// headOfLog and tailOfLog bound what is kept of one, in bytes: how it began, and how it ended.
	headOfLog, tailOfLog = 16 << 10, 48<<10 - 200
	// MaxLog is the most that Text returns.
	MaxLog = 64 << 10
	// longestLine bounds a line.
	longestLine = 2 << 10
)

// SlotOf is where the log of an attempt is kept: it takes the place of the one five before it.
func SlotOf(number int64) int64 { return number % KeptLogs }

// Log is what an attempt says, without secrets. The zero value is an empty one.
type Log struct {
	redaction redaction
	head      []string
	headSize  int
	tail      []string
	tailSize  int
	left      int
}

// Add adds a line.
func (l *Log) Add(now time.Time, line string) {
	l.add(now.UTC().Format(time.RFC3339) + " " + words.Sentence(l.Clean(line), longestLine))
}

// Resume has a log begin with the text of another, which was kept of the same attempt before its process ended.
func (l *Log) Resume(text string) {
	for line := range strings.Lines(strings.Clone(text[:min(len(text), MaxLog)])) { // the rest of it is not kept alive
		l.add(words.Sentence(strings.TrimSuffix(line, "\n"), longestLine))
	}
}

// Clone returns a Log that says the same, and hides the same.
func (l *Log) Clone() *Log {
	c := *l
	c.head, c.tail = slices.Clone(l.head), slices.Clone(l.tail)
	return &c
}

func (l *Log) add(line string) {
	size := len(line) + 1
	if len(l.tail) == 0 && l.left == 0 && l.headSize+size <= headOfLog {
		l.head, l.headSize = append(l.head, line), l.headSize+size
		return
	}
	l.tail, l.tailSize = append(l.tail, line), l.tailSize+size
	for l.tailSize > tailOfLog {
		l.tailSize -= len(l.tail[0]) + 1
		l.tail, l.left = l.tail[1:], l.left+1
	}
}

// Text is all of it that is kept.
func (l *Log) Text() string {
	lines := slices.Clone(l.head)
	if l.left > 0 {
		lines = append(lines, fmt.Sprintf("… %s left out …", words.Count(l.left, "line")))
	}
	lines = append(lines, l.tail...)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// Hide makes the log replace these secrets in all that is added from now on, as they are and as programs quote them. Where
// they need too many bytes to search for, whatever is added is withheld.
func (l *Log) Hide(secrets ...string) { l.redaction = l.redaction.add(secrets) }

// Clean returns a text without what is hidden.
func (l *Log) Clean(text string) string { return l.redaction.clean(text) }
