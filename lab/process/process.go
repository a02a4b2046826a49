// SPDX-License-Identifier: Apache-2.0

// Package process runs child processes that do not outlive this one.
package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const stopTimeout = 5 * time.Second

// Command describes the process to start.
type Command struct {
	// Name is also the name of the log file in Dir, which is appended to.
	Name, Dir string
	Path      string
	Args      []string
	// Env is added to the parent's environment.
	Env []string
	// OnExit, if not nil, is called on an unexpected end.
	OnExit func(error)
}

// Process has its own process group, so Ctrl-C reaches only the parent. It ends with the parent:
// its standard input closes, and on Linux the kernel kills it.
type Process struct {
	Name string
	Log  string

	cmd         *exec.Cmd
	stopTimeout time.Duration

	stdin      io.Closer
	stdout     *firstLineWriter
	isExpected atomic.Bool // stopped or waited for
	done       chan struct{}
	err        error // set before done is closed
}

// UnexpectedExit means that the process ended before it was stopped.
type UnexpectedExit struct{ Process *Process }

func (e *UnexpectedExit) Error() string {
	how := "exit code 0"
	if e.Process.err != nil {
		how = e.Process.err.Error()
	}
	return fmt.Sprintf("%s ended by itself (%s); its output is in %s", e.Process.Name, how, e.Process.Log)
}

// StartCommand starts a program. The calling thread must outlive it: the kernel kills the process with the
// thread.
func StartCommand(ctx context.Context, of Command) (*Process, error) {
	p := &Process{
		Name: of.Name, Log: filepath.Join(of.Dir, of.Name+".log"), done: make(chan struct{}), stopTimeout: stopTimeout,
		// Stop ends the process, in order; the context does not.
		cmd: exec.CommandContext(context.WithoutCancel(ctx), of.Path, of.Args...), //nolint:gosec // a program of ours
	}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.stdout = &firstLineWriter{to: out, lines: make(chan string, 1)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = of.Dir, p.stdout, out
	p.cmd.Env = append(os.Environ(), of.Env...)
	p.cmd.WaitDelay = time.Minute // on a busy machine, output is read long after the end
	setProcessGroup(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = out.Close() // nothing was written
		return nil, fmt.Errorf("starting %s: %w", of.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		_ = out.Close() // at worst the log is truncated
		close(p.done)
		if !p.isExpected.Load() && of.OnExit != nil {
			of.OnExit(&UnexpectedExit{p})
		}
	}()
	return p, nil
}

// FirstLine waits for the first line of output.
func (p *Process) FirstLine(ctx context.Context) (string, error) {
	select {
	case line := <-p.stdout.lines:
		return line, nil
	case <-p.done:
		return "", &UnexpectedExit{p}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// ProcessID returns the process ID.
func (p *Process) ProcessID() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the process and returns its exit error, as exec.Cmd does.
func (p *Process) Wait() error {
	p.isExpected.Store(true)
	<-p.done
	return p.err
}

// ExitCode waits; it is -1 after a signal.
func (p *Process) ExitCode() int {
	_ = p.Wait() // ExitCode has the result
	return p.cmd.ProcessState.ExitCode()
}

// Kill sends SIGKILL to the group and waits.
func (p *Process) Kill() {
	p.isExpected.Store(true)
	select {
	case <-p.done:
	default:
		killGroup(p.cmd)
		<-p.done
	}
}

// KillUnexpectedly sends SIGKILL; the end counts as unexpected.
func (p *Process) KillUnexpectedly() { killGroup(p.cmd) }

// Stop requests an orderly exit, and kills after the grace period.
func (p *Process) Stop() {
	p.isExpected.Store(true)
	_ = p.stdin.Close() // may be closed already
	terminateGroup(p.cmd)
	select {
	case <-p.done:
	case <-time.After(p.stopTimeout):
		p.Kill()
	}
}

// StopAll stops processes concurrently, ignoring nil ones.
func StopAll(processes ...*Process) {
	var wg sync.WaitGroup
	for _, p := range processes {
		if p != nil {
			wg.Go(p.Stop)
		}
	}
	wg.Wait()
}

// ReadOutput returns the complete output.
func (p *Process) ReadOutput() string {
	raw, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// TailLines returns the last lines of the output.
func (p *Process) TailLines(lines int) []string {
	output := strings.Split(strings.TrimRight(p.ReadOutput(), "\n"), "\n")
	return output[max(0, len(output)-lines):]
}

type firstLineWriter struct {
	to    io.Writer
	lines chan string
	line  bytes.Buffer
	done  bool
}

// Write is called by one goroutine only.
func (f *firstLineWriter) Write(p []byte) (int, error) {
	if !f.done {
		line, _, ended := bytes.Cut(p, []byte("\n"))
		f.line.Write(line)
		if ended {
			f.done = true
			f.lines <- f.line.String()
		}
	}
	return f.to.Write(p)
}
