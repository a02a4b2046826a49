// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"weir.dev/weir/lab/process"
)

// maxLeaseLosses is how often the controller may lose its Lease before the run fails.
const maxLeaseLosses = 10

// controllerRuns starts the controller again when it has lost its Lease, as a Deployment does: on a busy machine, a renewal
// can be late. Methods are safe for concurrent use.
type controllerRuns struct {
	mu      sync.Mutex
	current *process.Process
	losses  int
	stopped bool
	// ended is closed by stop, and ends the goroutines of restarted processes.
	ended chan struct{}
}

// latest returns the controller that was started last; nil before the first.
func (c *controllerRuns) latest() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// start starts the controller. Its unexpected end is passed to onExit, unless it has lost its Lease.
func (c *controllerRuns) start(launch func(onExit func(error)) (*process.Process, error), onLoss func(), onExit func(error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = make(chan struct{})
	}
	var exited func(error)
	exited = func(err error) {
		restart, ended := c.countLoss(err)
		if !restart {
			onExit(err)
			return
		}
		onLoss()
		// The kernel kills a process with the thread that started it, so the thread has to remain.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := c.restart(launch, exited); err != nil {
			onExit(err)
			return
		}
		<-ended
	}
	p, err := launch(exited)
	if err == nil {
		c.current = p
	}
	return err
}

func (c *controllerRuns) restart(launch func(onExit func(error)) (*process.Process, error), exited func(error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	p, err := launch(exited)
	if err == nil {
		c.current = p
	}
	return err
}

// countLoss reports whether the controller is to be started again.
func (c *controllerRuns) countLoss(err error) (restart bool, ended chan struct{}) {
	end, ok := errors.AsType[*process.UnexpectedExit](err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok || c.stopped || end.Process != c.current || !hasLostLease(end.Process.TailLines(20)) {
		return false, nil
	}
	c.losses++
	return c.losses <= maxLeaseLosses, c.ended
}

// hasLostLease reports whether the last lines of a controller show that it ended because it no longer leads.
func hasLostLease(lines []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return strings.Contains(line, "the lead is lost") || strings.Contains(line, "leader election lost")
	})
}

// stop stops the controller; it is not started again.
func (c *controllerRuns) stop(also ...*process.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	process.StopAll(append([]*process.Process{c.current}, also...)...)
	if !c.stopped && c.ended != nil {
		close(c.ended)
	}
	c.stopped = true
}

// startController starts or restarts the controller and waits until it has read the cluster.
func (l *lab) startController(ctx context.Context) error {
	launch, err := l.prepareController(ctx)
	if err != nil {
		return err
	}
	if err := l.controller.start(launch, func() { l.onLeaseLoss() }, l.onExit); err != nil {
		return err
	}
	return l.controllerReady(ctx)
}
