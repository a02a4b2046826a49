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

func (j *logBuffer) newLogger(process string) *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).With("process", process)
}

func (j *logBuffer) Write(line []byte) (int, error) {
	j.addLine(string(bytes.TrimRight(line, "\n")))
	return len(line), nil
}

func (j *logBuffer) addAction(format string, args ...any) {
	j.addLine("--- " + fmt.Sprintf(format, args...))
}

func (j *logBuffer) addLine(line string) {
	line = fmt.Sprintf("%+.3fs %s", time.Since(j.start).Seconds(), line)
	j.tokens.scanLine(line)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 2*maxLines {
		j.lines = append([]string(nil), j.lines[maxLines:]...)
	}
	j.lines = append(j.lines, line)
}

func hasToken(text string) bool {
	return strings.Contains(text, azureToken) || strings.Contains(text, apiToken)
}

func (j *logBuffer) tokenLines() []string {
	return append(j.tokens.allLines(), libraryTokens.allLines()...)
}

func (j *logBuffer) allText() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

func (j *logBuffer) hasLine(parts ...string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.lines, func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}

// Log returns the log lines and the actions of the stage.
func (s *Stage) Log() string { return s.logs.allText() }
