// SPDX-License-Identifier: Apache-2.0

// Package process runs programs as processes that do not outlive this one: for the demo, and for
// tests of what is built.
//
//	process.go  one that is started, watched and stopped
//	run.go      one that runs to its end
//	address.go  addresses at which a program may listen
//	group.go, group_linux.go, group_other.go  signals to it and all that it starts
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

// stopGrace is how long a process may take to end when it is asked to.
const stopGrace = 5 * time.Second

// Program says what is started.
type Program struct {
	// Name is that of the process, and of the file in Dir with all that it prints. What is
	// there already stays.
	Name, Dir string
	Path      string
	Args      []string
	// Env is set besides the environment of the parent.
	Env []string
	// Ended is called if it ends before it is stopped or waited for; nil is nobody.
	Ended func(error)
}

// Process is one that runs. It is in a process group of its own, so that a
// Ctrl-C at the terminal reaches the parent alone and the parent decides the
// order. It does not outlive the parent, however that ends: its standard input
// closes, and on Linux the kernel kills it.
type Process struct {
	Name string
	Log  string // file with all that it prints

	cmd   *exec.Cmd
	grace time.Duration // how long it may take to end when asked

	stdin    io.Closer
	announce *firstLine
	expected atomic.Bool // its end is no surprise
	done     chan struct{}
	err      error // how it ended; set before done is closed
}

// UnexpectedEnd is the error of a process that ended by itself.
type UnexpectedEnd struct{ Process *Process }

func (e *UnexpectedEnd) Error() string {
	how := "exit code 0"
	if e.Process.err != nil {
		how = e.Process.err.Error()
	}
	return fmt.Sprintf("%s ended by itself (%s); its output is in %s", e.Process.Name, how, e.Process.Log)
}

// Start starts a program in its folder. The calling goroutine has to be on a thread that does
// not end before the process shall: the kernel kills it then.
func Start(ctx context.Context, of Program) (*Process, error) {
	p := &Process{
		Name: of.Name, Log: filepath.Join(of.Dir, of.Name+".log"), done: make(chan struct{}), grace: stopGrace,
		// Its end is the caller's to bring about, in order: not the context's.
		cmd: exec.CommandContext(context.WithoutCancel(ctx), of.Path, of.Args...), //nolint:gosec // a program of ours
	}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.announce = &firstLine{to: out, seen: make(chan string, 1)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = of.Dir, p.announce, out
	p.cmd.Env = append(os.Environ(), of.Env...)
	p.cmd.WaitDelay = time.Second
	ownGroup(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = out.Close() // nothing was written
		return nil, fmt.Errorf("starting %s: %w", of.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		_ = out.Close() // a log cut short is all that could be lost
		close(p.done)
		if !p.expected.Load() && of.Ended != nil {
			of.Ended(&UnexpectedEnd{p})
		}
	}()
	return p, nil
}

// FirstLine waits for the first line that it prints to standard output.
func (p *Process) FirstLine(ctx context.Context) (string, error) {
	select {
	case line := <-p.announce.seen:
		return line, nil
	case <-p.done:
		return "", &UnexpectedEnd{p}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// ID is that of the process.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Signal sends it a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until it has ended, and returns how: as exec.Cmd does. Its end is no surprise then.
func (p *Process) Wait() error {
	p.expected.Store(true)
	<-p.done
	return p.err
}

// ExitCode waits until it has ended, and returns its exit code; -1 if a signal ended it.
func (p *Process) ExitCode() int {
	_ = p.Wait() // the code says it
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends it as kill -9 does, and waits until it has. It may have ended already.
func (p *Process) Kill() {
	p.expected.Store(true)
	select {
	case <-p.done:
	default:
		killGroup(p.cmd)
		<-p.done
	}
}

// Crash kills it as somebody else might: its end is a surprise.
func (p *Process) Crash() { killGroup(p.cmd) }

// Stop asks it to end, and kills it if it does not.
func (p *Process) Stop() {
	p.expected.Store(true)
	_ = p.stdin.Close() // it may have ended already
	terminateGroup(p.cmd)
	select {
	case <-p.done:
	case <-time.After(p.grace):
		p.Kill()
	}
}

// StopAll stops processes side by side; nil ones were never started.
func StopAll(processes ...*Process) {
	var all sync.WaitGroup
	for _, p := range processes {
		if p != nil {
			all.Go(p.Stop)
		}
	}
	all.Wait()
}

// Output is all that it has printed.
func (p *Process) Output() string {
	raw, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Tail returns the last lines that it printed.
func (p *Process) Tail(lines int) []string {
	all := strings.Split(strings.TrimRight(p.Output(), "\n"), "\n")
	return all[max(0, len(all)-lines):]
}

// firstLine hands on what is written, and the first line of it on a channel.
type firstLine struct {
	to   io.Writer
	seen chan string
	line bytes.Buffer
	done bool
}

// Write is called by one goroutine, that of the child's output.
func (f *firstLine) Write(p []byte) (int, error) {
	if !f.done {
		line, _, ended := bytes.Cut(p, []byte("\n"))
		f.line.Write(line)
		if ended {
			f.done = true
			f.seen <- f.line.String()
		}
	}
	return f.to.Write(p)
}
