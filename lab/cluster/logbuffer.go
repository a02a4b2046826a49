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

// logBuffer keeps the newest log lines of all processes and the actions of the stage. It records
// lines that contain a token.
type logBuffer struct {
	mu     sync.Mutex
	start  time.Time
	lines  []string
	tokens tokenLog
}

// maxLines is the maximum number of retained lines.
const maxLines = 4000

func newLogBuffer() *logBuffer {
	initSharedLoggers()
	return &logBuffer{start: time.Now()}
}

// initSharedLoggers scans the logs that libraries write to process-wide loggers for tokens, and
// disables apimachinery's error backoff: its clock is shared by all bubbles and may be years ahead.
var initSharedLoggers = sync.OnceFunc(func() {
	log := funcr.New(func(prefix, args string) { libraryTokens.scanLine(prefix + " " + args) }, funcr.Options{})
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, args ...any) { log.Error(err, message, args...) },
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
})

// libraryTokens are the tokens logged by client-go and controller-runtime on any stage.
var libraryTokens tokenLog

type tokenLog struct {
	mu    sync.Mutex
	lines []string
}

func (t *tokenLog) scanLine(line string) {
	if !hasToken(line) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
}

func (t *tokenLog) allLines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

func (l *logBuffer) newLogger(process string) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).With("process", process)
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.addLine(string(bytes.TrimRight(line, "\n")))
	return len(line), nil
}

func (l *logBuffer) addAction(format string, args ...any) {
	l.addLine("--- " + fmt.Sprintf(format, args...))
}

func (l *logBuffer) addLine(line string) {
	line = fmt.Sprintf("%+.3fs %s", time.Since(l.start).Seconds(), line)
	l.tokens.scanLine(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 2*maxLines {
		l.lines = append([]string(nil), l.lines[maxLines:]...)
	}
	l.lines = append(l.lines, line)
}

func hasToken(text string) bool {
	return strings.Contains(text, azureToken) || strings.Contains(text, apiToken)
}

func (l *logBuffer) tokenLines() []string {
	return append(l.tokens.allLines(), libraryTokens.allLines()...)
}

func (l *logBuffer) allText() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *logBuffer) hasLine(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}

// Log returns the log lines and the actions of the stage.
func (s *Stage) Log() string { return s.logs.allText() }
