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
	// KeptLogs is the number of logs kept.
	KeptLogs = 5
	// Bounds for the head and the tail of a log, in bytes.
	headOfLog, tailOfLog = 16 << 10, 48<<10 - 200
	// MaxLog bounds the result of Text, in bytes.
	MaxLog      = 64 << 10
	longestLine = 2 << 10
)

// SlotOf returns the slot of an attempt's log.
func SlotOf(number int64) int64 { return number % KeptLogs }

// Log is the log of an attempt, with secrets redacted. The zero value is empty.
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

// Resume appends the saved text of the same attempt's log.
func (l *Log) Resume(text string) {
	for line := range strings.Lines(strings.Clone(text[:min(len(text), MaxLog)])) { // keep no reference to text
		l.add(words.Sentence(strings.TrimSuffix(line, "\n"), longestLine))
	}
}

// Clone returns an independent copy.
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

// Text returns the kept lines.
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

// Hide redacts these secrets, raw and quoted, in later text. If they are too many to search for,
// all later text is withheld.
func (l *Log) Hide(secrets ...string) { l.redaction = l.redaction.add(secrets) }

// Clean returns text with secrets redacted.
func (l *Log) Clean(text string) string { return l.redaction.clean(text) }
