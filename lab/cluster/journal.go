// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// journal keeps the newest log lines of all processes and the actions of the stage. It records
// lines that contain a token.
type journal struct {
	mu     sync.Mutex
	start  time.Time
	lines  []string
	tokens tokens
}

// mostLines is the maximum number of retained lines.
const mostLines = 4000

func newJournal() *journal {
	sharedLoggers()
	return &journal{start: time.Now()}
}

// sharedLoggers scans the logs that libraries write to process-wide loggers for tokens, and
// disables apimachinery's error backoff: its clock is shared by all bubbles and may be years ahead.
var sharedLoggers = sync.OnceFunc(func() {
	log := funcr.New(func(prefix, args string) { ofLibraries.search(prefix + " " + args) }, funcr.Options{})
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, args ...any) { log.Error(err, message, args...) },
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
})

// ofLibraries are the tokens logged by client-go and controller-runtime on any stage.
var ofLibraries tokens

// tokens are log lines that contain a token.
type tokens struct {
	mu    sync.Mutex
	lines []string
}

func (t *tokens) search(line string) {
	if !hasToken(line) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
}

func (t *tokens) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

// logger returns the logger of a process.
func (j *journal) logger(process string) *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).With("process", process)
}

func (j *journal) Write(line []byte) (int, error) {
	j.add(string(bytes.TrimRight(line, "\n")))
	return len(line), nil
}

// note adds an action of the stage.
func (j *journal) note(format string, args ...any) { j.add("--- " + fmt.Sprintf(format, args...)) }

func (j *journal) add(line string) {
	line = fmt.Sprintf("%+.3fs %s", time.Since(j.start).Seconds(), line)
	j.tokens.search(line)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 2*mostLines {
		j.lines = append([]string(nil), j.lines[mostLines:]...)
	}
	j.lines = append(j.lines, line)
}

func hasToken(text string) bool {
	return strings.Contains(text, azureToken) || strings.Contains(text, apiToken)
}

func (j *journal) leaks() []string { return append(j.tokens.all(), ofLibraries.all()...) }

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// says reports whether a line contains all parts.
func (j *journal) says(parts ...string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.lines, func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}

// Log returns the log lines and the actions of the stage.
func (s *Stage) Log() string { return s.log.text() }
