// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
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
	hidden   *strings.Replacer
	secrets  []string
	silent   bool // there are too many of them
	head     []string
	headSize int
	tail     []string
	tailSize int
	left     int
}

// Add adds a line.
func (l *Log) Add(now time.Time, line string) {
	l.add(now.UTC().Format(time.RFC3339) + " " + words.Sentence(l.Clean(line), longestLine))
}

// Resume has a log begin with the text of another, which was kept of the same attempt before its process ended.
func (l *Log) Resume(text string) {
	for line := range strings.Lines(text[:min(len(text), MaxLog)]) {
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

// shortestSecret is that of what is hidden: what is shorter is in too many words.
const shortestSecret = 4

// mostHidden bounds what is looked for: where there is more, nothing is said.
const mostHidden = 10_000

// Hide has these be left out of all that is said from now on, as they are and as programs quote them. Call it once
// for many.
func (l *Log) Hide(secrets ...string) {
	if l.silent = l.silent || len(secrets) > mostHidden; l.silent {
		l.secrets, l.hidden = nil, nil
		return
	}
	for _, s := range secrets {
		l.secrets = append(append(l.secrets, s), quoted(s)...)
		if lines := strings.Split(s, "\n"); len(lines) > 1 { // a message may have one of them
			l.secrets = append(l.secrets, lines...)
		}
	}
	for i, s := range l.secrets {
		l.secrets[i] = strings.TrimSpace(s)
	}
	l.secrets = slices.DeleteFunc(l.secrets, func(s string) bool { return len(s) < shortestSecret })
	slices.SortFunc(l.secrets, func(a, b string) int { // the longest first: one may be a part of another
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	l.secrets = slices.Compact(l.secrets)
	if l.silent = l.silent || len(l.secrets) > mostHidden; l.silent {
		l.secrets, l.hidden = nil, nil
		return
	}
	pairs := make([]string, 0, 2*len(l.secrets))
	for _, s := range l.secrets {
		pairs = append(pairs, s, "[hidden]")
	}
	l.hidden = strings.NewReplacer(pairs...)
}

// longestQuoted is that of a secret that is looked for as a string of JSON, too: a line is shorter.
const longestQuoted = 16 << 10

// quoted are the forms that a secret has where it is a part of something else: base64, strings of Go and of JSON, and a
// part of an address.
func quoted(s string) []string {
	all := []string{base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s))}
	if len(s) > longestQuoted {
		return all
	}
	all = append(all, url.QueryEscape(s), url.PathEscape(s))
	text, _ := json.Marshal(s) // a string is JSON
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
	for _, text := range []string{strconv.Quote(s), strconv.QuoteToASCII(s), string(text), plain} {
		all = append(all, text[1:len(text)-1])
	}
	return all
}

// Clean takes out of a text what is hidden.
func (l *Log) Clean(text string) string {
	if l.silent {
		return "[hidden: there are too many secrets to look for]"
	}
	if l.hidden == nil {
		return text
	}
	return l.hidden.Replace(text)
}
