// SPDX-License-Identifier: Apache-2.0

// Package demo runs a story against a real kube-apiserver, the ARM emulator and the
// controller, each in its own process: the cluster changes, Azure throttles, another client writes,
// Services come and go in bulk, spot machines are evicted, and a Service is published through
// Private Link. Independent observers compare the Kubernetes API with Azure.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/k8s"
)

// Limits of Options.Nodes.
const (
	MinNodes = 5
	MaxNodes = 100
)

// Options configure a run.
type Options struct {
	// Nodes is the final cluster size, MinNodes to MaxNodes.
	Nodes int
	// Seed determines the emulator's latencies and the affected nodes.
	Seed uint64
	// Full runs all five acts instead of the first two.
	Full bool
	// Stay keeps everything running after the story until ctx is done.
	Stay bool
	// JSON prints the summary as JSON to Out, and the story to Err.
	JSON bool
	// Out and Err are standard output and standard error.
	Out, Err io.Writer

	programFolder string // folder of kubelab, weir and kubectl; "": next to the running program
	emulatorPath  string // program with the command emulator; "": the running one
	steps         []step // nil: the whole story
	// deadline per step; 0 is stepDeadline.
	deadline time.Duration
}

// Validate checks the options.
func (o Options) Validate() error {
	if o.Nodes < MinNodes || o.Nodes > MaxNodes {
		return fmt.Errorf("--nodes %d: give %d to %d", o.Nodes, MinNodes, MaxNodes)
	}
	return nil
}

// Interrupted is the error of a run that was canceled before the end of its story.
type Interrupted struct{}

// Error implements error.
func (Interrupted) Error() string { return "interrupted" }

// ExitCode is the shell's exit code after Ctrl-C.
func (Interrupted) ExitCode() int { return 130 }

type outputGone struct{ error }

func (o outputGone) Error() string { return "the output cannot be written: " + o.error.Error() }

// Unwrap returns the write error.
func (o outputGone) Unwrap() error { return o.error }

// ExitCode is the shell's exit code after a closed pipe.
func (o outputGone) ExitCode() int {
	if errors.Is(o, syscall.EPIPE) {
		return 141
	}
	return 1
}

// Run runs the story. It fails if a step did not get in sync, or if an address is lost or surplus.
// All processes have ended when it returns. The log folder is kept if the story failed.
func Run(ctx context.Context, opts Options) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	if opts.steps == nil {
		opts.steps = allSteps(opts.Full)
	}
	if opts.deadline == 0 {
		opts.deadline = stepDeadline
	}
	return runInFolder(ctx, opts, func(r *run) error { return r.run(ctx) })
}

// runInFolder runs a function with a log folder that is kept if it fails.
func runInFolder(ctx context.Context, opts Options, fn func(*run) error) (err error) {
	// The kernel kills the children when the thread that started them ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if opts, err = opts.withDefaults(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return err
	}
	quietly, err := redirectLibraryLogs(filepath.Join(dir, "demo.log"))
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	lines := opts.Out
	if opts.JSON {
		lines = opts.Err
	}
	r := &run{opts: opts, dir: dir, user: ctx.Err, print: newPrinter(lines)}
	err = fn(r)
	quietly()
	return errors.Join(err, r.removeFolder(err))
}

// withDefaults fills in the program paths and checks that they exist.
func (o Options) withDefaults() (Options, error) {
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	if o.emulatorPath == "" {
		o.emulatorPath = self
	}
	if o.programFolder == "" {
		o.programFolder = filepath.Dir(self)
	}
	_, kubelab := o.programPath("kubelab", "make kubelab")
	_, weir := o.programPath("weir", "make build")
	if kubelab != nil {
		return o, kubelab
	}
	return o, weir
}

// redirectLibraryLogs redirects client-go's log to a file, away from story and summary.
func redirectLibraryLogs(name string) (restore func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // in a folder of ours
	if err != nil {
		return nil, err
	}
	ctrllog.SetLogger(logr.Discard())
	klog.LogToStderr(false)
	klog.SetOutput(file)
	return func() {
		klog.Flush()
		klog.SetOutput(io.Discard)
		_ = file.Close() // only the end of the log could be lost
	}, nil
}

// run is one run of the story.
type run struct {
	opts  Options
	dir   string
	user  func() error // not nil after Ctrl-C, unlike after a child's exit
	print *printer
	lab   *lab
	stage *stage
}

func (r *run) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	r.lab = &lab{opts: r.opts, dir: r.dir, onExit: fail, onLeaseLoss: r.reportLeaseLoss, place: mainEnvironment()}
	defer r.lab.stopAll()
	defer fail(nil)
	defer func() {
		if r.stage != nil {
			r.stage.closeConnections()
		}
	}()
	r.print.onWriteError = func(err error) { fail(outputGone{err}) }
	began := time.Now()
	err := r.startAll(ctx)
	if err == nil {
		err = r.stage.runSteps(ctx, r.opts.steps)
	}
	if err = r.rootCause(ctx, err); r.isInterrupted(err) {
		return Interrupted{}
	}
	if r.stage != nil {
		err = r.reportResult(ctx, err, time.Since(began))
	}
	if r.opts.Stay && r.stage != nil && ctx.Err() == nil {
		r.printHelp(ctx)
		if c := r.stage.connections.summary(); c != nil {
			r.print.writeText(plainText, "Service web    curl "+c.Address)
		}
		<-ctx.Done()
		end := r.stopReason(ctx)
		r.printFailure(end)
		err = errors.Join(err, end)
	}
	return err
}

// demoSettings lists the settings of the controller that differ from its defaults.
func demoSettings() string {
	usual := k8s.DefaultElection()
	return fmt.Sprintf("unlike in production, the update interval is %.0f s instead of %d s, the Lease lasts %.0f s instead of %.0f s and is renewed within %.0f s instead of %.0f s, and localServicePools is own",
		updateInterval.Seconds(), config.DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds, leaseDuration.Seconds(), usual.LeaseDuration.Seconds(), renewDeadline.Seconds(), usual.RenewDeadline.Seconds())
}

// reportLeaseLoss prints that the controller is started again.
func (r *run) reportLeaseLoss() {
	r.print.printLine(redText, "weir", fmt.Sprintf("lost its Lease, because this machine is busy: it renewed none within %.0f s; it is started again, as by a Deployment", renewDeadline.Seconds()))
}

// startAll starts everything and watches both sides.
func (r *run) startAll(ctx context.Context) error {
	r.print.printPlain("A real kube-apiserver, the real Azure SDK, an emulated Azure, and Weir between.",
		"web 3/5 +1 means: 3 of the 5 addresses that the cluster wants are in the pool",
		"of web, and 1 that it does not want any more. An address is a node: pods on one",
		fmt.Sprintf("node share it. The story takes about %.0f s, more on a busy machine.", usualTime(r.opts.steps).Seconds()), "")
	if err := r.lab.startControlPlane(ctx); err != nil {
		return err
	}
	r.print.printLine(plainText, "start", fmt.Sprintf("Kubernetes: etcd, kube-apiserver, its controllers, %d nodes", initialNodes))
	if err := r.lab.startEmulator(ctx); err != nil {
		return err
	}
	r.print.printLine(plainText, "start", fmt.Sprintf("Azure: a network, no load balancer, at %s", r.lab.endpoint))
	r.print.printLine(plainText, "start", fmt.Sprintf("it behaves as the real one is assumed to, %g times as fast", 1/latencyScale))
	rest, cluster, err := r.lab.installBase(ctx)
	if err != nil {
		return err
	}
	if r.lab.gatewayAPI = slices.ContainsFunc(r.opts.steps, func(s step) bool { return s.needsGatewayAPI }); r.lab.gatewayAPI {
		if err := cluster.installGatewayAPI(ctx); err != nil {
			return err
		}
	}
	if err := r.lab.startController(ctx); err != nil {
		return err
	}
	r.print.printLine(plainText, "start", fmt.Sprintf("Weir: weir controller, process %d", r.lab.controller.latest().ProcessID()))
	r.print.printDetail(demoSettings())
	seen := newObserver(newAzureObserver(r.lab.admin))
	if err := seen.pollAzure(ctx); err != nil {
		return err
	}
	wanted, err := watchDesired(ctx, rest, seen.recordDesired)
	if err != nil {
		return err
	}
	go func() { r.lab.reportUnreachable(ctx, seen.pollUntilDone(ctx)) }()
	r.stage = &stage{
		lab: r.lab, cluster: cluster, desired: wanted, observer: seen, print: r.print, nodes: r.opts.Nodes, deadline: r.opts.deadline,
		random: rand.New(rand.NewPCG(r.opts.Seed, 0)), //nolint:gosec // a story, not a secret
	}
	return nil
}

// rootCause replaces the error of a canceled call, or of a call to a dead process, with its cause.
func (r *run) rootCause(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	// A call may fail before its server's exit is noticed.
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(exitDelay):
		return err
	}
}

// isInterrupted reports whether the run failed because of Ctrl-C.
func (r *run) isInterrupted(err error) bool { return err != nil && r.user() != nil }

// stopReason returns why staying ended: nil for Ctrl-C.
func (r *run) stopReason(ctx context.Context) error {
	if r.user() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// removeFolder removes the log folder after success, an interrupt, or a closed output.
func (r *run) removeFolder(err error) error {
	_, interrupted := errors.AsType[Interrupted](err)
	_, unread := errors.AsType[outputGone](err)
	if err != nil && !interrupted && !unread {
		r.print.printPlain("")
		r.print.writeText(plainText, "The logs of all processes are in "+r.dir) // not wrapped, so that it can be copied
		return nil
	}
	return os.RemoveAll(r.dir)
}
