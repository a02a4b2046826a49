// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/humanize"
)

const (
	// MaxLogs is the number of logs kept.
	MaxLogs = 5
	// Bounds for the head and the tail of a log, in bytes.
	maxHead, maxTail = 16 << 10, 48<<10 - 200
	// MaxLog bounds the result of Text, in bytes.
	MaxLog  = 64 << 10
	maxLine = 2 << 10
)

// LogSlot returns the slot of an attempt's log.
func LogSlot(number int64) int64 { return number % MaxLogs }

// Log is the log of an attempt, with secrets redacted. The zero value is empty.
type Log struct {
	filter   secretFilter
	head     []string
	headSize int
	tail     []string
	tailSize int
	omitted  int
}

// AddLine adds a line.
func (l *Log) AddLine(now time.Time, line string) {
	l.appendLine(now.UTC().Format(time.RFC3339) + " " + humanize.FormatMessage(l.CleanText(line), maxLine))
}

// Resume appends the saved text of the same attempt's log.
func (l *Log) Resume(text string) {
	for line := range strings.Lines(strings.Clone(text[:min(len(text), MaxLog)])) { // keep no reference to text
		l.appendLine(humanize.FormatMessage(strings.TrimSuffix(line, "\n"), maxLine))
	}
}

// Clone returns an independent copy.
func (l *Log) Clone() *Log {
	c := *l
	c.head, c.tail = slices.Clone(l.head), slices.Clone(l.tail)
	return &c
}

func (l *Log) appendLine(line string) {
	size := len(line) + 1
	if len(l.tail) == 0 && l.omitted == 0 && l.headSize+size <= maxHead {
		l.head, l.headSize = append(l.head, line), l.headSize+size
		return
	}
	l.tail, l.tailSize = append(l.tail, line), l.tailSize+size
	for l.tailSize > maxTail {
		l.tailSize -= len(l.tail[0]) + 1
		l.tail, l.omitted = l.tail[1:], l.omitted+1
	}
}

// Text returns the kept lines.
func (l *Log) Text() string {
	lines := slices.Clone(l.head)
	if l.omitted > 0 {
		lines = append(lines, fmt.Sprintf("… %s left out …", humanize.FormatCount(l.omitted, "line")))
	}
	lines = append(lines, l.tail...)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// HideSecrets redacts these secrets, raw and quoted, in later text. If they are too many to search for,
// all later text is withheld.
func (l *Log) HideSecrets(secrets ...string) { l.filter = l.filter.addSecrets(secrets) }

// CleanText returns text with secrets redacted.
func (l *Log) CleanText(text string) string { return l.filter.cleanText(text) }
